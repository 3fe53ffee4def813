// Recipes: concatenation, row ranges, order of rotary heads, the addend, and what is refused.
#include "lib/weights/WeightReader.h"
#include "MemoryTensors.h"
#include "mlir/Parser/Parser.h"
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {
// Row r of "a" ([8, 2]) is {10r, 10r + 1}; of "b" ([4, 2]) {-10r, -10r - 1}; "v" ([8]) is 0..7.
MemoryTensors tensors() {
  MemoryTensors made;
  std::vector<float> a, b, v(8);
  for (int r = 0; r < 8; ++r)
    a.insert(a.end(), {10.0f * r, 10.0f * r + 1});
  for (int r = 0; r < 4; ++r)
    b.insert(b.end(), {-10.0f * r, -10.0f * r - 1});
  std::iota(v.begin(), v.end(), 0.0f);
  made.addFloats("a", {8, 2}, a);
  made.addFloats("b", {4, 2}, b);
  made.addFloats("v", {8}, v);
  return made;
}

// The first column of all rows.
std::vector<float> firstColumn(const WeightRecipe &recipe) {
  MemoryTensors memory = tensors();
  std::vector<int64_t> rows(static_cast<size_t>(recipe.shape[0]));
  std::iota(rows.begin(), rows.end(), 0);
  size_t k = recipe.shape.size() == 2 ? static_cast<size_t>(recipe.shape[1]) : 1;
  std::vector<float> out(rows.size() * k), column;
  Status read = readWeightRows(recipe, memory, rows, out.data());
  EXPECT_TRUE(read.ok()) << read.message();
  for (size_t r = 0; r < rows.size(); ++r)
    column.push_back(out[r * k]);
  return column;
}

std::string openError(const WeightRecipe &recipe) {
  MemoryTensors memory = tensors();
  StatusOr<WeightReader> reader = WeightReader::open(recipe, memory);
  return reader.ok() ? "" : reader.status().message();
}

using Floats = std::vector<float>;
} // namespace

TEST(WeightReader, SourcesFollowEachOther) {
  EXPECT_EQ(firstColumn(recipeOfTensors({12, 2}, {"b", "a"})),
            (Floats{0, -10, -20, -30, 0, 10, 20, 30, 40, 50, 60, 70}));
}

TEST(WeightReader, RangesTakeRowsOfDimensionZero) {
  WeightRecipe recipe{"w", {3, 2}, {{"a", {{5, 7}}, 0}, {"b", {{3, 4}}, 0}}, 0.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{50, 60, -30}));
}

TEST(WeightReader, UnpermuteTurnsPairsIntoHalves) {
  // Heads of 4 rows: result 0, 1, 2, 3 are rows 0, 2, 1, 3 of the head.
  WeightRecipe recipe{"w", {8, 2}, {{"a", std::nullopt, 4}}, 0.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{0, 20, 10, 30, 40, 60, 50, 70}));
}

TEST(WeightReader, UnpermuteCountsHeadsFromTheRange) {
  WeightRecipe recipe{"w", {8, 2}, {{"b", std::nullopt, 0}, {"a", {{2, 6}}, 4}}, 0.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{0, -10, -20, -30, 20, 40, 30, 50}));
}

TEST(WeightReader, VectorsHaveRowsOfOneElement) {
  WeightRecipe recipe{"w", {8}, {{"v", std::nullopt, 8}}, 1.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{1, 3, 5, 7, 2, 4, 6, 8})); // 0 2 4 6 1 3 5 7, plus 1
}

TEST(WeightReader, AddLeavesAbsentRowsZero) {
  MemoryTensors memory = tensors();
  WeightRecipe recipe = recipeOfTensors({8, 2}, {"a"});
  recipe.add = 0.5;
  Floats out(6, 99.0f);
  ASSERT_TRUE(readWeightRows(recipe, memory, std::vector<int64_t>{7, -1, 0}, out.data()).ok());
  EXPECT_EQ(out, (Floats{70.5f, 71.5f, 0, 0, 0.5f, 1.5f}));
}

TEST(WeightReader, RefusesWhatDoesNotFit) {
  EXPECT_EQ(openError(recipeOfTensors({9, 2}, {"a"})), "weight 'w' has 9 rows, but its sources have 8 together");
  EXPECT_EQ(openError(recipeOfTensors({8, 3}, {"a"})), "weight 'w': tensor 'a' is [8, 2], expected rows of 3 elements");
  EXPECT_EQ(openError(recipeOfTensors({8, 2}, {"z"})), "weight 'w': no tensor 'z'");
  EXPECT_EQ(openError({"w", {2, 2}, {{"a", {{7, 9}}, 0}}, 0.0}),
            "weight 'w': tensor 'a' has 8 rows, but rows 7 to 9 are asked for");
  EXPECT_EQ(openError({"w", {8, 2}, {{"a", {{-1, 7}}, 0}}, 0.0}),
            "weight 'w': tensor 'a' has 8 rows, but rows -1 to 7 are asked for");
  EXPECT_EQ(openError({"w", {8, 2}, {{"a", std::nullopt, 6}}, 0.0}),
            "weight 'w': tensor 'a' gives 8 rows, which are no whole heads of 6 rows in pairs");
  EXPECT_EQ(openError({"w", {2, 2, 2}, {}, 0.0}), "weight 'w' has 3 dimensions, expected one or two");
  MemoryTensors memory = tensors();
  float out[2];
  Status read = readWeightRows(recipeOfTensors({8, 2}, {"a"}), memory, std::vector<int64_t>{8}, out);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.message(), "weight 'w' has 8 rows, row 8 is asked for");
}

TEST(WeightReader, RecipeComesFromAWeightOp) {
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(llm.weight @w : !llm.weight<11x2> from [{tensor = "a", rows = array<i64: 0, 8>, unpermute = 4 : i64},
                                                 {tensor = "b", rows = array<i64: 1, 4>}] {add = 1.0 : f64})",
      &context);
  ASSERT_TRUE(module);
  WeightRecipe recipe = recipeOf(module->lookupSymbol<llm::WeightOp>("w"));
  EXPECT_EQ(recipe.name, "w");
  EXPECT_EQ(recipe.shape, (std::vector<int64_t>{11, 2}));
  ASSERT_EQ(recipe.sources.size(), 2u);
  EXPECT_EQ(recipe.sources[0].tensor, "a");
  EXPECT_EQ(recipe.sources[0].rows, std::make_pair(int64_t(0), int64_t(8)));
  EXPECT_EQ(recipe.sources[0].unpermuteHeadRows, 4);
  EXPECT_EQ(recipe.sources[1].rows, std::make_pair(int64_t(1), int64_t(4)));
  EXPECT_EQ(recipe.sources[1].unpermuteHeadRows, 0);
  EXPECT_EQ(recipe.add, 1.0);
}
