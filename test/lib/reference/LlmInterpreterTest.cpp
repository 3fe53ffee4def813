// Whole modules through the interpreter: results by hand, the cache from step to step, and every failure.
#include "lib/reference/LlmInterpreter.h"
#include "test/lib/reference/TestModule.h"
#include <cmath>
#include <gtest/gtest.h>

namespace llmc::reference {
using mlir::failed;
using mlir::FailureOr;
using mlir::succeeded;

namespace {

// Embedding, one layer of attention called twice, head: every kind of op that has state.
const char *const model = R"(
  llm.weight @embedding : !llm.weight<5x4> from [{tensor = "e"}]
  llm.weight @fused : !llm.weight<8x4> from [{tensor = "f"}]
  llm.state @kv0 : !llm.kv<1x2xf32>
  llm.state @kv1 : !llm.kv<1x2xf32>
  func.func private @layer(%batch: !llm.batch, %x: tensor<?x4xf32>, %w: !llm.weight<8x4>, %kv: !llm.kv<1x2xf32>) -> tensor<?x4xf32> {
    %q, %k, %v = llm.fused_linear %x, %w : tensor<?x4xf32>, !llm.weight<8x4> -> tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xf32>
    %r = llm.rope_table %batch {frequencies = array<f32: 0.7>, magnitude = 1.0 : f32} : tensor<?x2xf32>
    %q1 = llm.split_heads %q : tensor<?x4xf32> -> tensor<?x2x2xf32>
    %k1 = llm.split_heads %k : tensor<?x2xf32> -> tensor<?x1x2xf32>
    %v1 = llm.split_heads %v : tensor<?x2xf32> -> tensor<?x1x2xf32>
    %q2 = llm.rope %q1, %r : tensor<?x2x2xf32>, tensor<?x2xf32>
    %k2 = llm.rope %k1, %r : tensor<?x1x2xf32>, tensor<?x2xf32>
    %kv1 = llm.kv_append %kv, %k2, %v1, %batch : !llm.kv<1x2xf32>, tensor<?x1x2xf32>
    %o = llm.attention %q2, %kv1, %batch {scale = 0.5 : f32, softcap = 0.0 : f32, window = 3 : i64} : tensor<?x2x2xf32>, !llm.kv<1x2xf32>
    %m = llm.merge_heads %o : tensor<?x2x2xf32> -> tensor<?x4xf32>
    %s = llm.add %x, %m : tensor<?x4xf32>
    return %s : tensor<?x4xf32>
  }
  func.func @step(%batch: !llm.batch) -> tensor<?x5xf32> {
    %e = llm.use_weight @embedding : !llm.weight<5x4>
    %w = llm.use_weight @fused : !llm.weight<8x4>
    %kv0 = llm.use_state @kv0 : !llm.kv<1x2xf32>
    %kv1 = llm.use_state @kv1 : !llm.kv<1x2xf32>
    %x0 = llm.embedding %batch, %e {scale = 2.0 : f32} : !llm.weight<5x4> -> tensor<?x4xf32>
    llm.record %x0, %batch {index = 0 : i64} : tensor<?x4xf32>
    %x1 = func.call @layer(%batch, %x0, %w, %kv0) : (!llm.batch, tensor<?x4xf32>, !llm.weight<8x4>, !llm.kv<1x2xf32>) -> tensor<?x4xf32>
    %x2 = func.call @layer(%batch, %x1, %w, %kv1) : (!llm.batch, tensor<?x4xf32>, !llm.weight<8x4>, !llm.kv<1x2xf32>) -> tensor<?x4xf32>
    llm.record %x2, %batch {index = 2 : i64} : tensor<?x4xf32>
    %r = llm.select_rows %x2, %batch : tensor<?x4xf32>
    %y = llm.linear %r, %e : tensor<?x4xf32>, !llm.weight<5x4> -> tensor<?x5xf32>
    %c = llm.softcap %y {cap = 30.0 : f32} : tensor<?x5xf32>
    return %c : tensor<?x5xf32>
  }
)";

MemoryWeights modelWeights() {
  MemoryWeights weights;
  Matrix embedding(5, 4), fused(8, 4);
  for (size_t i = 0; i < 20; ++i)
    embedding.values[i] = std::sin(float(i));
  for (size_t i = 0; i < 32; ++i)
    fused.values[i] = std::cos(float(i));
  weights.add("embedding", embedding);
  weights.add("fused", fused);
  return weights;
}

StepOutput run(LlmInterpreter &interpreter, std::vector<std::vector<int32_t>> sequences, bool records = false) {
  FailureOr<StepOutput> output = interpreter.step({std::move(sequences), records});
  EXPECT_TRUE(succeeded(output));
  return succeeded(output) ? *output : StepOutput();
}

TEST(LlmInterpreter, ChunksAndCompanyChangeNothing) {
  TestModule module(model);
  ASSERT_TRUE(module.ok()) << module.error();
  MemoryWeights weights = modelWeights();
  FailureOr<LlmInterpreter> whole = LlmInterpreter::create(*module, weights);
  FailureOr<LlmInterpreter> chunked = LlmInterpreter::create(*module, weights);
  ASSERT_TRUE(succeeded(whole) && succeeded(chunked));
  std::vector<float> expected = run(*whole, {{3, 1, 4, 1, 0, 2}}).logits[0].values;
  std::vector<float> actual;
  for (std::vector<int32_t> chunk : {std::vector<int32_t>{3, 1}, {4}, {1, 0, 2}}) {
    // Beside it a sequence that grows in every step, and one that rests in this step.
    StepOutput output = run(*chunked, {{0, 1}, chunk, {}});
    actual.insert(actual.end(), output.logits[1].values.begin(), output.logits[1].values.end());
    EXPECT_EQ(output.logits[2].rows, 0);
  }
  EXPECT_EQ(actual, expected);
}

TEST(LlmInterpreter, RecordsPerSequenceWhenAsked) {
  TestModule module(model);
  MemoryWeights weights = modelWeights();
  FailureOr<LlmInterpreter> interpreter = LlmInterpreter::create(*module, weights);
  ASSERT_TRUE(succeeded(interpreter));
  EXPECT_TRUE(run(*interpreter, {{1}}).records[0].empty());
  StepOutput output = run(*interpreter, {{1}, {2, 0}}, /*records=*/true);
  ASSERT_EQ(output.records[1].size(), 3u);
  EXPECT_EQ(output.records[1][0].rows, 2);
  EXPECT_EQ(output.records[1][0].row(1)[3], 2 * std::sin(3.0f)); // embedding scale times row 0
}

TEST(LlmInterpreter, AFailedStepLeavesTheSequences) {
  TestModule module(model);
  MemoryWeights weights = modelWeights();
  FailureOr<LlmInterpreter> interpreter = LlmInterpreter::create(*module, weights);
  FailureOr<LlmInterpreter> fresh = LlmInterpreter::create(*module, weights);
  ASSERT_TRUE(succeeded(interpreter) && succeeded(fresh));
  run(*interpreter, {{3, 1}});
  EXPECT_TRUE(failed(interpreter->step({{{5}}})));
  EXPECT_EQ(module.error(), "'llm.embedding' op looks up token 5, but the vocabulary has 5");
  run(*fresh, {{3, 1}});
  EXPECT_EQ(run(*interpreter, {{2}}).logits[0].values, run(*fresh, {{2}}).logits[0].values);
}

// What every layer of the models after the first has: a cache of latents that a later layer reads too, an indexer, a
// short convolution, a state per head, and experts.
const char *const stateModel = R"(
  llm.weight @embedding : !llm.weight<5x4> from [{tensor = "e"}]
  llm.weight @filter : !llm.weight<4x3> from [{tensor = "f"}]
  llm.weight @gates : !llm.weight<3x4> from [{tensor = "g"}]
  llm.weight @experts : !llm.weight<3x4x4> from [{tensor = "x"}]
  llm.state @latents : !llm.kv<1x4xf32, latent = 2>
  llm.state @inputs : !llm.recurrent<1x4x2>
  llm.state @memory : !llm.recurrent<2x2x2>
  func.func private @reader(%batch: !llm.batch, %x: tensor<?x4xf32>, %kv: !llm.kv<1x4xf32, latent = 2>) -> tensor<?x4xf32> {
    %q = llm.split_heads %x : tensor<?x4xf32> -> tensor<?x1x4xf32>
    %h = llm.slice %x at 0 : tensor<?x4xf32> -> tensor<?x1xf32>
    %p = llm.select_positions %q, %h, %kv, %batch : tensor<?x1x4xf32>, tensor<?x1xf32>, !llm.kv<1x4xf32, latent = 2> -> tensor<?x3xf32>
    %o = llm.attention %q, %kv, %batch selected %p : tensor<?x3xf32> {scale = 0.5 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x4xf32>, !llm.kv<1x4xf32, latent = 2>
    %m = llm.merge_heads %o : tensor<?x1x2xf32> -> tensor<?x2xf32>
    %c = llm.concat %m, %m : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
    %s = llm.add %x, %c : tensor<?x4xf32>
    return %s : tensor<?x4xf32>
  }
  func.func private @grower(%batch: !llm.batch, %x: tensor<?x4xf32>, %kv: !llm.kv<1x4xf32, latent = 2>) -> tensor<?x4xf32> {
    %k = llm.split_heads %x : tensor<?x4xf32> -> tensor<?x1x4xf32>
    %kv1 = llm.kv_append %kv, %k, %batch : !llm.kv<1x4xf32, latent = 2>, tensor<?x1x4xf32>
    %o = llm.attention %k, %kv1, %batch {scale = 0.5 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 4 : i64} : tensor<?x1x4xf32>, !llm.kv<1x4xf32, latent = 2>
    %m = llm.merge_heads %o : tensor<?x1x2xf32> -> tensor<?x2xf32>
    %c = llm.concat %m, %m : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
    return %c : tensor<?x4xf32>
  }
  func.func private @scan(%batch: !llm.batch, %x: tensor<?x4xf32>, %w: !llm.weight<4x3>, %s: !llm.recurrent<1x4x2>,
                          %m: !llm.recurrent<2x2x2>) -> tensor<?x4xf32> {
    %y = llm.short_conv %x, %w, %s, %batch : tensor<?x4xf32>, !llm.weight<4x3>, !llm.recurrent<1x4x2>
    %v = llm.split_heads %y : tensor<?x4xf32> -> tensor<?x2x2xf32>
    %k = llm.rms_norm %v {eps = 1.0e-6 : f32} : tensor<?x2x2xf32>
    %b = llm.slice %y at 2 : tensor<?x4xf32> -> tensor<?x2xf32>
    %g = llm.activation sigmoid %b : tensor<?x2xf32>
    %o = llm.linear_attention %k, %k, %v decay %g beta %g, %m, %batch : tensor<?x2x2xf32>, tensor<?x2x2xf32> decay tensor<?x2xf32> beta tensor<?x2xf32>, !llm.recurrent<2x2x2>
    %r = llm.merge_heads %o : tensor<?x2x2xf32> -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
  func.func private @moe(%x: tensor<?x4xf32>, %g: !llm.weight<3x4>, %e: !llm.weight<3x4x4>) -> tensor<?x4xf32> {
    %z = llm.linear %x, %g : tensor<?x4xf32>, !llm.weight<3x4> -> tensor<?x3xf32>
    %w, %i = llm.router softmax %z {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x3xf32> -> tensor<?x2xf32>
    %y = llm.expert_linear %x, %e, %i : tensor<?x4xf32>, !llm.weight<3x4x4>, tensor<?x2xf32> -> tensor<?x2x4xf32>
    %z2 = llm.expert_linear %y, %e, %i : tensor<?x2x4xf32>, !llm.weight<3x4x4>, tensor<?x2xf32> -> tensor<?x2x4xf32>
    %s = llm.combine %z2, %w : tensor<?x2x4xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
    return %s : tensor<?x4xf32>
  }
  func.func @step(%batch: !llm.batch) -> tensor<?x5xf32> {
    %e = llm.use_weight @embedding : !llm.weight<5x4>
    %f = llm.use_weight @filter : !llm.weight<4x3>
    %g = llm.use_weight @gates : !llm.weight<3x4>
    %x = llm.use_weight @experts : !llm.weight<3x4x4>
    %kv = llm.use_state @latents : !llm.kv<1x4xf32, latent = 2>
    %s = llm.use_state @inputs : !llm.recurrent<1x4x2>
    %m = llm.use_state @memory : !llm.recurrent<2x2x2>
    %x0 = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<5x4> -> tensor<?x4xf32>
    %x1 = func.call @grower(%batch, %x0, %kv) : (!llm.batch, tensor<?x4xf32>, !llm.kv<1x4xf32, latent = 2>) -> tensor<?x4xf32>
    %x2 = func.call @reader(%batch, %x1, %kv) : (!llm.batch, tensor<?x4xf32>, !llm.kv<1x4xf32, latent = 2>) -> tensor<?x4xf32>
    %x3 = func.call @scan(%batch, %x2, %f, %s, %m) : (!llm.batch, tensor<?x4xf32>, !llm.weight<4x3>, !llm.recurrent<1x4x2>, !llm.recurrent<2x2x2>) -> tensor<?x4xf32>
    %x4 = func.call @moe(%x3, %g, %x) : (tensor<?x4xf32>, !llm.weight<3x4>, !llm.weight<3x4x4>) -> tensor<?x4xf32>
    %y = llm.linear %x4, %e : tensor<?x4xf32>, !llm.weight<5x4> -> tensor<?x5xf32>
    return %y : tensor<?x5xf32>
  }
)";

MemoryWeights stateWeights() {
  MemoryWeights weights;
  auto add = [&](const char *name, int64_t rows, int64_t columns, float first) {
    Matrix matrix(rows, columns);
    for (size_t i = 0; i < matrix.values.size(); ++i)
      matrix.values[i] = std::sin(first + float(i));
    weights.add(name, matrix);
  };
  add("embedding", 5, 4, 0);
  add("filter", 4, 3, 1);
  add("gates", 3, 4, 2);
  add("experts", 12, 4, 3);
  return weights;
}

TEST(LlmInterpreter, ChunksAndCompanyChangeNoState) {
  TestModule module(stateModel);
  ASSERT_TRUE(module.ok()) << module.error();
  MemoryWeights weights = stateWeights();
  FailureOr<LlmInterpreter> whole = LlmInterpreter::create(*module, weights);
  FailureOr<LlmInterpreter> chunked = LlmInterpreter::create(*module, weights);
  ASSERT_TRUE(succeeded(whole) && succeeded(chunked));
  std::vector<float> expected = run(*whole, {{3, 1, 4, 1, 0, 2}}).logits[0].values;
  std::vector<float> actual;
  for (std::vector<int32_t> chunk : {std::vector<int32_t>{3, 1}, {4}, {}, {1, 0, 2}}) {
    StepOutput output = run(*chunked, {{0, 1}, chunk, {}});
    actual.insert(actual.end(), output.logits[1].values.begin(), output.logits[1].values.end());
  }
  EXPECT_EQ(actual, expected);
  for (float x : expected)
    EXPECT_TRUE(std::isfinite(x));
  // The state matters: alone, the last token has other logits.
  FailureOr<LlmInterpreter> fresh = LlmInterpreter::create(*module, weights);
  EXPECT_NE(run(*fresh, {{2}}).logits[0].values, std::vector<float>(expected.end() - 5, expected.end()));
}

// Every value a step has written is taken back: the caches and, since the failure comes after them, both states.
TEST(LlmInterpreter, AFailedStepLeavesEveryState) {
  std::string text = stateModel;
  const std::string last = "%y = llm.linear %x4";
  text.replace(text.find(last), last.size(),
               "%l = llm.embedding %batch, %g {scale = 1.0 : f32} : !llm.weight<3x4> -> tensor<?x4xf32>\n" + last);
  TestModule module(text);
  ASSERT_TRUE(module.ok()) << module.error();
  MemoryWeights weights = stateWeights();
  FailureOr<LlmInterpreter> interpreter = LlmInterpreter::create(*module, weights);
  FailureOr<LlmInterpreter> fresh = LlmInterpreter::create(*module, weights);
  ASSERT_TRUE(succeeded(interpreter) && succeeded(fresh));
  run(*interpreter, {{2, 1}});
  run(*fresh, {{2, 1}});
  EXPECT_TRUE(failed(interpreter->step({{{4, 0}, {1}}})));
  EXPECT_EQ(module.error(), "'llm.embedding' op looks up token 4, but the vocabulary has 3");
  EXPECT_EQ(run(*interpreter, {{0, 2}}).logits[0].values, run(*fresh, {{0, 2}}).logits[0].values);
}

// The error of the first step of a module, or of making the interpreter.
std::string failureOf(const std::string &text, MemoryWeights weights = {}) {
  TestModule module(text);
  if (!module.ok())
    return "does not parse: " + module.error();
  FailureOr<LlmInterpreter> interpreter = LlmInterpreter::create(*module, weights);
  if (succeeded(interpreter))
    EXPECT_TRUE(failed(interpreter->step({{{0}}})));
  return module.error();
}

TEST(LlmInterpreter, SaysWhatIsWrong) {
  EXPECT_EQ(failureOf(""), "module has no function @step with a body");
  EXPECT_EQ(failureOf("func.func @step() { return }"), "@step is '() -> ()', expected (!llm.batch) -> rows of logits");
  const std::string weightStep = R"(
    llm.weight @w : !llm.weight<5x4> from [{tensor = "e"}]
    func.func @step(%batch: !llm.batch) -> tensor<?x4xf32> {
      %e = llm.use_weight @w : !llm.weight<5x4>
      %x = llm.embedding %batch, %e {scale = 2.0 : f32} : !llm.weight<5x4> -> tensor<?x4xf32>
      return %x : tensor<?x4xf32>
    })";
  EXPECT_EQ(failureOf(weightStep), "weight @w has no data");
  MemoryWeights transposed;
  transposed.add("w", Matrix(4, 5));
  EXPECT_EQ(failureOf(weightStep, transposed), "weight @w is 5 x 4, its data 4 x 5");
  EXPECT_EQ(failureOf(R"(
    func.func @step(%batch: !llm.batch) -> tensor<?x4xf32> {
      %x = func.call @step(%batch) : (!llm.batch) -> tensor<?x4xf32>
      return %x : tensor<?x4xf32>
    })"),
            "@step is called 64 levels deep; layers do not recurse");
  EXPECT_EQ(failureOf(R"(
    func.func @step(%batch: !llm.batch) -> tensor<?x4xf32> {
      %x = builtin.unrealized_conversion_cast %batch : !llm.batch to tensor<?x4xf32>
      return %x : tensor<?x4xf32>
    })"),
            "'builtin.unrealized_conversion_cast' op has no reference implementation");
}

TEST(LlmInterpreter, AStateIsReadAfterItsGrowth) {
  MemoryWeights weights;
  weights.add("e", Matrix(5, 2));
  EXPECT_EQ(failureOf(R"(
    llm.weight @e : !llm.weight<5x2> from [{tensor = "e"}]
    llm.state @kv : !llm.kv<1x2xf32>
    func.func private @read(%batch: !llm.batch, %x: tensor<?x1x2xf32>, %kv: !llm.kv<1x2xf32>) {
      %o = llm.attention %x, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x2xf32>, !llm.kv<1x2xf32>
      return
    }
    func.func @step(%batch: !llm.batch) -> tensor<?x2xf32> {
      %w = llm.use_weight @e : !llm.weight<5x2>
      %x = llm.embedding %batch, %w {scale = 2.0 : f32} : !llm.weight<5x2> -> tensor<?x2xf32>
      %h = llm.split_heads %x : tensor<?x2xf32> -> tensor<?x1x2xf32>
      %kv = llm.use_state @kv : !llm.kv<1x2xf32>
      func.call @read(%batch, %h, %kv) : (!llm.batch, tensor<?x1x2xf32>, !llm.kv<1x2xf32>) -> ()
      return %x : tensor<?x2xf32>
    })",
                      weights),
            "'llm.attention' op reads @kv, which this step has not grown");
}

TEST(LlmInterpreter, ARecurrentStateIsUpdatedOncePerStep) {
  MemoryWeights weights;
  weights.add("e", Matrix(5, 2));
  weights.add("w", Matrix(2, 2));
  EXPECT_EQ(failureOf(R"(
    llm.weight @e : !llm.weight<5x2> from [{tensor = "e"}]
    llm.weight @w : !llm.weight<2x2> from [{tensor = "w"}]
    llm.state @s : !llm.recurrent<1x2x1>
    func.func private @update(%batch: !llm.batch, %x: tensor<?x2xf32>, %w: !llm.weight<2x2>, %s: !llm.recurrent<1x2x1>) {
      %y = llm.short_conv %x, %w, %s, %batch : tensor<?x2xf32>, !llm.weight<2x2>, !llm.recurrent<1x2x1>
      return
    }
    func.func @step(%batch: !llm.batch) -> tensor<?x2xf32> {
      %e = llm.use_weight @e : !llm.weight<5x2>
      %w = llm.use_weight @w : !llm.weight<2x2>
      %x = llm.embedding %batch, %e {scale = 2.0 : f32} : !llm.weight<5x2> -> tensor<?x2xf32>
      %s = llm.use_state @s : !llm.recurrent<1x2x1>
      func.call @update(%batch, %x, %w, %s) : (!llm.batch, tensor<?x2xf32>, !llm.weight<2x2>, !llm.recurrent<1x2x1>) -> ()
      func.call @update(%batch, %x, %w, %s) : (!llm.batch, tensor<?x2xf32>, !llm.weight<2x2>, !llm.recurrent<1x2x1>) -> ()
      return %x : tensor<?x2xf32>
    })",
                      weights),
            "'llm.short_conv' op updates @s, which this step has updated already");
}

TEST(LlmInterpreter, AStateGrowsOncePerStep) {
  EXPECT_EQ(failureOf(R"(
    llm.weight @e : !llm.weight<5x2> from [{tensor = "e"}]
    llm.state @kv : !llm.kv<1x2xf32>
    func.func private @grow(%batch: !llm.batch, %x: tensor<?x1x2xf32>, %kv: !llm.kv<1x2xf32>) {
      %a = llm.kv_append %kv, %x, %x, %batch : !llm.kv<1x2xf32>, tensor<?x1x2xf32>
      return
    }
    func.func @step(%batch: !llm.batch) -> tensor<?x2xf32> {
      %w = llm.use_weight @e : !llm.weight<5x2>
      %x = llm.embedding %batch, %w {scale = 2.0 : f32} : !llm.weight<5x2> -> tensor<?x2xf32>
      %h = llm.split_heads %x : tensor<?x2xf32> -> tensor<?x1x2xf32>
      %kv = llm.use_state @kv : !llm.kv<1x2xf32>
      func.call @grow(%batch, %h, %kv) : (!llm.batch, tensor<?x1x2xf32>, !llm.kv<1x2xf32>) -> ()
      func.call @grow(%batch, %h, %kv) : (!llm.batch, tensor<?x1x2xf32>, !llm.kv<1x2xf32>) -> ()
      return %x : tensor<?x2xf32>
    })",
                      [] {
                        MemoryWeights weights;
                        weights.add("e", Matrix(5, 2));
                        return weights;
                      }()),
            "'llm.kv_append' op grows @kv, which this step has grown already");
}

} // namespace
} // namespace llmc::reference
