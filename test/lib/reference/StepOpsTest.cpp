// Ops whose formula is how they take their operands apart: each alone in a module, results by hand.
#include "lib/reference/LlmInterpreter.h"
#include "test/lib/reference/TestModule.h"
#include <cmath>
#include <gtest/gtest.h>

namespace llmc::reference {
using mlir::failed;
using mlir::FailureOr;
using mlir::succeeded;

namespace {

std::vector<float> logitsOf(LlmInterpreter &interpreter, std::vector<int32_t> tokens) {
  FailureOr<StepOutput> output = interpreter.step({{std::move(tokens)}});
  EXPECT_TRUE(succeeded(output));
  return succeeded(output) ? output->logits[0].values : std::vector<float>();
}

// @step over an embedding of two tokens, (1, 2, 3, 4) and (-1, -2, -3, -4).
std::vector<float> evaluated(const std::string &body, std::vector<int32_t> tokens, int64_t channels,
                             Matrix weight = {}) {
  const std::string columns = std::to_string(channels);
  const std::string shape = std::to_string(weight.rows == 1 ? weight.columns : std::max<int64_t>(weight.rows, 1)) +
                            (weight.rows == 1 ? "" : "x" + std::to_string(std::max<int64_t>(weight.columns, 1)));
  TestModule module("llm.weight @e : !llm.weight<2x4> from [{tensor = \"e\"}]\nllm.weight @w : !llm.weight<" + shape +
                    "> from [{tensor = \"w\"}]\nfunc.func @step(%batch: !llm.batch) -> tensor<?x" + columns +
                    "xf32> {\n%e = llm.use_weight @e : !llm.weight<2x4>\n%w = llm.use_weight @w : !llm.weight<" +
                    shape +
                    ">\n%x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<2x4> -> tensor<?x4xf32>\n"
                    "%h = llm.split_heads %x : tensor<?x4xf32> -> tensor<?x2x2xf32>\n" +
                    body + "\nreturn %y : tensor<?x" + columns + "xf32>\n}");
  EXPECT_TRUE(module.ok()) << module.error();
  MemoryWeights weights;
  weights.add("e", Matrix(2, 4, {1, 2, 3, 4, -1, -2, -3, -4}));
  weights.add("w", std::move(weight));
  if (!module.ok())
    return {};
  FailureOr<LlmInterpreter> interpreter = LlmInterpreter::create(*module, weights);
  EXPECT_TRUE(succeeded(interpreter)) << module.error();
  return succeeded(interpreter) ? logitsOf(*interpreter, std::move(tokens)) : std::vector<float>();
}

const std::string merge = "\n%y = llm.merge_heads %r : tensor<?x2x2xf32> -> tensor<?x4xf32>";

TEST(StepOps, MovesChannels) {
  using V = std::vector<float>;
  EXPECT_EQ(evaluated("%y = llm.slice %x at 1 : tensor<?x4xf32> -> tensor<?x2xf32>", {0, 1}, 2), (V{2, 3, -2, -3}));
  EXPECT_EQ(evaluated(R"(%s = llm.slice %h at 1 : tensor<?x2x2xf32> -> tensor<?x2x1xf32>
                         %y = llm.merge_heads %s : tensor<?x2x1xf32> -> tensor<?x2xf32>)",
                      {0}, 2),
            (V{2, 4}));
  EXPECT_EQ(evaluated(R"(%s = llm.slice %h at 1 : tensor<?x2x2xf32> -> tensor<?x2x1xf32>
                         %c = llm.concat %s, %h : tensor<?x2x1xf32>, tensor<?x2x2xf32> -> tensor<?x2x3xf32>
                         %y = llm.merge_heads %c : tensor<?x2x3xf32> -> tensor<?x6xf32>)",
                      {0}, 6),
            (V{2, 1, 2, 4, 3, 4}));
  EXPECT_EQ(evaluated(R"(%s = llm.repeat_heads %h {times = 2 : i64} : tensor<?x2x2xf32> -> tensor<?x4x2xf32>
                         %y = llm.merge_heads %s : tensor<?x4x2xf32> -> tensor<?x8xf32>)",
                      {0}, 8),
            (V{1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST(StepOps, MultipliesByChannelHeadAndRow) {
  using V = std::vector<float>;
  EXPECT_EQ(evaluated("%y = llm.multiply %x, %x : tensor<?x4xf32>, tensor<?x4xf32>", {0}, 4), (V{1, 4, 9, 16}));
  const std::string perHead = R"(%g = llm.slice %x at 2 : tensor<?x4xf32> -> tensor<?x2xf32>
                                 %r = llm.multiply %h, %g : tensor<?x2x2xf32>, tensor<?x2xf32>)";
  EXPECT_EQ(evaluated(perHead + merge, {0}, 4), (V{3, 6, 12, 16}));
  const std::string perRow = R"(%g = llm.slice %x at 3 : tensor<?x4xf32> -> tensor<?x1xf32>
                                %r = llm.multiply %h, %g : tensor<?x2x2xf32>, tensor<?x1xf32>)";
  EXPECT_EQ(evaluated(perRow + merge, {0, 1}, 4), (V{4, 8, 12, 16, 4, 8, 12, 16}));
}

TEST(StepOps, GainsAndOffsets) {
  using V = std::vector<float>;
  EXPECT_EQ(evaluated("%y = llm.affine %x gain %w bias %w : tensor<?x4xf32> gain !llm.weight<4> bias !llm.weight<4>",
                      {0}, 4, Matrix(1, 4, {1, 0, 2, -1})),
            (V{2, 0, 8, -5}));
  const Matrix two(1, 2, {10, 20});
  EXPECT_EQ(evaluated("%r = llm.affine %h gain %w : tensor<?x2x2xf32> gain !llm.weight<2>" + merge, {0}, 4, two),
            (V{10, 40, 30, 80}));
  EXPECT_EQ(
      evaluated("%r = llm.affine %h gain %w {per_head} : tensor<?x2x2xf32> gain !llm.weight<2>" + merge, {0}, 4, two),
      (V{10, 20, 60, 80}));
  EXPECT_EQ(evaluated("%y = llm.affine %x bias %w : tensor<?x4xf32> bias !llm.weight<1>", {0}, 4, Matrix(1, 1, {7})),
            (V{8, 9, 10, 11}));
  EXPECT_EQ(evaluated("%y = llm.scale %x {factor = 2.0 : f32, offset = 0.5 : f32} : tensor<?x4xf32>", {0}, 4),
            (V{2.5f, 4.5f, 6.5f, 8.5f}));
  EXPECT_EQ(evaluated("%y = llm.clamp %x {low = 2.0 : f32, high = 3.0 : f32} : tensor<?x4xf32>", {0, 1}, 4),
            (V{2, 2, 3, 3, 2, 2, 2, 2}));
}

TEST(StepOps, Positions) {
  using V = std::vector<float>;
  // Three rows behind one for nothing: the fourth token finds no row of its own.
  EXPECT_EQ(evaluated("%y = llm.position_embedding %batch, %w {offset = 1 : i64} : !llm.weight<4x2> -> tensor<?x2xf32>",
                      {0, 0, 0, 0}, 2, Matrix(4, 2, {9, 9, 1, 2, 3, 4, 5, 6})),
            (V{1, 2, 3, 4, 5, 6, 5, 6}));
  // And again from the first row on after two.
  EXPECT_EQ(evaluated("%y = llm.position_embedding %batch, %w {offset = 1 : i64, period = 2 : i64} : !llm.weight<4x2> "
                      "-> tensor<?x2xf32>",
                      {0, 0, 0}, 2, Matrix(4, 2, {9, 9, 1, 2, 3, 4, 5, 6})),
            (V{1, 2, 3, 4, 1, 2}));
  V scaled = evaluated("%y = llm.position_scale %x, %batch {scale = 1.0 : f32, period = 2 : i64, offset = 0 : i64} : "
                       "tensor<?x4xf32>",
                       {0, 0, 0}, 4);
  EXPECT_EQ(V(scaled.begin(), scaled.begin() + 8), (V{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_FLOAT_EQ(scaled[8], 1 + std::log(2.0f));
}

TEST(StepOps, ProductsOfExpertsAndHeads) {
  using V = std::vector<float>;
  const std::string text = R"(
    llm.weight @e : !llm.weight<3x2> from [{tensor = "e"}]
    llm.weight @w : !llm.weight<3x1x2> from [{tensor = "w"}]
    llm.weight @b : !llm.weight<3x1> from [{tensor = "b"}]
    func.func @step(%batch: !llm.batch) -> tensor<?x2xf32> {
      %e = llm.use_weight @e : !llm.weight<3x2>
      %w = llm.use_weight @w : !llm.weight<3x1x2>
      %b = llm.use_weight @b : !llm.weight<3x1>
      %x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<3x2> -> tensor<?x2xf32>
      %r = llm.expert_linear %x, %w, %x bias %b : tensor<?x2xf32>, !llm.weight<3x1x2>, tensor<?x2xf32>, !llm.weight<3x1> -> tensor<?x2x1xf32>
      %y = llm.merge_heads %r : tensor<?x2x1xf32> -> tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    })";
  TestModule module(text);
  ASSERT_TRUE(module.ok()) << module.error();
  MemoryWeights weights;
  weights.add("e", Matrix(3, 2, {2, 0, 1, 1, 3, 0}));
  weights.add("w", Matrix(3, 2, {1, 10, 2, 20, 3, 30}));
  weights.add("b", Matrix(3, 1, {100, 200, 300}));
  FailureOr<LlmInterpreter> interpreter = LlmInterpreter::create(*module, weights);
  ASSERT_TRUE(succeeded(interpreter));
  // Experts 2 and 0 of the row (2, 0): 2 * 3 + 300 and 2 * 1 + 100; expert 1 twice of (1, 1).
  EXPECT_EQ(logitsOf(*interpreter, {0, 1}), (V{306, 102, 222, 222}));
  // Expert 3 of (3, 0) is none of the three: 0, without a bias.
  EXPECT_EQ(logitsOf(*interpreter, {2}), (V{0, 103}));
}

} // namespace
} // namespace llmc::reference
