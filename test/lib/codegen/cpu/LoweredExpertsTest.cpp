// Products with a stack of matrices: all forms, odd shapes, several numbers of rows and workers.
#include "test/lib/codegen/cpu/LoweredModule.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;
using reference::Matrix;

namespace {

struct Shape {
  int64_t experts, outputs, inputs, slots;
  // The experts are those from `first` on of so many that the router knows; 0: all of them.
  int64_t known = 0, first = 0;
};

std::string text(int64_t number) { return std::to_string(number); }

// A layer of experts: their outputs with an activation, a second product with inputs of their own, and the sum.
std::string expertsModule(const Shape &shape, const std::string &stored) {
  return fill(R"mlir(
llm.weight @e : !llm.weight<7x${K}> from [{tensor = "e", type = "F32"}]
llm.weight @gate : !llm.weight<${G}x${K}> from [{tensor = "gate", type = "F32"}]
llm.weight @up : !llm.weight<${E}x${N}x${K}> from [{tensor = "up", type = "${S}"}]
llm.weight @bias : !llm.weight<${E}x${N}> from [{tensor = "bias", type = "F32"}]
llm.weight @down : !llm.weight<${E}x${K}x${N}> from [{tensor = "down", type = "${S}"}]
func.func private @layer(%x: tensor<?x${K}xf32>, %gate: !llm.weight<${G}x${K}>, %up: !llm.weight<${E}x${N}x${K}>, %bias: !llm.weight<${E}x${N}>, %down: !llm.weight<${E}x${K}x${N}>) -> tensor<?x${K}xf32> {
  %z = llm.linear %x, %gate : tensor<?x${K}xf32>, !llm.weight<${G}x${K}> -> tensor<?x${G}xf32>
  %w, %all = llm.router softmax %z {top_k = ${T} : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x${G}xf32> -> tensor<?x${T}xf32>
  %i = llm.scale %all {factor = 1.0 : f32, offset = -${F}.0 : f32} : tensor<?x${T}xf32>
  %u = llm.expert_linear %x, %up, %i bias %bias : tensor<?x${K}xf32>, !llm.weight<${E}x${N}x${K}>, tensor<?x${T}xf32>, !llm.weight<${E}x${N}> -> tensor<?x${T}x${N}xf32>
  %a = llm.activation relu %u : tensor<?x${T}x${N}xf32>
  %m = llm.multiply %a, %w : tensor<?x${T}x${N}xf32>, tensor<?x${T}xf32>
  %d = llm.expert_linear %m, %down, %i : tensor<?x${T}x${N}xf32>, !llm.weight<${E}x${K}x${N}>, tensor<?x${T}xf32> -> tensor<?x${T}x${K}xf32>
  %c = llm.combine %d, %w : tensor<?x${T}x${K}xf32>, tensor<?x${T}xf32> -> tensor<?x${K}xf32>
  %s = llm.add %x, %c : tensor<?x${K}xf32>
  return %s : tensor<?x${K}xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x${K}xf32> {
  %e = llm.use_weight @e : !llm.weight<7x${K}>
  %gate = llm.use_weight @gate : !llm.weight<${G}x${K}>
  %up = llm.use_weight @up : !llm.weight<${E}x${N}x${K}>
  %bias = llm.use_weight @bias : !llm.weight<${E}x${N}>
  %down = llm.use_weight @down : !llm.weight<${E}x${K}x${N}>
  %x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<7x${K}> -> tensor<?x${K}xf32>
  %l = call @layer(%x, %gate, %up, %bias, %down) : (tensor<?x${K}xf32>, !llm.weight<${G}x${K}>, !llm.weight<${E}x${N}x${K}>, !llm.weight<${E}x${N}>, !llm.weight<${E}x${K}x${N}>) -> tensor<?x${K}xf32>
  %y = llm.scale %l {factor = 0.5 : f32} : tensor<?x${K}xf32>
  return %y : tensor<?x${K}xf32>
})mlir",
              {{"E", text(shape.experts)},
               {"G", text(shape.known ? shape.known : shape.experts)},
               {"F", text(shape.first)},
               {"N", text(shape.outputs)},
               {"K", text(shape.inputs)},
               {"T", text(shape.slots)},
               {"S", stored}});
}

std::string headsModule(int64_t heads, int64_t outputs, int64_t inputs, const std::string &stored) {
  return fill(R"mlir(
llm.weight @e : !llm.weight<7x${C}> from [{tensor = "e", type = "F32"}]
llm.weight @w : !llm.weight<${H}x${N}x${K}> from [{tensor = "w", type = "${S}"}]
func.func @step(%batch: !llm.batch) -> tensor<?x${R}xf32> {
  %e = llm.use_weight @e : !llm.weight<7x${C}>
  %w = llm.use_weight @w : !llm.weight<${H}x${N}x${K}>
  %x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<7x${C}> -> tensor<?x${C}xf32>
  %h = llm.split_heads %x : tensor<?x${C}xf32> -> tensor<?x${H}x${K}xf32>
  %p = llm.head_linear %h, %w : tensor<?x${H}x${K}xf32>, !llm.weight<${H}x${N}x${K}> -> tensor<?x${H}x${N}xf32>
  %a = llm.activation tanh %p : tensor<?x${H}x${N}xf32>
  %y = llm.merge_heads %a : tensor<?x${H}x${N}xf32> -> tensor<?x${R}xf32>
  return %y : tensor<?x${R}xf32>
})mlir",
              {{"H", text(heads)},
               {"N", text(outputs)},
               {"K", text(inputs)},
               {"C", text(heads * inputs)},
               {"R", text(heads * outputs)},
               {"S", stored}});
}

// Inputs are rounded as the form asks: to bf16, or to sixteen bits of a group.
float toleranceOf(const std::string &stored) { return stored == "BF16" ? 2e-2f : stored == "F32" ? 1e-5f : 1e-3f; }

void check(const std::string &module, const std::string &stored, const std::string &what, bool allWays = false) {
  SCOPED_TRACE(what + " " + stored);
  LoweredOptions options;
  options.weights = "stored";
  options.maxTokens = 256;
  LoweredModule lowered(module, options);
  if (::testing::Test::HasFailure())
    return;
  const std::vector<int> lengths = {40, 1, 3};
  Matrix expected = lowered.interpret(lengths), tasks = lowered.interpretTasks(lengths);
  expectClose(tasks, expected, toleranceOf(stored), "tasks");
  for (const Way &way : allWays ? runnableWays() : fewWays()) {
    Matrix compiled = lowered.runCompiled(lengths, way, 1);
    // Matrix tiles add bf16 products in another order; the softmax is a polynomial here.
    expectClose(compiled, tasks, stored == "BF16" ? 2e-3f : 2e-5f, nameOf(way));
    for (int workers : {2, 5})
      EXPECT_EQ(lowered.runCompiled(lengths, way, workers).values, compiled.values) << nameOf(way) << " " << workers;
    // Rows alone, and in another batch.
    for (const std::vector<int> &other : std::vector<std::vector<int>>{{1}, {2}, {13}, {40, 100}}) {
      Matrix alone = lowered.runCompiled(other, way, 3);
      for (int64_t row = 0; row < other.front(); ++row)
        EXPECT_TRUE(std::ranges::equal(alone.row(row), compiled.row(row)))
            << nameOf(way) << " row " << row << " of " << other.front();
    }
  }
}

} // namespace

// Stored forms: f32, bf16, i8, i4, i4m, f4, f8.
TEST(LoweredExperts, Forms) {
  for (const char *stored : {"F32", "BF16", "Q8_0", "Q4_0", "Q4_1", "NVFP4", "MXFP8"})
    check(expertsModule({6, 96, 64, 3}, stored), stored, "experts");
}

TEST(LoweredExperts, OddShapes) {
  check(expertsModule({1, 1, 1, 1}, "F32"), "F32", "one of everything");
  check(expertsModule({5, 23, 37, 2}, "F32"), "F32", "primes");
  check(expertsModule({5, 65, 63, 5}, "BF16"), "BF16", "beside a tile, every expert");
  check(expertsModule({37, 48, 33, 7}, "Q8_0"), "Q8_0", "more experts than rows");
}

// A slot whose expert another rank holds is 0, its bias too, before what stands behind the product.
TEST(LoweredExperts, ExpertsOfOtherRanks) {
  for (const char *stored : {"F32", "BF16", "Q8_0", "Q4_1"})
    check(expertsModule({3, 96, 64, 4, 9, 2}, stored), stored, "three of nine");
  check(expertsModule({1, 23, 37, 2, 5, 4}, "F32"), "F32", "the last one");
  check(expertsModule({2, 64, 64, 1, 40, 40}, "F32"), "F32", "none that is named");
}

TEST(LoweredExperts, HeadLinear) {
  for (const char *stored : {"F32", "BF16", "Q8_0", "Q4_0", "Q4_1", "NVFP4", "MXFP8"})
    check(headsModule(3, 96, 32, stored), stored, "heads");
  check(headsModule(1, 1, 1, "F32"), "F32", "one of everything");
  check(headsModule(5, 17, 13, "BF16"), "BF16", "primes");
}
