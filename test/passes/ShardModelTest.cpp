// Random programs shared by random ranks compute what they compute alone.
#include "lib/reference/LlmInterpreter.h"
#include "lib/weights/WeightReader.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "runtime/collective/SimulatedRanks.h"
#include "test/lib/reference/TestModule.h"
#include "test/lib/weights/MemoryTensors.h"
#include <gtest/gtest.h>
#include <numeric>

namespace llmc {
namespace {

using reference::Matrix;

std::string text(int64_t number) { return std::to_string(number); }
std::string rows(int64_t channels) { return "tensor<?x" + text(channels) + "xf32>"; }
std::string rows(int64_t heads, int64_t channels) { return "tensor<?x" + text(heads) + "x" + text(channels) + "xf32>"; }
std::string weightType(const std::vector<int64_t> &shape) {
  std::string type = "!llm.weight<";
  for (size_t i = 0; i < shape.size(); ++i)
    type += (i ? "x" : "") + text(shape[i]);
  return type + ">";
}

// One function with random blocks over a residual stream, called once.
class Layer {
public:
  Layer(int64_t number, int64_t width, std::mt19937 &random) : number(number), width(width), random(random) {}

  std::string stream = "%x";
  std::string body, symbols, arguments, uses, operands, types;
  std::vector<std::pair<std::string, std::vector<int64_t>>> weights;

  void attention() {
    int64_t size = 4 * pick(1, 3), keys = pick(1, 4), heads = keys * pick(1, 3);
    std::string x = norm(stream, width);
    std::string state = newState("!llm.kv<" + text(keys) + "x" + text(size) + "xf32>");
    std::string q, k, v;
    if (flip()) {
      // One product, taken apart.
      std::string all = linear(x, width, (heads + 2 * keys) * size, flip());
      auto part = [&](int64_t from, int64_t count) {
        return op("llm.slice " + all + " at " + text(from * size) + " : " + rows((heads + 2 * keys) * size) + " -> " +
                  rows(count * size));
      };
      q = part(0, heads), k = part(heads, keys), v = part(heads + keys, keys);
    } else {
      bool bias = flip();
      q = linear(x, width, heads * size, bias), k = linear(x, width, keys * size, bias),
      v = linear(x, width, keys * size, bias);
    }
    bool overAll = flip();
    if (overAll)
      q = norm(q, heads * size);
    q = split(q, heads, size), k = split(k, keys, size), v = split(v, keys, size);
    if (!overAll && flip())
      q = op("llm.rms_norm " + q + ", " + weight({size}) + " {eps = 1.0e-5 : f32} : " + rows(heads, size) + ", " +
             weightType({size}));
    std::string grown = op("llm.kv_append " + state + ", " + k + ", " + v + ", %batch : !llm.kv<" + text(keys) + "x" +
                           text(size) + "xf32>, " + rows(keys, size));
    std::string sinks = flip() ? " sinks " + weight({heads}) + " : " + weightType({heads}) : "", alibi;
    if (flip()) {
      for (int64_t head = 0; head < heads; ++head)
        alibi += (head ? ", " : "") + text(1 + head) + ".0e-2";
      alibi = ", alibi = array<f32: " + alibi + ">";
    }
    std::string o = op("llm.attention " + q + ", " + grown + ", %batch" + sinks +
                       " {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64" + alibi +
                       "} : " + rows(heads, size) + ", !llm.kv<" + text(keys) + "x" + text(size) + "xf32>");
    if (flip()) {
      std::string gate = op("llm.activation sigmoid " + linear(x, width, heads, false) + " : " + rows(heads));
      o = op("llm.multiply " + o + ", " + gate + " : " + rows(heads, size) + ", " + rows(heads));
    }
    add(linear(merge(o, heads, size), heads * size, width, flip()));
  }

  void feedForward() {
    int64_t inner = pick(1, 9) * (flip() ? 8 : 1);
    std::string x = norm(stream, width), h = linear(x, width, inner, flip());
    if (flip())
      h = op("llm.gated_activation silu " + h + ", " + linear(x, width, inner, false) + " : " + rows(inner));
    else
      h = op("llm.activation gelu " + h + " : " + rows(inner));
    if (flip())
      h = op("llm.affine " + h + " gain " + weight({inner}) + " : " + rows(inner) + " gain " + weightType({inner}));
    add(linear(h, inner, width, flip()));
  }

  void mixture() {
    int64_t experts = pick(3, 9), chosen = pick(1, 3), inner = 4 * pick(1, 4);
    std::string x = norm(stream, width), named = "%e" + text(next++), scores = linear(x, width, experts, false);
    std::string factors = "%f" + text(next++);
    body += "  " + factors + ", " + named + " = llm.router softmax " + scores + " {top_k = " + text(chosen) +
            " : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, norm_eps = 0.0 : "
            "f32, scale = 1.5 : f32, jitter = 0.0 : f32} : " +
            rows(experts) + " -> " + rows(chosen) + "\n";
    auto product = [&](const std::string &input, int64_t from, int64_t to, bool slots, bool bias) {
      std::string w = weight({experts, to, from}), b = bias ? " bias " + weight({experts, to}) : "";
      return op("llm.expert_linear " + input + ", " + w + ", " + named + b + " : " +
                (slots ? rows(chosen, from) : rows(from)) + ", " + weightType({experts, to, from}) + ", " +
                rows(chosen) + (bias ? ", " + weightType({experts, to}) : "") + " -> " + rows(chosen, to));
    };
    std::string h = product(x, width, inner, false, flip());
    h = op("llm.activation silu " + h + " : " + rows(chosen, inner));
    h = product(h, inner, width, true, flip());
    std::string y = op("llm.combine " + h + ", " + factors + " : " + rows(chosen, width) + ", " + rows(chosen) +
                       " -> " + rows(width));
    if (flip()) {
      std::string s = linear(op("llm.activation relu2 " + linear(x, width, inner, false) + " : " + rows(inner)), inner,
                             width, false);
      y = op("llm.add " + y + ", " + s + " : " + rows(width));
    }
    if (flip())
      y = op("llm.scale " + y + " {factor = 0.5 : f32} : " + rows(width));
    if (flip())
      y = norm(y, width);
    add(y);
  }

  void recurrent() {
    int64_t keys = pick(1, 3), heads = keys * pick(1, 3), size = 16, channels = (2 * keys + heads) * size;
    std::string x = norm(stream, width);
    std::string conv = newState("!llm.recurrent<1x" + text(channels) + "x2>"),
                memory = newState("!llm.recurrent<" + text(heads) + "x16x16>");
    std::string c = linear(x, width, channels, false);
    c = op("llm.short_conv " + c + ", " + weight({channels, 3}) + ", " + conv + ", %batch : " + rows(channels) + ", " +
           weightType({channels, 3}) + ", !llm.recurrent<1x" + text(channels) + "x2>");
    auto part = [&](int64_t from, int64_t count) {
      std::string flat =
          op("llm.slice " + c + " at " + text(from * size) + " : " + rows(channels) + " -> " + rows(count * size));
      return split(flat, count, size);
    };
    // Of length one, as the delta rule wants them: others make rounding grow from row to row.
    auto unit = [&](const std::string &value) {
      std::string normed = op("llm.rms_norm " + value + " {eps = 1.0e-5 : f32} : " + rows(keys, size));
      return op("llm.scale " + normed + " {factor = 0.25 : f32} : " + rows(keys, size));
    };
    std::string q = unit(part(0, keys)), k = unit(part(keys, keys)), v = part(2 * keys, heads);
    std::string decay = op("llm.activation sigmoid " + linear(x, width, heads, flip()) + " : " + rows(heads));
    std::string beta =
        flip() ? op("llm.activation sigmoid " + linear(x, width, heads, false) + " : " + rows(heads)) : "";
    std::string o = op("llm.linear_attention " + q + ", " + k + ", " + v + " decay " + decay +
                       (beta.empty() ? "" : " beta " + beta) + ", " + memory + ", %batch : " + rows(keys, size) + ", " +
                       rows(heads, size) + " decay " + rows(heads) + (beta.empty() ? "" : " beta " + rows(heads)) +
                       ", !llm.recurrent<" + text(heads) + "x16x16>");
    std::string y = merge(o, heads, size);
    if (flip()) {
      // A norm over all heads, told as one head, or over several of them.
      int64_t groups = flip() ? 1 : heads % 2 == 0 ? 2 : keys, width = heads * size / groups;
      std::string grouped = split(y, groups, width);
      y = merge(op("llm.rms_norm " + grouped + " {eps = 1.0e-5 : f32} : " + rows(groups, width)), groups, width);
    }
    add(linear(y, heads * size, width, false));
  }

private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  bool flip() { return random() % 2 == 0; }
  std::string op(const std::string &what) {
    std::string name = "%v" + text(next++);
    body += "  " + name + " = " + what + "\n";
    return name;
  }
  // An argument of the layer for a symbol of its own.
  std::string argument(const std::string &kind, const std::string &type, const std::string &symbol) {
    std::string name = "%a" + text(next++), use = "%u" + text(number) + "_" + text(next++);
    arguments += ", " + name + ": " + type;
    uses += "  " + use + " = llm.use_" + kind + " @" + symbol + " : " + type + "\n";
    operands += ", " + use;
    types += ", " + type;
    return name;
  }
  std::string weight(std::vector<int64_t> shape) {
    std::string symbol = "w" + text(number) + "_" + text(next++), type = weightType(shape);
    symbols += "llm.weight @" + symbol + " : " + type + " from [{tensor = \"" + symbol + "\"}]\n";
    weights.emplace_back(symbol, shape);
    return argument("weight", type, symbol);
  }
  std::string newState(const std::string &type) {
    std::string symbol = "s" + text(number) + "_" + text(next++);
    symbols += "llm.state @" + symbol + " : " + type + "\n";
    return argument("state", type, symbol);
  }
  std::string linear(const std::string &input, int64_t from, int64_t to, bool bias) {
    std::string w = weight({to, from}), b = bias ? " bias " + weight({to}) : "";
    return op("llm.linear " + input + ", " + w + b + " : " + rows(from) + ", " + weightType({to, from}) +
              (bias ? ", " + weightType({to}) : "") + " -> " + rows(to));
  }
  std::string norm(const std::string &input, int64_t channels) {
    return op("llm.rms_norm " + input + ", " + weight({channels}) + " {eps = 1.0e-5 : f32} : " + rows(channels) + ", " +
              weightType({channels}));
  }
  std::string split(const std::string &input, int64_t heads, int64_t size) {
    return op("llm.split_heads " + input + " : " + rows(heads * size) + " -> " + rows(heads, size));
  }
  std::string merge(const std::string &input, int64_t heads, int64_t size) {
    return op("llm.merge_heads " + input + " : " + rows(heads, size) + " -> " + rows(heads * size));
  }
  void add(const std::string &value) { stream = op("llm.add " + stream + ", " + value + " : " + rows(width)); }

  int64_t number, width, next = 0;
  std::mt19937 &random;
};

struct Program {
  std::string text;
  test::MemoryTensors tensors;
  int64_t layers = 0;
};

Program randomProgram(unsigned seed) {
  std::mt19937 random(seed);
  Program program;
  int64_t width = 8 * (2 + static_cast<int64_t>(random() % 4)), vocabulary = 17 + static_cast<int64_t>(random() % 40);
  program.layers = 1 + static_cast<int64_t>(random() % 3);
  std::string symbols =
                  "llm.weight @embedding : " + weightType({vocabulary, width}) + " from [{tensor = \"embedding\"}]\n",
              functions;
  std::string step = "  %w = llm.use_weight @embedding : " + weightType({vocabulary, width}) +
                     "\n  %h0 = llm.embedding %batch, %w {scale = 1.0 : f32} : " + weightType({vocabulary, width}) +
                     " -> " + rows(width) + "\n";
  auto addTensor = [&](const std::string &name, const std::vector<int64_t> &shape) {
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    std::vector<float> values(static_cast<size_t>(count));
    std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(shape.back())));
    for (float &value : values)
      value = (shape.size() == 1 ? 1.0f : 0.0f) + normal(random);
    program.tensors.addFloats(name, shape, values);
  };
  addTensor("embedding", {vocabulary, width});
  for (int64_t i = 0; i < program.layers; ++i) {
    Layer layer(i, width, random);
    for (uint64_t block = 0; block < 1 + random() % 2; ++block)
      switch (random() % 4) {
      case 0:
        layer.attention();
        break;
      case 1:
        layer.feedForward();
        break;
      case 2:
        layer.mixture();
        break;
      default:
        layer.recurrent();
        break;
      }
    for (const auto &[name, shape] : layer.weights)
      addTensor(name, shape);
    symbols += layer.symbols;
    functions += "func.func private @layer" + text(i) + "(%x: " + rows(width) + ", %batch: !llm.batch" +
                 layer.arguments + ") -> " + rows(width) + " {\n" + layer.body + "  return " + layer.stream + " : " +
                 rows(width) + "\n}\n";
    step += layer.uses + "  %h" + text(i + 1) + " = call @layer" + text(i) + "(%h" + text(i) + ", %batch" +
            layer.operands + ") : (" + rows(width) + ", !llm.batch" + layer.types + ") -> " + rows(width) + "\n";
  }
  step += "  %l = llm.linear %h" + text(program.layers) + ", %w : " + rows(width) + ", " +
          weightType({vocabulary, width}) + " -> " + rows(vocabulary) + "\n";
  program.text = symbols + functions + "func.func @step(%batch: !llm.batch) -> " + rows(vocabulary) + " {\n" + step +
                 "  return %l : " + rows(vocabulary) + "\n}\n";
  return program;
}

// What a rank has of each weight, out of whole tensors.
class PartWeights : public reference::WeightProvider {
public:
  explicit PartWeights(const test::MemoryTensors &tensors) : tensors(tensors) {}
  mlir::FailureOr<std::shared_ptr<const Matrix>> weight(llm::WeightOp op) override {
    WeightRecipe recipe = recipeOf(op);
    if (recipe.sources[0].isConstant()) // the negated number of the rank's first expert
      return std::make_shared<const Matrix>(1, 1, std::vector<float>{constant(recipe)});
    StatusOr<WeightReader> reader = WeightReader::open(recipe, tensors);
    if (!reader.ok())
      return op.emitOpError() << reader.status().message();
    bool isVector = recipe.shape.size() == 1;
    Matrix matrix = isVector ? Matrix(1, reader->numRows()) : Matrix(reader->numRows(), reader->rowLength());
    std::vector<int64_t> all(static_cast<size_t>(reader->numRows()));
    std::iota(all.begin(), all.end(), 0);
    if (Status status = reader->readRows(all, matrix.values.data()); !status.ok())
      return op.emitOpError() << status.message();
    return std::make_shared<const Matrix>(std::move(matrix));
  }

private:
  static float constant(const WeightRecipe &recipe) {
    const char *at = recipe.sources[0].tensor.c_str() + constantPrefix.size() + 1;
    for (int64_t skip = recipe.taken[0][0].first; skip > 0; --skip)
      at = std::strchr(at, ',') + 1;
    return std::strtof(at, nullptr);
  }
  const test::MemoryTensors &tensors;
};

const std::vector<std::vector<std::vector<int32_t>>> chunks = {{{3, 1, 4, 1, 5}, {9, 2}}, {{6}, {}}, {{5, 3, 5}, {8}}};

// Logits of all chunks, one after another.
StatusOr<std::vector<float>> logitsOf(reference::TestModule &module, const test::MemoryTensors &tensors,
                                      Transport *transport) {
  PartWeights weights(tensors);
  auto interpreter = reference::LlmInterpreter::create(*module, weights, transport);
  if (failed(interpreter))
    return Status::error(module.error());
  std::vector<float> logits;
  for (const auto &chunk : chunks) {
    auto output = interpreter->step({chunk});
    if (failed(output))
      return Status::error(module.error());
    for (const Matrix &matrix : output->logits)
      logits.insert(logits.end(), matrix.values.begin(), matrix.values.end());
  }
  return logits;
}

StatusOr<std::vector<float>> sharedLogits(const Program &program, const ShardModelPassOptions &options, int32_t ranks) {
  std::vector<std::vector<float>> logits(static_cast<size_t>(ranks));
  SimulatedRanks simulated(
      {static_cast<int32_t>(options.stages), static_cast<int32_t>(options.experts * options.tensor)});
  LLMC_RETURN_IF_ERROR(simulated.run([&](Transport &transport) -> Status {
    reference::TestModule module(program.text);
    ShardModelPassOptions own = options;
    own.rank = transport.number();
    mlir::PassManager manager((*module).getContext());
    manager.addPass(createShardModelPass(own));
    if (failed(manager.run(*module)))
      return Status::error(module.error());
    LLMC_ASSIGN_OR_RETURN(logits[static_cast<size_t>(own.rank)], logitsOf(module, program.tensors, &transport));
    return {};
  }));
  for (const std::vector<float> &other : logits)
    if (other != logits[0])
      return Status::error("ranks have different logits");
  return logits[0];
}

TEST(ShardModel, RandomProgramsOnRandomRanksComputeTheSame) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    Program program = randomProgram(seed);
    std::mt19937 random(1000 + seed);
    auto upTo = [&](uint64_t most) { return 1 + static_cast<int64_t>(random() % most); };
    ShardModelPassOptions options;
    options.stages = upTo(static_cast<uint64_t>(program.layers));
    options.experts = upTo(4);
    options.tensor = upTo(options.experts > 2 ? 2 : 7);
    auto ranks = static_cast<int32_t>(options.stages * options.experts * options.tensor);
    std::string where = "seed " + text(seed) + ", " + text(options.stages) + " stages of " + text(options.experts) +
                        " x " + text(options.tensor);
    reference::TestModule whole(program.text);
    ASSERT_TRUE(whole.ok()) << where << ": " << whole.error() << "\n" << program.text;
    StatusOr<std::vector<float>> expected = logitsOf(whole, program.tensors, nullptr);
    ASSERT_TRUE(expected.ok()) << where << ": " << expected.status().message();
    StatusOr<std::vector<float>> actual = sharedLogits(program, options, ranks);
    ASSERT_TRUE(actual.ok()) << where << ": " << actual.status().message();
    ASSERT_EQ(actual->size(), expected->size());
    float largest = 0;
    for (float value : *expected)
      largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected->size(); ++i)
      ASSERT_NEAR((*actual)[i], (*expected)[i], 2e-5f * largest) << where << ", number " << i << "\n" << program.text;
  }
}

} // namespace
} // namespace llmc
