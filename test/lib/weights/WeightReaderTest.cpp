// Recipes: concatenation, row ranges, order of rotary heads and of dimensions, stacks, maps, the addend, and what is
// refused.
#include "lib/weights/WeightReader.h"
#include "MemoryTensors.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
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

WeightSource rowsOf(const std::string &tensor, int64_t begin, int64_t end, int64_t unpermute = 0) {
  return {.tensor = tensor, .rows = {{begin, end}}, .unpermuteHeadRows = unpermute};
}

// All elements of a weight.
std::vector<float> allOf(const WeightRecipe &recipe, const MemoryTensors &memory) {
  StatusOr<WeightReader> reader = WeightReader::open(recipe, memory);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok())
    return {};
  std::vector<int64_t> rows(static_cast<size_t>(reader->numRows()));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> out(rows.size() * static_cast<size_t>(reader->rowLength()));
  Status read = reader->readRows(rows, out.data());
  EXPECT_TRUE(read.ok()) << read.message();
  return out;
}

// Counts 0, 1, 2, ... in every tensor, from 100 * its number on.
MemoryTensors counting(const std::vector<std::pair<std::string, std::vector<int64_t>>> &shapes) {
  MemoryTensors made;
  float first = 0.0f;
  for (const auto &[name, shape] : shapes) {
    int64_t count = 1;
    for (int64_t dimension : shape)
      count *= dimension;
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), first);
    made.addFloats(name, shape, values);
    first += 100.0f;
  }
  return made;
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
  WeightRecipe recipe{"w", {3, 2}, {rowsOf("a", 5, 7), rowsOf("b", 3, 4)}, 0.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{50, 60, -30}));
}

TEST(WeightReader, UnpermuteTurnsPairsIntoHalves) {
  // Heads of 4 rows: result 0, 1, 2, 3 are rows 0, 2, 1, 3 of the head.
  WeightRecipe recipe{"w", {8, 2}, {{.tensor = "a", .unpermuteHeadRows = 4}}, 0.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{0, 20, 10, 30, 40, 60, 50, 70}));
}

TEST(WeightReader, UnpermuteCountsHeadsFromTheRange) {
  WeightRecipe recipe{"w", {8, 2}, {{.tensor = "b"}, rowsOf("a", 2, 6, 4)}, 0.0};
  EXPECT_EQ(firstColumn(recipe), (Floats{0, -10, -20, -30, 20, 40, 30, 50}));
}

TEST(WeightReader, VectorsHaveRowsOfOneElement) {
  WeightRecipe recipe{"w", {8}, {{.tensor = "v", .unpermuteHeadRows = 8}}, 1.0};
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
  EXPECT_EQ(openError({"w", {2, 2}, {rowsOf("a", 7, 9)}, 0.0}),
            "weight 'w': tensor 'a' has 8 rows, but rows 7 to 9 are asked for");
  EXPECT_EQ(openError({"w", {8, 2}, {rowsOf("a", -1, 7)}, 0.0}),
            "weight 'w': tensor 'a' has 8 rows, but rows -1 to 7 are asked for");
  EXPECT_EQ(openError({"w", {8, 2}, {{.tensor = "a", .unpermuteHeadRows = 6}}, 0.0}),
            "weight 'w': tensor 'a' gives 8 rows, which are no whole heads of 6 rows in pairs");
  EXPECT_EQ(openError({"w", {2, 2, 2, 2}, {}, 0.0}), "weight 'w' has 4 dimensions, expected one to three");
  MemoryTensors memory = tensors();
  float out[2];
  Status read = readWeightRows(recipeOfTensors({8, 2}, {"a"}), memory, std::vector<int64_t>{8}, out);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.message(), "weight 'w' has 8 rows, row 8 is asked for");
}

TEST(WeightReader, EveryOtherRow) {
  // [E = 2, out = 2, gate or up, in = 2]: gates are rows 0, 2 of an expert, ups 1, 3.
  MemoryTensors memory = counting({{"t", {2, 4, 2}}});
  WeightSource gate{.tensor = "t", .dims = {2, 2, 2, 2}, .take = {{0, 2}, {0, 2}, {0, 1}, {0, 2}}};
  WeightSource up = gate;
  up.take[2] = {1, 2};
  EXPECT_EQ(allOf({"w", {2, 2, 2}, {gate}, 0.0}, memory), (Floats{0, 1, 4, 5, 8, 9, 12, 13}));
  // Joined expert by expert: gates of expert 0, ups of expert 0, gates of expert 1, ...
  EXPECT_EQ(allOf({"w", {2, 4, 2}, {gate, up}, 0.0}, memory),
            (Floats{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
}

TEST(WeightReader, StacksTensorsOfExperts) {
  MemoryTensors memory = counting({{"e.0.w", {2, 3}}, {"e.1.w", {2, 3}}});
  WeightSource stack{.tensor = "e.{expert}.w", .stack = 2};
  EXPECT_EQ(allOf({"w", {2, 2, 3}, {stack}, 0.0}, memory), (Floats{0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104, 105}));
  stack.order = {1, 0}; // of each
  EXPECT_EQ(allOf({"w", {2, 3, 2}, {stack}, 0.0}, memory), (Floats{0, 3, 1, 4, 2, 5, 100, 103, 101, 104, 102, 105}));
  // The last row of every expert.
  stack.order.clear();
  stack.take = {{1, 2}, {0, 3}};
  EXPECT_EQ(allOf({"w", {2, 1, 3}, {stack}, 0.0}, memory), (Floats{3, 4, 5, 103, 104, 105}));
}

TEST(WeightReader, StacksVectors) {
  MemoryTensors memory = counting({{"b.0", {3}}, {"b.1", {3}}, {"s.0", {1}}, {"s.1", {1}}});
  EXPECT_EQ(allOf({"w", {2, 3}, {{.tensor = "b.{expert}", .stack = 2}}, 0.0}, memory),
            (Floats{0, 1, 2, 100, 101, 102}));
  EXPECT_EQ(allOf({"w", {2}, {{.tensor = "s.{expert}", .stack = 2}}, 0.0}, memory), (Floats{200, 300}));
}

TEST(WeightReader, OrdersDimensions) {
  MemoryTensors memory = counting({{"t", {2, 3, 2}}});
  EXPECT_EQ(allOf({"w", {2, 3, 2}, {{.tensor = "t", .order = {2, 1, 0}}}, 0.0}, memory),
            (Floats{0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
  EXPECT_EQ(allOf({"w", {4, 3}, {{.tensor = "t", .order = {0, 2, 1}}}, 0.0}, memory),
            (Floats{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
}

TEST(WeightReader, RowsThatAreNoDimension) {
  // [3, 4] transposed to [4, 3] and then read as rows of two.
  MemoryTensors memory = counting({{"t", {3, 4}}});
  EXPECT_EQ(allOf({"w", {6, 2}, {{.tensor = "t", .order = {1, 0}}}, 0.0}, memory),
            (Floats{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
}

TEST(WeightReader, MapsElements) {
  MemoryTensors memory = counting({{"t", {1, 1, 3}}});
  Floats mapped = allOf({"w", {3}, {{.tensor = "t", .dims = {3}, .map = "neg_exp"}}, 0.5}, memory);
  ASSERT_EQ(mapped.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_FLOAT_EQ(mapped[i], 0.5f - std::exp(static_cast<float>(i)));
}

TEST(WeightReader, MapsRowsToUnitLength) {
  MemoryTensors memory;
  memory.addFloats("t", {3, 2}, {3, 4, 0, 0, -5, 12});
  EXPECT_EQ(allOf({"w", {3, 2}, {{.tensor = "t", .map = "unit_rows"}}, 0.0}, memory),
            (Floats{3.0f / 5, 4.0f / 5, 0, 0, -5.0f / 13, 12.0f / 13}));
}

TEST(WeightReader, SaysWhichRowsAreStored) {
  MemoryTensors memory = counting({{"t", {4, 6}}});
  auto isStored = [&](WeightSource source, std::vector<int64_t> shape) {
    source.tensor = "t";
    StatusOr<WeightReader> reader = WeightReader::open({"w", shape, {source}, 0.0}, memory);
    return reader.ok() && reader->isStoredRow(0);
  };
  EXPECT_TRUE(isStored({}, {4, 6}));
  EXPECT_TRUE(isStored({.take = {{1, 3}, {0, 6}}}, {2, 6}));
  EXPECT_TRUE(isStored({.dims = {2, 2, 6}, .order = {1, 0, 2}}, {4, 6}));
  EXPECT_FALSE(isStored({.take = {{0, 4}, {1, 4}}}, {4, 3})); // begins inside of a row
  EXPECT_FALSE(isStored({.order = {1, 0}}, {6, 4}));
  EXPECT_FALSE(isStored({.map = "neg_exp"}, {4, 6}));
}

TEST(WeightReader, RefusesViewsThatDoNotFit) {
  MemoryTensors memory = counting({{"t", {4, 6}}, {"e.0", {2, 2}}, {"e.1", {4, 2}}, {"f.0", {2, 2}}, {"f.1", {2, 2}}});
  auto error = [&](WeightSource source, std::vector<int64_t> shape) {
    if (source.tensor.empty())
      source.tensor = "t";
    StatusOr<WeightReader> reader = WeightReader::open({"w", std::move(shape), {source}, 0.0}, memory);
    return reader.ok() ? "" : reader.status().message();
  };
  EXPECT_EQ(error({.dims = {4, 5}}, {4, 5}), "weight 'w': tensor 't' is [4, 6], which cannot be seen as [4, 5]");
  EXPECT_EQ(error({.take = {{0, 4}}}, {4, 6}),
            "weight 'w': tensor 't' is seen as [4, 6], but 1 ranges are taken of it");
  EXPECT_EQ(error({.take = {{0, 4}, {3, 7}}}, {4, 4}),
            "weight 'w': tensor 't' is seen as [4, 6], but 3 to 7 of dimension 1 are taken");
  EXPECT_EQ(error({.order = {0, 0}}, {4, 6}), "weight 'w': tensor 't' has 2 dimensions, which [0, 0] puts in no order");
  EXPECT_EQ(error({.dims = {24}}, {5, 5}), "weight 'w': tensor 't' gives 24 elements, which are no whole rows of 5");
  EXPECT_EQ(error({.dims = {24}}, {5, 2, 2}),
            "weight 'w': tensor 't' gives 24 elements, which are no whole rows of 2 for each of 5 matrices");
  EXPECT_EQ(error({.map = "log"}, {4, 6}), "weight 'w': tensor 't' is mapped by 'log' (known = neg_exp, unit_rows)");
  EXPECT_EQ(error({.tensor = "e.{expert}", .stack = 2}, {2, 2, 2}),
            "weight 'w': tensor 'e.1' gives 8 elements, but 'e.0', which it is stacked with, 4");
  EXPECT_EQ(error({.tensor = "f.{expert}", .stack = 3}, {3, 2, 2}), "weight 'w': no tensor 'f.2'");
  EXPECT_EQ(error({.take = {{0, 4}, {0, 6}}, .rows = {{0, 4}}}, {4, 6}),
            "weight 'w': tensor 't' gives both rows and ranges of its dimensions; expected one of them");
}

TEST(WeightReader, TakesThePartOfARank) {
  MemoryTensors tensors;
  std::vector<float> a(6 * 8), b(2 * 8);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 100.0f);
  tensors.addFloats("a", {6, 8}, a);
  tensors.addFloats("b", {2, 8}, b);
  WeightRecipe recipe = recipeOfTensors({8, 8}, {"a", "b"});
  // The rows 1, 2 and 6 (the first of b), of each the columns 0, 1 and 5 to 7.
  recipe.taken = {{{1, 3}, {6, 7}}, {{0, 2}, {5, 8}}};
  StatusOr<WeightReader> reader = WeightReader::open(recipe, tensors);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(reader->numRows(), 3);
  EXPECT_EQ(reader->rowLength(), 5);
  std::vector<int64_t> rows = {2, -1, 0, 1};
  std::vector<float> values(4 * 5);
  ASSERT_TRUE(reader->readRows(rows, values.data()).ok());
  EXPECT_EQ(values, (std::vector<float>{100, 101, 105, 106, 107, 0, 0, 0, 0, 0, 8, 9, 13, 14, 15, 16, 17, 21, 22, 23}));
  EXPECT_FALSE(reader->isStoredRow(0)); // two runs
  // Rows past the part are none of its rows.
  rows = {3};
  EXPECT_EQ(reader->readRows(rows, values.data()).message(), "weight 'w' has 3 rows, row 3 is asked for");

  recipe.taken = {{{0, 9}}, {{0, 8}}};
  EXPECT_EQ(WeightReader::open(recipe, tensors).status().message(),
            "weight 'w': takes 0 to 9 of dimension 0, which has 8");
  recipe.taken = {{{0, 8}}};
  EXPECT_EQ(WeightReader::open(recipe, tensors).status().message(),
            "weight 'w' has 2 dimensions, but parts of 1 are taken");
}

TEST(WeightReader, TakesExpertsOfAStack) {
  MemoryTensors tensors;
  for (int expert = 0; expert < 4; ++expert) {
    std::vector<float> values(2 * 3);
    std::iota(values.begin(), values.end(), 10.0f * static_cast<float>(expert));
    tensors.addFloats("e." + std::to_string(expert), {2, 3}, values);
  }
  WeightRecipe recipe = recipeOfTensors({4, 2, 3}, {"e.{expert}"});
  recipe.sources[0].stack = 4;
  recipe.taken = {{{2, 4}}, {{1, 2}}, {{0, 3}}};
  StatusOr<WeightReader> reader = WeightReader::open(recipe, tensors);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  std::vector<int64_t> rows = {0, 1};
  std::vector<float> values(2 * 3);
  ASSERT_TRUE(reader->readRows(rows, values.data()).ok());
  EXPECT_EQ(values, (std::vector<float>{23, 24, 25, 33, 34, 35}));
  EXPECT_TRUE(reader->isStoredRow(1));
}

TEST(WeightReader, RecipeComesFromAWeightOp) {
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(llm.weight @w : !llm.weight<11x2> from [{tensor = "a", rows = array<i64: 0, 8>, unpermute = 4 : i64},
                                                 {tensor = "b", rows = array<i64: 1, 4>}] {add = 1.0 : f64}
         llm.weight @e : !llm.weight<8x3x2> from [{tensor = "e.{expert}", stack = 8, dims = array<i64: 2, 4>,
                                                   take = array<i64: 0, 2, 1, 4>, order = array<i64: 1, 0>,
                                                   map = "neg_exp"}])",
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
  WeightSource viewed = recipeOf(module->lookupSymbol<llm::WeightOp>("e")).sources[0];
  EXPECT_EQ(viewed.stack, 8);
  EXPECT_EQ(viewed.tensorAt(3), "e.3");
  EXPECT_EQ(viewed.dims, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(viewed.take, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {1, 4}}));
  EXPECT_EQ(viewed.order, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(viewed.map, "neg_exp");
}
