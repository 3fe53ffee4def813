// Sizes, row order and checks of packed layouts, against the arithmetic of docs/weight-layouts.md.
#include "lib/weights/PackedLayout.h"
#include "dialects/llm/LlmShapes.h"
#include <gtest/gtest.h>
#include <set>

using namespace llmc;

namespace {
uint64_t bytesOf(PackedLayout layout) { return layout.bytes().value().value_or(0); }

std::string errorOf(PackedLayout layout) {
  Status status = checkLayout(layout);
  return status.ok() ? "" : status.message();
}
} // namespace

TEST(PackedLayout, BytesOfEveryForm) {
  // 100 rows in tiles of 40, padded to 48: 3 tiles. K = 65: K2 = 48, K64 = 2.
  EXPECT_EQ(bytesOf({100, 65, WeightForm::F32, 40, 48, 0}), 3u * 48 * 65 * 4);
  EXPECT_EQ(bytesOf({100, 65, WeightForm::BF16, 40, 48, 0}), 3u * 48 * 48 * 4);
  EXPECT_EQ(bytesOf({100, 65, WeightForm::I8, 40, 16, 0}), 3u * 2 * 3 * 1088);
  EXPECT_EQ(bytesOf({100, 65, WeightForm::I4, 40, 16, 0}), 3u * 2 * 3 * 576);
  EXPECT_EQ(bytesOf({100, 65, WeightForm::I4M, 40, 16, 0}), 3u * 2 * 3 * 640);
  EXPECT_EQ(bytesOf({65, 1, WeightForm::Plain, 0, 0, 0}), 128u * 4); // 65 padded to 128
}

TEST(PackedLayout, OffsetsInPanelsAndBlocks) {
  PackedLayout plain{100, 65, WeightForm::F32, 40, 48, 0}, halves{100, 65, WeightForm::BF16, 40, 16, 0};
  EXPECT_EQ(plain.panelBytes(), 65 * 48 * 4);
  EXPECT_EQ(halves.panelBytes(), 48 * 16 * 4); // pairs of K
  PackedLayout i8{100, 65, WeightForm::I8, 40, 16, 0}, i4 = i8, i4m = i8;
  i4.form = WeightForm::I4;
  i4m.form = WeightForm::I4M;
  EXPECT_EQ(i8.numGroups(), 4); // of two whole blocks
  EXPECT_EQ(i8.groupBytes(), 512);
  EXPECT_EQ(i4.groupBytes(), 256);
  EXPECT_EQ(i8.scalesAt(), 1024);
  EXPECT_EQ(i4.scalesAt(), 512);
  EXPECT_EQ(i4m.minimaAt(), 576);
  EXPECT_EQ(i8.zeroPoint(), 128);
  EXPECT_EQ(i4.zeroPoint(), 8);
  EXPECT_EQ(i4m.zeroPoint(), 0);
}

TEST(PackedLayout, RowsOfTilesAreConsecutive) {
  PackedLayout layout{50, 8, WeightForm::F32, 20, 32, 0};
  EXPECT_EQ(layout.numTiles(), 3);
  EXPECT_EQ(layout.rowAt(1, 19), 39); // 20 + 19
  EXPECT_EQ(layout.rowAt(1, 20), -1); // past the tile
  EXPECT_EQ(layout.rowAt(2, 9), 49);
  EXPECT_EQ(layout.rowAt(2, 10), -1); // past N
}

TEST(PackedLayout, StackedMatricesCountThrough) {
  PackedLayout layout{50, 8, WeightForm::F32, 20, 32, 0, 4};
  EXPECT_EQ(bytesOf(layout), 4u * 3 * 32 * 8 * 4);
  EXPECT_EQ(layout.rowAt(3 + 1, 19), 50 + 39); // tile 1 of matrix 1
  EXPECT_EQ(layout.rowAt(3 + 2, 10), -1);
  EXPECT_EQ(layout.placeOf(50 + 39).tile, 3 + 1);
  EXPECT_EQ(layout.placeOf(50 + 39).place, 19);
  layout.stacked = 0;
  EXPECT_NE(errorOf(layout).find("dimensions must be positive"), std::string::npos);
}

TEST(PackedLayout, ShapesOfTypes) {
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  StatusOr<PackedLayout> stack = layoutOf(llm::WeightType::get(&context, {4, 50, 8}, WeightForm::F32, 20, 32, 0));
  ASSERT_TRUE(stack.ok()) << stack.status().message();
  EXPECT_EQ(stack->stacked, 4);
  EXPECT_EQ(stack->n, 50);
  EXPECT_EQ(stack->k, 8);
  StatusOr<PackedLayout> list = layoutOf(llm::WeightType::get(&context, {4, 50}, WeightForm::Plain, 0, 0, 0));
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list->n, 200);
  EXPECT_EQ(bytesOf(*list), 256u * 4);
}

TEST(PackedLayout, InterleavedTilesHoldBothHalves) {
  // N = 2 * 10 in blocks of 4: 3 tiles, the last with 2 rows of each half.
  PackedLayout layout{20, 8, WeightForm::F32, 8, 16, 4};
  EXPECT_EQ(layout.numTiles(), 3);
  EXPECT_EQ(layout.rowAt(1, 0), 4);
  EXPECT_EQ(layout.rowAt(1, 4), 14); // I + 1 * 4
  EXPECT_EQ(layout.rowAt(2, 1), 9);
  EXPECT_EQ(layout.rowAt(2, 2), -1); // gate past I: not the first row of up
  EXPECT_EQ(layout.rowAt(2, 5), 19);
  EXPECT_EQ(layout.rowAt(2, 6), -1);
  EXPECT_EQ(layout.rowAt(0, 8), -1); // padding of the tile
}

TEST(PackedLayout, PlaceOfIsTheInverseOfRowAt) {
  for (PackedLayout layout : {PackedLayout{97, 3, WeightForm::BF16, 33, 48, 0},
                              {34, 3, WeightForm::I8, 10, 16, 5},
                              {2, 3, WeightForm::I8, 32, 16, 16},
                              {33, 1, WeightForm::Plain, 0, 0, 0}}) {
    ASSERT_EQ(errorOf(layout), "");
    std::set<int64_t> seen;
    for (int64_t tile = 0; tile < layout.numTiles(); ++tile)
      for (int64_t place = 0; place < layout.paddedTile(); ++place) {
        int64_t row = layout.rowAt(tile, place);
        if (row < 0)
          continue;
        EXPECT_TRUE(seen.insert(row).second) << row;
        EXPECT_EQ(layout.placeOf(row).tile, tile);
        EXPECT_EQ(layout.placeOf(row).place, place);
      }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), layout.n);
    EXPECT_EQ(*seen.rbegin(), layout.n - 1);
  }
}

TEST(PackedLayout, TilingPicksThePanel) {
  auto panel = [](int64_t rows, WeightForm form) { return llm::panelFor(rows, form); };
  EXPECT_EQ(panel(64, WeightForm::BF16), 64);
  EXPECT_EQ(panel(128, WeightForm::F32), 64);
  EXPECT_EQ(panel(96, WeightForm::F32), 48);
  EXPECT_EQ(panel(80, WeightForm::F32), 80);
  EXPECT_EQ(panel(160, WeightForm::F32), 32);
  EXPECT_EQ(panel(1, WeightForm::F32), 16);
  EXPECT_EQ(panel(66, WeightForm::F32), 80); // padded to 80
  EXPECT_EQ(panel(64, WeightForm::I4), 16);
  for (int64_t rows = 1; rows < 300; ++rows)
    EXPECT_EQ(errorOf({rows, 7, WeightForm::F32, rows, panel(rows, WeightForm::F32), 0}), "");
}

TEST(PackedLayout, RefusesWhatTheDocumentForbids) {
  EXPECT_NE(errorOf({8, 8, WeightForm::Any, 16, 16, 0}).find("no form was chosen"), std::string::npos);
  EXPECT_NE(errorOf({8, 8, WeightForm::F32, 0, 0, 0}).find("needs a tile and a panel"), std::string::npos);
  EXPECT_NE(errorOf({8, 8, WeightForm::F32, 48, 32, 0}).find("divides the padded tile of 48"), std::string::npos);
  EXPECT_NE(errorOf({8, 8, WeightForm::F32, 24, 24, 0}).find("multiple of 16"), std::string::npos);
  EXPECT_NE(errorOf({8, 8, WeightForm::I4, 64, 64, 0}).find("panels of 16"), std::string::npos);
  EXPECT_NE(errorOf({8, 8, WeightForm::F32, 16, 16, 4}).find("twice its block"), std::string::npos);
  EXPECT_NE(errorOf({7, 8, WeightForm::F32, 8, 16, 4}).find("two equal halves"), std::string::npos);
  EXPECT_NE(errorOf({8, 2, WeightForm::Plain, 0, 0, 0}).find("rows of one element"), std::string::npos);
  EXPECT_NE(errorOf({0, 8, WeightForm::F32, 16, 16, 0}).find("must be positive"), std::string::npos);
  EXPECT_NE(errorOf({INT64_MAX, 8, WeightForm::F32, 16, 16, 0}).find("at most 1099511627776"), std::string::npos);
  int64_t large = int64_t(1) << 40;
  EXPECT_NE(errorOf({large, large, WeightForm::F32, 16, 16, 0}).find("overflows 64 bits"), std::string::npos);
}

TEST(PackedLayout, ComesFromAWeightType) {
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  StatusOr<PackedLayout> matrix = layoutOf(llm::WeightType::get(&context, {192, 64}, WeightForm::I4, 32, 16, 16));
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  EXPECT_EQ(matrix->n, 192);
  EXPECT_EQ(matrix->k, 64);
  EXPECT_EQ(matrix->form, WeightForm::I4);
  EXPECT_EQ(matrix->tile, 32);
  EXPECT_EQ(matrix->interleave, 16);
  StatusOr<PackedLayout> vector = layoutOf(llm::WeightType::get(&context, {576}, WeightForm::Plain, 0, 0, 0));
  ASSERT_TRUE(vector.ok()) << vector.status().message();
  EXPECT_EQ(vector->k, 1);
  EXPECT_FALSE(layoutOf(llm::WeightType::get(&context, {576})).ok());
}
