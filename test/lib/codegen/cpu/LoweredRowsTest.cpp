// Every op on rows, through task formation and code generation, against the formulas of the llm dialect.
#include "test/lib/codegen/cpu/LoweredModule.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;
using reference::Matrix;

namespace {

// Formulas in f64, rounded once, against a few roundings of f32, polynomials of a few ulp and sums of up to a hundred.
constexpr float tolerance = 4e-6f;

std::string text(int64_t number) { return std::to_string(number); }

// A step of `body`, which makes %y of %x: ${C} channels of each token. `weights` are declared before it.
std::string rowsModule(const std::string &body, int64_t channels, int64_t results,
                       const std::vector<std::pair<std::string, std::string>> &weights = {}) {
  std::string module = "llm.weight @e : !llm.weight<7x${C}> from [{tensor = \"e\"}]\n", uses;
  for (const auto &[name, shape] : weights) {
    module += "llm.weight @" + name + " : !llm.weight<" + shape + "> from [{tensor = \"" + name + "\"}]\n";
    uses += "%" + name + " = llm.use_weight @" + name + " : !llm.weight<" + shape + ">\n";
  }
  module += "func.func @step(%batch: !llm.batch) -> tensor<?x${R}xf32> {\n"
            "%e = llm.use_weight @e : !llm.weight<7x${C}>\n" +
            uses + "%x = llm.embedding %batch, %e {scale = 3.0 : f32} : !llm.weight<7x${C}> -> tensor<?x${C}xf32>\n" +
            body + "\nreturn %y : tensor<?x${R}xf32>\n}\n";
  return fill(module, {{"C", text(channels)}, {"R", text(results)}});
}

void check(const std::string &module, const std::string &what, int64_t maxTokens = 64) {
  SCOPED_TRACE(what);
  LoweredOptions options;
  options.maxTokens = maxTokens;
  LoweredModule lowered(module, options);
  if (::testing::Test::HasFailure())
    return;
  const std::vector<int> lengths = {5, 1, 4};
  Matrix expected = lowered.interpret(lengths), tasks = lowered.interpretTasks(lengths);
  expectClose(tasks, expected, tolerance, "tasks");
  for (const Way &way : fewWays()) {
    Matrix compiled = lowered.runCompiled(lengths, way, 1);
    expectClose(compiled, tasks, tolerance, nameOf(way));
    EXPECT_EQ(lowered.runCompiled(lengths, way, 3).values, compiled.values) << nameOf(way);
    // A row alone is the same row.
    Matrix alone = lowered.runCompiled({3}, way, 2);
    for (int64_t row = 0; row < alone.rows; ++row)
      EXPECT_TRUE(std::ranges::equal(alone.row(row), compiled.row(row))) << nameOf(way) << " row " << row;
  }
}

std::string rows(int64_t channels) { return "tensor<?x" + text(channels) + "xf32>"; }
std::string heads(int64_t count, int64_t channels) {
  return "tensor<?x" + text(count) + "x" + text(channels) + "xf32>";
}
// %x as heads %h, and %z, of the same type, as %y.
std::string onHeads(int64_t count, int64_t size, const std::string &body) {
  std::string type = heads(count, size), flat = rows(count * size);
  return "%h = llm.split_heads %x : " + flat + " -> " + type + "\n" + fill(body, {{"H", type}}) +
         "\n%y = llm.merge_heads %z : " + type + " -> " + flat;
}

} // namespace

TEST(LoweredRows, Activations) {
  for (const char *kind :
       {"silu", "gelu_tanh", "gelu", "gelu_sigmoid", "relu", "relu2", "sigmoid", "tanh", "exp", "softplus", "sqrt"})
    for (int64_t channels : {1, 37}) {
      std::string input = "%x";
      std::string body;
      if (std::string(kind) == "sqrt") {
        body = "%p = llm.activation relu %x : ${T}\n";
        input = "%p";
      }
      body += "%y = llm.activation " + std::string(kind) + " " + input + " : ${T}";
      check(rowsModule(fill(body, {{"T", rows(channels)}}), channels, channels), kind + text(channels));
    }
}

TEST(LoweredRows, GatedActivationsOfTwoScales) {
  for (const char *kind : {"gelu_sigmoid", "relu2", "softplus"})
    check(rowsModule("%a = llm.scale %x {factor = 7.0 : f32, offset = -1.5 : f32} : tensor<?x65xf32>\n"
                     "%y = llm.gated_activation " +
                         std::string(kind) + " %a, %x : tensor<?x65xf32>",
                     65, 65),
          kind);
}

TEST(LoweredRows, Elementwise) {
  check(rowsModule("%y = llm.clamp %x {low = -0.5 : f32, high = 1.25 : f32} : tensor<?x17xf32>", 17, 17), "clamp");
  check(rowsModule("%y = llm.multiply %x, %x : tensor<?x17xf32>, tensor<?x17xf32>", 17, 17), "square");
  check(rowsModule("%y = llm.softmax %x : tensor<?x37xf32>", 37, 37), "softmax");
  check(rowsModule("%y = llm.xielu %x, %w {beta = 0.5 : f32, eps = -1.0e-6 : f32} : tensor<?x37xf32>, !llm.weight<2>",
                   37, 37, {{"w", "2"}}),
        "xielu");
  for (const char *shape : {"37", "1"})
    check(rowsModule("%y = llm.affine %x gain %w bias %b : tensor<?x37xf32> gain !llm.weight<" + std::string(shape) +
                         "> bias !llm.weight<37>",
                     37, 37, {{"w", shape}, {"b", "37"}}),
          "affine " + std::string(shape));
}

TEST(LoweredRows, Norms) {
  for (int64_t channels : {1, 16, 61}) {
    std::string c = text(channels);
    auto module = [&](const std::string &op, const std::string &types) {
      return rowsModule("%y = llm." + op + " {eps = 1.0e-5 : f32} : " + rows(channels) + types, channels, channels,
                        {{"w", c}, {"b", c}});
    };
    std::string weight = ", !llm.weight<" + c + ">";
    check(module("rms_norm %x", ""), "rms_norm " + c);
    check(module("layer_norm %x", ""), "layer_norm " + c);
    check(module("layer_norm %x, %w", weight), "layer_norm with gain " + c);
    check(module("layer_norm %x, %w bias %b", weight + weight), "layer_norm with gain and bias " + c);
  }
}

// Three heads of 20: gains for every head alike, for each its own, one number each.
TEST(LoweredRows, Heads) {
  auto module = [&](const std::string &op, const std::string &shape) {
    return rowsModule(onHeads(3, 20, "%z = llm." + op), 60, 60, {{"w", shape}});
  };
  check(module("rms_norm %h {eps = 1.0e-5 : f32} : ${H}", "20"), "rms_norm without gain");
  for (const char *shape : {"20", "60"}) {
    std::string weight = " : ${H}, !llm.weight<" + std::string(shape) + ">";
    check(module("rms_norm %h, %w {eps = 1.0e-5 : f32}" + weight, shape), "rms_norm " + std::string(shape));
    check(module("layer_norm %h, %w {eps = 1.0e-5 : f32}" + weight, shape), "layer_norm " + std::string(shape));
    check(module("affine %h gain %w : ${H} gain !llm.weight<" + std::string(shape) + ">", shape),
          "affine " + std::string(shape));
  }
  check(module("affine %h gain %w {per_head} : ${H} gain !llm.weight<3>", "3"), "affine per head");
  check(module("softmax %h : ${H}", "1"), "softmax");
}

TEST(LoweredRows, FactorsOfHeadsAndRows) {
  std::string slice = "%f = llm.slice %x at 5 : tensor<?x60xf32> -> tensor<?x3xf32>\n";
  check(rowsModule(onHeads(3, 20, slice + "%z = llm.multiply %h, %f : ${H}, tensor<?x3xf32>"), 60, 60), "heads");
  std::string one = "%f = llm.slice %x at 5 : tensor<?x60xf32> -> tensor<?x1xf32>\n";
  check(rowsModule(onHeads(3, 20, one + "%z = llm.multiply %h, %f : ${H}, tensor<?x1xf32>"), 60, 60), "one");
  check(rowsModule(one + "%y = llm.multiply %x, %f : tensor<?x60xf32>, tensor<?x1xf32>", 60, 60), "row");
}

TEST(LoweredRows, MovedChannels) {
  check(rowsModule("%y = llm.slice %x at 3 : tensor<?x37xf32> -> tensor<?x18xf32>", 37, 18), "slice");
  check(
      rowsModule("%a = llm.slice %x at 3 : tensor<?x37xf32> -> tensor<?x18xf32>\n"
                 "%b = llm.slice %x at 20 : tensor<?x37xf32> -> tensor<?x1xf32>\n"
                 "%y = llm.concat %a, %b, %x : tensor<?x18xf32>, tensor<?x1xf32>, tensor<?x37xf32> -> tensor<?x56xf32>",
                 37, 56),
      "concat");
  check(rowsModule("%h = llm.split_heads %x : tensor<?x60xf32> -> tensor<?x3x20xf32>\n"
                   "%a = llm.slice %h at 2 : tensor<?x3x20xf32> -> tensor<?x3x7xf32>\n"
                   "%c = llm.concat %a, %h : tensor<?x3x7xf32>, tensor<?x3x20xf32> -> tensor<?x3x27xf32>\n"
                   "%r = llm.repeat_heads %c {times = 2 : i64} : tensor<?x3x27xf32> -> tensor<?x6x27xf32>\n"
                   "%y = llm.merge_heads %r : tensor<?x6x27xf32> -> tensor<?x162xf32>",
                   60, 162),
        "heads");
}

TEST(LoweredRows, Combine) {
  check(rowsModule("%w = llm.slice %x at 7 : tensor<?x60xf32> -> tensor<?x3xf32>\n"
                   "%s = llm.split_heads %x : tensor<?x60xf32> -> tensor<?x3x20xf32>\n"
                   "%y = llm.combine %s, %w : tensor<?x3x20xf32>, tensor<?x3xf32> -> tensor<?x20xf32>",
                   60, 20),
        "combine");
}

TEST(LoweredRows, Positions) {
  // Six rows for five positions: the last is past the table, with an offset of two.
  check(rowsModule("%y = llm.position_embedding %batch, %p {offset = 2 : i64} : !llm.weight<6x37> -> tensor<?x37xf32>",
                   37, 37, {{"p", "6x37"}}),
        "position_embedding");
  check(rowsModule("%y = llm.position_scale %x, %batch {scale = 0.1 : f32, period = 2 : i64, offset = 1 : i64} : "
                   "tensor<?x37xf32>",
                   37, 37),
        "position_scale");
}

TEST(LoweredRows, RepeatedAndRoundedPositions) {
  check(rowsModule("%y = llm.position_embedding %batch, %p {offset = 1 : i64, period = 3 : i64} : !llm.weight<4x37> -> "
                   "tensor<?x37xf32>",
                   37, 37, {{"p", "4x37"}}),
        "position_embedding");
  check(rowsModule("%y = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.3>, magnitude = 1.0 : f32, step = 2 : "
                   "i64} : tensor<?x4xf32>",
                   5, 4),
        "rope_table");
}

TEST(LoweredRows, SquareMatrices) {
  for (auto [size, iterations] : {std::pair(4, 20), std::pair(1, 3), std::pair(5, 1), std::pair(16, 4)}) {
    std::string type = heads(size, size);
    // Softmax and a little more: nothing is zero.
    check(rowsModule(onHeads(size, size,
                             "%p = llm.softmax %h : ${H}\n"
                             "%q = llm.scale %p {factor = 1.0 : f32, offset = 0.01 : f32} : ${H}\n"
                             "%z = llm.sinkhorn %q {iterations = " +
                                 text(iterations) + " : i64, eps = 1.0e-6 : f32} : ${H}"),
                     size * size, size * size),
          "sinkhorn " + type);
  }
}

TEST(LoweredRows, Rope) {
  for (const char *how : {"", "first = 6 : i64", "inverse", "pairing = #llm<pairing adjacent>",
                          "first = 3 : i64, inverse, pairing = #llm<pairing adjacent>"}) {
    std::string body =
        "%t = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.3, 0.1, 0.03, 0.01>, magnitude = 1.25 : f32} : "
        "tensor<?x10xf32>\n"
        "%z = llm.rope %h, %t {" +
        std::string(how) + "} : ${H}, tensor<?x10xf32>";
    check(rowsModule(onHeads(3, 20, body), 60, 60), std::string("rope ") + how);
  }
}

// Behind a product, on its column tiles: 3 heads of 16, and 70 channels, whose last tile is short.
TEST(LoweredRows, BehindAProduct) {
  std::string chain = "%p = llm.linear %x, %w : tensor<?x40xf32>, !llm.weight<70x40> -> tensor<?x70xf32>\n"
                      "%f = llm.slice %x at 1 : tensor<?x40xf32> -> tensor<?x1xf32>\n"
                      "%a = llm.affine %p gain %g bias %b : tensor<?x70xf32> gain !llm.weight<70> bias !llm.weight<1>\n"
                      "%c = llm.clamp %a {low = -2.0 : f32, high = 2.0 : f32} : tensor<?x70xf32>\n"
                      "%d = llm.activation gelu_sigmoid %c : tensor<?x70xf32>\n"
                      "%s = llm.scale %d {factor = 2.0 : f32, offset = 0.5 : f32} : tensor<?x70xf32>\n"
                      "%y = llm.multiply %s, %f : tensor<?x70xf32>, tensor<?x1xf32>";
  std::string module = rowsModule(chain, 40, 70, {{"w", "70x40"}, {"g", "70"}, {"b", "1"}});
  check(module, "channels");
  LoweredModule lowered(module);
  EXPECT_EQ(lowered.lowered().find("@step.3"), std::string::npos) << "embedding, factor, product: nothing else";
  check(rowsModule("%p = llm.linear %x, %w : tensor<?x40xf32>, !llm.weight<48x40> -> tensor<?x48xf32>\n"
                   "%h = llm.split_heads %p : tensor<?x48xf32> -> tensor<?x3x16xf32>\n"
                   "%f = llm.slice %x at 1 : tensor<?x40xf32> -> tensor<?x3xf32>\n"
                   "%n = llm.layer_norm %h, %g {eps = 1.0e-5 : f32} : tensor<?x3x16xf32>, !llm.weight<48>\n"
                   "%m = llm.multiply %n, %f : tensor<?x3x16xf32>, tensor<?x3xf32>\n"
                   "%q = llm.affine %m gain %b {per_head} : tensor<?x3x16xf32> gain !llm.weight<3>\n"
                   "%s = llm.softmax %q : tensor<?x3x16xf32>\n"
                   "%y = llm.merge_heads %s : tensor<?x3x16xf32> -> tensor<?x48xf32>",
                   40, 48, {{"w", "48x40"}, {"g", "48"}, {"b", "3"}}),
        "heads");
}

TEST(LoweredRows, Routers) {
  auto router = [](const std::string &scoring, const std::string &bias, int64_t experts, int64_t chosen,
                   const std::string &groups) {
    std::string e = text(experts), k = text(chosen);
    std::string types = rows(experts) + (bias.empty() ? "" : ", !llm.weight<" + e + ">");
    return rowsModule("%w, %i = llm.router " + scoring + " %x" + (bias.empty() ? "" : " bias %b") + " {top_k = " + k +
                          " : i64, " + groups + ", norm_eps = 1.0e-20 : f32, jitter = 0.05 : f32} : " + types + " -> " +
                          rows(chosen) + "\n%y = llm.concat %w, %i : " + rows(chosen) + ", " + rows(chosen) + " -> " +
                          rows(2 * chosen),
                      experts, 2 * chosen, {{"b", e}});
  };
  const std::string one =
      "groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, scale = 2.5 : f32";
  for (const char *scoring : {"softmax", "sigmoid", "sqrt_softplus", "none"}) {
    check(router(scoring, "", 37, 5, one), scoring);
    check(router(scoring, "b", 16, 1, one), std::string(scoring) + " with bias");
  }
  check(router("sigmoid", "b", 36, 4,
               "groups = 4 : i64, top_groups = 2 : i64, group_sum = 2 : i64, normalize = false, scale = 1.0 : f32"),
        "groups");
  check(router("softmax", "", 9, 3,
               "groups = 3 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, scale = 1.0 : f32"),
        "all of one group");
  check(router("sparse_mixer", "", 7, 2,
               "groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, scale = 1.0 : f32"),
        "sparse_mixer");
}

// A table that says which experts a token has; it is read as it stands whatever the form of weights.
TEST(LoweredRows, GivenExperts) {
  std::string body =
      "%c = llm.embedding %batch, %t {scale = 1.0 : f32, exact} : !llm.weight<7x3> -> tensor<?x3xf32>\n"
      "%b = llm.clamp %c {low = 0.0 : f32, high = 8.0 : f32} : tensor<?x3xf32>\n"
      "%w, %i = llm.router sqrt_softplus %x chosen %b {top_k = 3 : i64, groups = 1 : i64, top_groups = 1 "
      ": i64, group_sum = 1 : i64, normalize = true, scale = 1.5 : f32, norm_eps = 1.0e-20 : f32, jitter "
      "= 0.0 : f32} : tensor<?x9xf32> chosen tensor<?x3xf32> -> tensor<?x3xf32>\n"
      "%y = llm.concat %w, %i : tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x6xf32>";
  check(rowsModule(body, 9, 6, {{"t", "7x3"}}), "router");
}

// Equal scores: the lower index comes first.
TEST(LoweredRows, RouterWithTies) {
  check(
      rowsModule(
          "%c = llm.clamp %x {low = -0.1 : f32, high = 0.1 : f32} : tensor<?x20xf32>\n"
          "%w, %i = llm.router none %c {top_k = 9 : i64, groups = 5 : i64, top_groups = 3 : i64, group_sum = 2 : i64, "
          "normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x20xf32> -> "
          "tensor<?x9xf32>\n"
          "%y = llm.concat %w, %i : tensor<?x9xf32>, tensor<?x9xf32> -> tensor<?x18xf32>",
          20, 18),
      "ties");
}
