// A module from its llm form to the tokens of the engine, without an importer: models whose sequences keep recurrent
// state, alone and beside a cache. Against the reference interpreter, and to the bit for any batch, chunks and threads.
#include "lib/reference/LlmInterpreter.h"
#include "runtime/engine/Engine.h"
#include "test/lib/codegen/cpu/CompiledModel.h"
#include "test/lib/weights/MemoryTensors.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

// Two layers of a convolution with a delta rule behind it, and a selective scan; where asked for, one with attention.
const char *kModel = R"mlir(
llm.weight @embedding : !llm.weight<40x32> from [{tensor = "embedding"}]
llm.weight @taps0 : !llm.weight<32x4> from [{tensor = "taps0"}]
llm.weight @taps1 : !llm.weight<32x4> from [{tensor = "taps1"}]
llm.weight @bias : !llm.weight<32> from [{tensor = "bias"}]
llm.weight @query : !llm.weight<16x32> from [{tensor = "query"}]
llm.weight @key : !llm.weight<16x32> from [{tensor = "key"}]
llm.weight @value : !llm.weight<96x32> from [{tensor = "value"}]
llm.weight @decay : !llm.weight<4x32> from [{tensor = "decay"}]
llm.weight @beta : !llm.weight<4x32> from [{tensor = "beta"}]
llm.weight @output : !llm.weight<32x96> from [{tensor = "output"}]
llm.weight @scan_decay : !llm.weight<512x32> from [{tensor = "scan_decay"}]
llm.state @taps_of0 : !llm.recurrent<1x32x3>
llm.state @taps_of1 : !llm.recurrent<1x32x3>
llm.state @memory0 : !llm.recurrent<4x8x24>
llm.state @memory1 : !llm.recurrent<4x8x24>
llm.state @scan : !llm.recurrent<32x16x1>
${CACHE}
func.func private @delta(%x: tensor<?x32xf32>, %batch: !llm.batch, %taps: !llm.weight<32x4>, %bias: !llm.weight<32>, %wq: !llm.weight<16x32>, %wk: !llm.weight<16x32>, %wv: !llm.weight<96x32>, %wa: !llm.weight<4x32>, %wb: !llm.weight<4x32>, %wo: !llm.weight<32x96>, %inputs: !llm.recurrent<1x32x3>, %memory: !llm.recurrent<4x8x24>) -> tensor<?x32xf32> {
  %c = llm.short_conv %x, %taps bias %bias, %inputs, %batch : tensor<?x32xf32>, !llm.weight<32x4> bias !llm.weight<32>, !llm.recurrent<1x32x3>
  %q = llm.linear %c, %wq : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %k = llm.linear %c, %wk : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %v = llm.linear %c, %wv : tensor<?x32xf32>, !llm.weight<96x32> -> tensor<?x96xf32>
  %a = llm.linear %x, %wa : tensor<?x32xf32>, !llm.weight<4x32> -> tensor<?x4xf32>
  %b = llm.linear %x, %wb : tensor<?x32xf32>, !llm.weight<4x32> -> tensor<?x4xf32>
  %qh = llm.split_heads %q : tensor<?x16xf32> -> tensor<?x2x8xf32>
  %kh = llm.split_heads %k : tensor<?x16xf32> -> tensor<?x2x8xf32>
  %vh = llm.split_heads %v : tensor<?x96xf32> -> tensor<?x4x24xf32>
  %o = llm.linear_attention %qh, %kh, %vh decay %a beta %b, %memory, %batch : tensor<?x2x8xf32>, tensor<?x4x24xf32> decay tensor<?x4xf32> beta tensor<?x4xf32>, !llm.recurrent<4x8x24>
  %m = llm.merge_heads %o : tensor<?x4x24xf32> -> tensor<?x96xf32>
  %y = llm.linear %m, %wo : tensor<?x96xf32>, !llm.weight<32x96> -> tensor<?x32xf32>
  %r = llm.add %x, %y : tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}
func.func private @scan_layer(%x: tensor<?x32xf32>, %batch: !llm.batch, %wq: !llm.weight<16x32>, %wk: !llm.weight<16x32>, %wa: !llm.weight<512x32>, %memory: !llm.recurrent<32x16x1>) -> tensor<?x32xf32> {
  %q = llm.linear %x, %wq : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %k = llm.linear %x, %wk : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %a = llm.linear %x, %wa : tensor<?x32xf32>, !llm.weight<512x32> -> tensor<?x512xf32>
  %qh = llm.split_heads %q : tensor<?x16xf32> -> tensor<?x1x16xf32>
  %kh = llm.split_heads %k : tensor<?x16xf32> -> tensor<?x1x16xf32>
  %vh = llm.split_heads %x : tensor<?x32xf32> -> tensor<?x32x1xf32>
  %ah = llm.split_heads %a : tensor<?x512xf32> -> tensor<?x32x16xf32>
  %o = llm.linear_attention %qh, %kh, %vh decay %ah, %memory, %batch : tensor<?x1x16xf32>, tensor<?x32x1xf32> decay tensor<?x32x16xf32>, !llm.recurrent<32x16x1>
  %m = llm.merge_heads %o : tensor<?x32x1xf32> -> tensor<?x32xf32>
  %r = llm.add %x, %m : tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x40xf32> {
  %e = llm.use_weight @embedding : !llm.weight<40x32>
  %x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<40x32> -> tensor<?x32xf32>
  %t0 = llm.use_weight @taps0 : !llm.weight<32x4>
  %t1 = llm.use_weight @taps1 : !llm.weight<32x4>
  %bias = llm.use_weight @bias : !llm.weight<32>
  %wq = llm.use_weight @query : !llm.weight<16x32>
  %wk = llm.use_weight @key : !llm.weight<16x32>
  %wv = llm.use_weight @value : !llm.weight<96x32>
  %wa = llm.use_weight @decay : !llm.weight<4x32>
  %wb = llm.use_weight @beta : !llm.weight<4x32>
  %wo = llm.use_weight @output : !llm.weight<32x96>
  %ws = llm.use_weight @scan_decay : !llm.weight<512x32>
  %s0 = llm.use_state @taps_of0 : !llm.recurrent<1x32x3>
  %s1 = llm.use_state @taps_of1 : !llm.recurrent<1x32x3>
  %m0 = llm.use_state @memory0 : !llm.recurrent<4x8x24>
  %m1 = llm.use_state @memory1 : !llm.recurrent<4x8x24>
  %m2 = llm.use_state @scan : !llm.recurrent<32x16x1>
  %h0 = call @delta(%x, %batch, %t0, %bias, %wq, %wk, %wv, %wa, %wb, %wo, %s0, %m0) : (tensor<?x32xf32>, !llm.batch, !llm.weight<32x4>, !llm.weight<32>, !llm.weight<16x32>, !llm.weight<16x32>, !llm.weight<96x32>, !llm.weight<4x32>, !llm.weight<4x32>, !llm.weight<32x96>, !llm.recurrent<1x32x3>, !llm.recurrent<4x8x24>) -> tensor<?x32xf32>
  %h1 = call @scan_layer(%h0, %batch, %wq, %wk, %ws, %m2) : (tensor<?x32xf32>, !llm.batch, !llm.weight<16x32>, !llm.weight<16x32>, !llm.weight<512x32>, !llm.recurrent<32x16x1>) -> tensor<?x32xf32>
  %h2 = call @delta(%h1, %batch, %t1, %bias, %wq, %wk, %wv, %wa, %wb, %wo, %s1, %m1) : (tensor<?x32xf32>, !llm.batch, !llm.weight<32x4>, !llm.weight<32>, !llm.weight<16x32>, !llm.weight<16x32>, !llm.weight<96x32>, !llm.weight<4x32>, !llm.weight<4x32>, !llm.weight<32x96>, !llm.recurrent<1x32x3>, !llm.recurrent<4x8x24>) -> tensor<?x32xf32>
  ${ATTEND}
  %wanted = llm.select_rows ${LAST}, %batch : tensor<?x32xf32>
  %logits = llm.linear %wanted, %e : tensor<?x32xf32>, !llm.weight<40x32> -> tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}
)mlir";

const char *kAttend = R"mlir(%kv = llm.use_state @kv : !llm.kv<1x16xf32>
  %h3 = call @attend(%h2, %batch, %wq, %wk, %kv) : (tensor<?x32xf32>, !llm.batch, !llm.weight<16x32>, !llm.weight<16x32>, !llm.kv<1x16xf32>) -> tensor<?x32xf32>)mlir";

const char *kCache = R"mlir(llm.state @kv : !llm.kv<1x16xf32>
func.func private @attend(%x: tensor<?x32xf32>, %batch: !llm.batch, %wq: !llm.weight<16x32>, %wk: !llm.weight<16x32>, %kv: !llm.kv<1x16xf32>) -> tensor<?x32xf32> {
  %q = llm.linear %x, %wq : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %k = llm.linear %x, %wk : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %qh = llm.split_heads %x : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %kh = llm.split_heads %k : tensor<?x16xf32> -> tensor<?x1x16xf32>
  %vh = llm.split_heads %q : tensor<?x16xf32> -> tensor<?x1x16xf32>
  %grown = llm.kv_append %kv, %kh, %vh, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  %o = llm.attention %qh, %grown, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x16xf32>, !llm.kv<1x16xf32>
  %m = llm.merge_heads %o : tensor<?x2x16xf32> -> tensor<?x32xf32>
  %r = llm.add %x, %m : tensor<?x32xf32>
  return %r : tensor<?x32xf32>
})mlir";

std::string modelText(bool hasAttention) {
  std::string text = kModel;
  for (const auto &[name, value] : {std::pair<std::string, std::string>{"${CACHE}", hasAttention ? kCache : ""},
                                    {"${ATTEND}", hasAttention ? kAttend : ""},
                                    {"${LAST}", hasAttention ? "%h3" : "%h2"}})
    text.replace(text.find(name), name.size(), value);
  return text;
}

// The module with tensors for its weights.
class Model {
public:
  explicit Model(bool hasAttention) : model_(modelText(hasAttention)) {
    unsigned seed = 1;
    for (auto weight : module().getOps<llm::WeightOp>()) {
      auto shape = weight.getType().getShape();
      std::vector<float> values =
          gaussian(std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()), seed++);
      // Large enough for logits that differ; factors of the state stay below 1, or it would grow.
      llvm::StringRef name = weight.getSymName();
      bool isFactor = name.contains("decay") || name == "beta";
      for (float &value : values)
        value *= name == "embedding" ? 20 : isFactor ? 1 : 2;
      tensors_.addFloats(weight.getSymName().str(), {shape.begin(), shape.end()}, std::move(values));
    }
  }
  mlir::ModuleOp module() { return model_.module(); }
  const MemoryTensors &tensors() const { return tensors_; }

private:
  TextModel model_;
  MemoryTensors tensors_;
};

class MemoryModelWeights : public reference::WeightProvider {
public:
  explicit MemoryModelWeights(const MemoryTensors &tensors) : tensors_(tensors) {}
  mlir::FailureOr<std::shared_ptr<const reference::Matrix>> weight(llm::WeightOp op) override {
    auto shape = op.getType().getShape();
    auto matrix = std::make_shared<reference::Matrix>(shape.size() == 2 ? shape[0] : 1, shape.back());
    std::vector<int64_t> rows(static_cast<size_t>(shape[0]));
    std::iota(rows.begin(), rows.end(), 0);
    if (!readWeightRows(recipeOf(op), tensors_, rows, matrix->values.data()).ok())
      return mlir::failure();
    return std::shared_ptr<const reference::Matrix>(matrix);
  }

private:
  const MemoryTensors &tensors_;
};

// Compiles the model into an artifact folder.
void writeModel(bool hasAttention, const std::string &folder) {
  Model model(hasAttention);
  Status written = writeArtifact(compileModule(model.module(), model.tensors()), folder);
  ASSERT_TRUE(written.ok()) << written.message();
}

std::vector<std::vector<int32_t>> prompts() {
  std::vector<std::vector<int32_t>> sequences;
  for (int32_t length : {1, 37, 9, 24, 5, 16, 2}) {
    sequences.emplace_back();
    for (int32_t i = 0; i < length; ++i)
      sequences.back().push_back((i * 7 + length * 3) % kVocabulary);
  }
  return sequences;
}

std::unique_ptr<Engine> load(const std::string &folder, const EngineOptions &options) {
  StatusOr<std::unique_ptr<Engine>> engine = Engine::load(folder, options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.status().message());
  return engine.ok() ? std::move(*engine) : nullptr;
}

using Logits = std::vector<std::vector<float>>; // per sequence

Logits forward(Engine &engine, const ForwardOptions &options) {
  Logits logits(prompts().size());
  Status status = engine.forward(prompts(), options, [&](const ForwardRows &rows) {
    logits[rows.sequence].insert(logits[rows.sequence].end(), rows.logits.begin(), rows.logits.end());
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return logits;
}

std::vector<std::vector<int32_t>> generate(Engine &engine) {
  std::vector<SequenceId> ids;
  for (const std::vector<int32_t> &prompt : prompts()) {
    StatusOr<SequenceId> id = engine.add({prompt, 8});
    EXPECT_TRUE(id.ok()) << id.status().message();
    ids.push_back(*id);
  }
  std::vector<std::vector<int32_t>> answers(ids.size());
  while (!engine.idle())
    for (const Event &event : engine.step())
      answers[static_cast<size_t>(event.sequence - ids.front())].push_back(event.token);
  return answers;
}

void checkModel(bool hasAttention) {
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/model.llmc";
  ASSERT_NO_FATAL_FAILURE(writeModel(hasAttention, folder));
  Model model(hasAttention);
  MemoryModelWeights weights(model.tensors());
  auto interpreter = reference::LlmInterpreter::create(model.module(), weights);
  ASSERT_TRUE(mlir::succeeded(interpreter));
  auto expected = interpreter->step({prompts(), false});
  ASSERT_TRUE(mlir::succeeded(expected));

  std::unique_ptr<Engine> first = load(folder, {1});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->manifest().pageBytes == 0, !hasAttention);
  Logits logits = forward(*first, {});
  std::vector<std::vector<int32_t>> answers = generate(*first);
  for (size_t s = 0; s < logits.size(); ++s) {
    ASSERT_EQ(logits[s].size(), expected->logits[s].values.size());
    for (size_t i = 0; i < logits[s].size(); ++i) // logits of about 10, in f32 throughout
      ASSERT_NEAR(logits[s][i], expected->logits[s].values[i], 1e-3) << "sequence " << s << " logit " << i;
  }
  // Three slots at most: sequences take those that others have left.
  for (auto [threads, sequences, chunk] : {std::tuple(2, 3, 1), std::tuple(3, 2, 5), std::tuple(1, 1, 16)}) {
    std::unique_ptr<Engine> engine = load(folder, {threads, sequences, chunk});
    ASSERT_TRUE(engine);
    for (bool together : {true, false})
      EXPECT_EQ(forward(*engine, {chunk, together}), logits) << threads << " threads, chunks of " << chunk;
    EXPECT_EQ(generate(*engine), answers) << threads << " threads, chunks of " << chunk;
  }
}

} // namespace

TEST(CompiledEngine, RecurrentStateAlone) { checkModel(/*hasAttention=*/false); }

TEST(CompiledEngine, RecurrentStateBesideACache) { checkModel(/*hasAttention=*/true); }
