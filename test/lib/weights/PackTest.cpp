// Packed bytes against the formulas of docs/weight-layouts.md, round trips over boundary shapes, and streaming.
#include "MemoryTensors.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/weights/SmallFloats.h"
#include <cmath>
#include <cstring>

using namespace llmc;
using namespace llmc::test;

namespace {
const int64_t boundaries[] = {1, 15, 16, 17, 31, 33, 63, 64, 65, 97};

template <typename T> T at(const std::vector<uint8_t> &bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// 1, 2, 3, ... : exact in every float form up to 256.
std::vector<float> counting(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 1; i <= count; ++i)
    values.push_back(static_cast<float>(i));
  return values;
}

// Calls check(layout, values, packed, unpacked) for all pairs of boundary sizes, whole and ragged tiles.
template <typename Check> void overShapes(WeightForm form, Check check) {
  for (int64_t n : boundaries)
    for (int64_t k : boundaries)
      for (int64_t rowsPerTile : {16, 40, 64, 80}) {
        PackedLayout layout = matrixLayout(n, k, form, rowsPerTile);
        std::vector<float> values = gaussian(n * k, static_cast<unsigned>(n * 100 + k));
        std::vector<uint8_t> packed = packFloats(values, layout);
        ASSERT_EQ(packed.size(), *layout.bytes().value());
        StatusOr<std::vector<float>> back = unpackWeight(layout, packed);
        ASSERT_TRUE(back.ok()) << back.status().message();
        check(layout, values, packed, *back);
      }
}
} // namespace

TEST(Pack, F32IsPanelsOfColumns) {
  // [3, 2] in one tile of 16, panel 16: place p, column k at (k * 16 + p) * 4.
  std::vector<uint8_t> packed = packFloats({1, 2, 3, 4, 5, 6}, matrixLayout(3, 2, WeightForm::F32, 16));
  ASSERT_EQ(packed.size(), 16u * 2 * 4);
  EXPECT_EQ(at<float>(packed, 0), 1.0f);
  EXPECT_EQ(at<float>(packed, 4), 3.0f);             // row 1, column 0
  EXPECT_EQ(at<float>(packed, (1 * 16 + 2) * 4), 6); // row 2, column 1
  EXPECT_EQ(at<float>(packed, 3 * 4), 0.0f);         // past N
}

TEST(Pack, F32ByteByByte) {
  // 100 rows: tiles of 96 in panels of 48.
  PackedLayout layout = matrixLayout(100, 19, WeightForm::F32, 96);
  ASSERT_EQ(layout.panel, 48);
  std::vector<float> values = gaussian(100 * 19, 1);
  std::vector<uint8_t> packed = packFloats(values, layout);
  for (size_t tile = 0; tile < 2; ++tile)
    for (size_t p = 0; p < 96; ++p)
      for (size_t k = 0; k < 19; ++k) {
        size_t row = tile * 96 + p;
        float expected = row < 100 ? values[row * 19 + k] : 0.0f;
        EXPECT_EQ(at<float>(packed, tile * 96 * 19 * 4 + ((p / 48 * 19 + k) * 48 + p % 48) * 4), expected);
      }
}

TEST(Pack, Bf16ByteByByte) {
  // K = 33: 32 pairs, with zeros behind the last element. 70 rows: tiles of 40, padded to 48.
  PackedLayout layout = matrixLayout(70, 33, WeightForm::BF16, 40);
  std::vector<float> values = gaussian(70 * 33, 2);
  std::vector<uint8_t> packed = packFloats(values, layout);
  for (size_t tile = 0; tile < 2; ++tile)
    for (size_t p = 0; p < 48; ++p)
      for (size_t k = 0; k < 64; ++k) {
        size_t row = tile * 40 + p;
        bool present = p < 40 && row < 70 && k < 33;
        uint16_t expected = present ? bf16FromF32(values[row * 33 + k]) : 0;
        EXPECT_EQ(at<uint16_t>(packed, tile * 48 * 32 * 4 + ((k / 2 * 48 + p) * 2 + k % 2) * 2), expected);
      }
}

TEST(Pack, I8ByteByByte) {
  // Row r has r + 1 as its largest magnitude, so scale (r + 1) / 127 and code +-127 there: column 0, and column 40
  // negated.
  PackedLayout layout = matrixLayout(18, 70, WeightForm::I8, 32);
  std::vector<float> values(18 * 70, 0.0f);
  for (size_t r = 0; r < 18; ++r) {
    values[r * 70] = static_cast<float>(r + 1);
    values[r * 70 + 40] = -static_cast<float>(r + 1);
  }
  std::vector<uint8_t> packed = packFloats(values, layout);
  // One tile: K64 = 2, two blocks of 16 lanes per k range.
  ASSERT_EQ(packed.size(), 2u * 2 * 1088);
  for (size_t kBlock = 0; kBlock < 2; ++kBlock)
    for (size_t p = 0; p < 32; ++p)
      for (size_t k = 0; k < 64; ++k) {
        size_t block = (kBlock * 2 + p / 16) * 1088, g = k / 32, l = p % 16;
        bool present = p < 18 && kBlock == 0;
        int code = present && k == 0 ? 127 : present && k == 40 ? -127 : 0;
        EXPECT_EQ(packed[block + 512 * g + 64 * (k % 32 / 4) + 4 * l + k % 4], code + 128) << p << " " << k;
        uint16_t scale = present ? f16FromF32(static_cast<float>(p + 1) / 127.0f) : 0;
        EXPECT_EQ(at<uint16_t>(packed, block + 1024 + 32 * g + 2 * l), scale);
      }
}

TEST(Pack, I4ByteByByte) {
  // Values that 4 bits hold: k % 16 - 8 times a power of two, so that every code occurs and no error is left.
  PackedLayout layout = matrixLayout(17, 97, WeightForm::I4, 32);
  std::vector<float> values(17 * 97);
  auto codeAt = [](size_t row, size_t k) { return static_cast<int>((k + row) % 16) - 8; };
  for (size_t r = 0; r < 17; ++r)
    for (size_t k = 0; k < 97; ++k)
      values[r * 97 + k] = std::ldexp(static_cast<float>(codeAt(r, k)), -static_cast<int>(r % 5));
  std::vector<uint8_t> packed = packFloats(values, layout);
  ASSERT_EQ(packed.size(), 2u * 2 * 576);
  for (size_t p = 0; p < 32; ++p)
    for (size_t k = 0; k < 96; ++k) { // the group of the single column 96 picks its own scale
      size_t block = (k / 64 * 2 + p / 16) * 576, g = k % 64 / 32, l = p % 16, inGroup = k % 32;
      uint8_t pair = packed[block + 256 * g + 64 * (inGroup / 4 % 4) + 4 * l + k % 4];
      int code = p < 17 ? codeAt(p, k) : 0;
      EXPECT_EQ(inGroup < 16 ? pair & 15 : pair >> 4, code + 8) << p << " " << k;
      float scale = fromF16(at<uint16_t>(packed, block + 512 + 32 * g + 2 * l));
      EXPECT_EQ(scale, p < 17 ? std::ldexp(1.0f, -static_cast<int>(p % 5)) : 0.0f);
    }
  // Columns 97 to 127: code 0 is stored as 8.
  for (size_t k = 97; k < 128; ++k) {
    uint8_t pair = packed[2 * 576 + 256 * (k % 64 / 32) + 64 * (k % 32 / 4 % 4) + k % 4];
    EXPECT_EQ(k % 32 < 16 ? pair & 15 : pair >> 4, 8) << k;
  }
}

TEST(Pack, PlainVectorsArePadded) {
  std::vector<uint8_t> packed = packFloats(counting(65), {65, 1, WeightForm::Plain, 0, 0, 0});
  ASSERT_EQ(packed.size(), 128u * 4);
  for (size_t i = 0; i < 128; ++i)
    EXPECT_EQ(at<float>(packed, i * 4), i < 65 ? static_cast<float>(i + 1) : 0.0f);
}

TEST(Pack, F32ComesBackExactly) {
  overShapes(WeightForm::F32, [](const PackedLayout &, const std::vector<float> &values, const std::vector<uint8_t> &,
                                 const std::vector<float> &back) { EXPECT_EQ(back, values); });
}

TEST(Pack, Bf16ComesBackRounded) {
  overShapes(WeightForm::BF16, [](const PackedLayout &, const std::vector<float> &values, const std::vector<uint8_t> &,
                                  const std::vector<float> &back) {
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(back[i], fromBf16(bf16FromF32(values[i])));
  });
}

TEST(Pack, I8ComesBackWithinHalfAStep) {
  overShapes(WeightForm::I8, [](const PackedLayout &layout, const std::vector<float> &values,
                                const std::vector<uint8_t> &, const std::vector<float> &back) {
    for (int64_t row = 0; row < layout.n; ++row)
      for (int64_t k0 = 0; k0 < layout.k; k0 += 32) {
        size_t first = static_cast<size_t>(row * layout.k + k0);
        size_t end = static_cast<size_t>(row * layout.k + std::min(k0 + 32, layout.k));
        float largest = 0.0f;
        for (size_t i = first; i < end; ++i)
          largest = std::max(largest, std::fabs(values[i]));
        // Half a step; f16 moves the step by at most 2^-11 of it, or by 2^-25 where it is subnormal.
        float bound = 0.5005f * largest / 127.0f + 127 * 0x1p-25f;
        for (size_t i = first; i < end; ++i)
          ASSERT_LE(std::fabs(back[i] - values[i]), bound);
      }
  });
}

TEST(Pack, I4ComesBackWithinItsBound) {
  overShapes(WeightForm::I4, [](const PackedLayout &layout, const std::vector<float> &values,
                                const std::vector<uint8_t> &, const std::vector<float> &back) {
    for (int64_t row = 0; row < layout.n; ++row)
      for (int64_t k0 = 0; k0 < layout.k; k0 += 32) {
        double error = 0, energy = 0, largest = 0;
        for (int64_t k = k0; k < std::min(k0 + 32, layout.k); ++k) {
          double w = values[static_cast<size_t>(row * layout.k + k)];
          double e = back[static_cast<size_t>(row * layout.k + k)] - w;
          error += w * w * e * e;
          energy += w * w;
          largest = std::max(largest, std::fabs(w));
        }
        // The scale largest / 8 is among those searched. With it an element is off by half a step (1/16 of the
        // largest), or by up to one where it would need the code +8; the winner is no worse but for the rounding of the
        // scale to f16 (2^-11, or 2^-25 absolute, times 8).
        double perElement = largest / 8 * (1 + 0x1p-8) + 0x1p-22;
        ASSERT_LE(error, energy * perElement * perElement) << layout.n << " " << layout.k;
      }
  });
}

TEST(Pack, InterleavedRowsComeBackInPlace) {
  // Blocks of 8, 20, 32 rows, N of whole and partial blocks.
  for (WeightForm form : {WeightForm::F32, WeightForm::BF16, WeightForm::I8, WeightForm::I4})
    for (int64_t n : {2, 30, 32, 34, 66, 194})
      for (int64_t block : {8, 20, 32}) {
        PackedLayout layout = matrixLayout(n, 65, form, 2 * block, block);
        std::vector<float> values = gaussian(n * 65, static_cast<unsigned>(n));
        std::vector<uint8_t> packed = packFloats(values, layout);
        StatusOr<std::vector<float>> back = unpackWeight(layout, packed);
        // Rows are packed independently of each other, so the order of rows alone differs from the plain tiling.
        PackedLayout straight = matrixLayout(n, 65, form, 16);
        StatusOr<std::vector<float>> expected = unpackWeight(straight, packFloats(values, straight));
        ASSERT_TRUE(back.ok() && expected.ok());
        EXPECT_EQ(*back, *expected) << n << " " << block;
      }
}

TEST(Pack, InterleavedTileHoldsGateThenUp) {
  // N = 2 * 6, blocks of 4: tile 1 has gate rows 4, 5, two zeros, then up rows 10, 11, two zeros.
  PackedLayout layout = matrixLayout(12, 1, WeightForm::F32, 8, 4);
  std::vector<uint8_t> packed = packFloats(counting(12), layout);
  ASSERT_EQ(packed.size(), 2u * 16 * 4);
  std::vector<float> tile;
  for (size_t p = 0; p < 16; ++p)
    tile.push_back(at<float>(packed, (16 + p) * 4));
  EXPECT_EQ(tile, (std::vector<float>{5, 6, 0, 0, 11, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Pack, RecipeIsAppliedBeforePacking) {
  MemoryTensors tensors;
  std::vector<float> values = counting(8 * 2);
  tensors.addFloats("t", {8, 2}, values);
  WeightRecipe recipe{"w", {4, 2}, {{.tensor = "t", .rows = {{4, 8}}, .unpermuteHeadRows = 4}}, 0.5};
  PackedLayout layout = matrixLayout(4, 2, WeightForm::F32, 16);
  StatusOr<std::vector<uint8_t>> packed = packToBytes(recipe, layout, tensors);
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  // Rows 4..7 are {9,10} {11,12} {13,14} {15,16}; pairs to halves: 4, 6, 5, 7; plus 0.5. Padding takes no addend.
  EXPECT_EQ(*unpackWeight(layout, *packed), (std::vector<float>{9.5, 10.5, 13.5, 14.5, 11.5, 12.5, 15.5, 16.5}));
  EXPECT_EQ(at<float>(*packed, 4 * 4), 0.0f);
}

TEST(Pack, StackedMatricesFollowEachOther) {
  for (WeightForm form : {WeightForm::F32, WeightForm::BF16, WeightForm::I8, WeightForm::I4, WeightForm::I4M})
    for (int64_t interleave : {0, 8}) {
      PackedLayout one = matrixLayout(34, 65, form, 16, interleave), stack = one;
      stack.stacked = 3;
      MemoryTensors tensors;
      std::vector<float> values = gaussian(3 * 34 * 65, 7);
      std::vector<uint8_t> expected;
      for (int64_t e = 0; e < 3; ++e) {
        std::vector<float> matrix(values.begin() + e * 34 * 65, values.begin() + (e + 1) * 34 * 65);
        std::vector<uint8_t> packed = packFloats(matrix, one);
        expected.insert(expected.end(), packed.begin(), packed.end());
      }
      tensors.addFloats("t", {3, 34, 65}, values);
      StatusOr<std::vector<uint8_t>> packed = packToBytes(recipeOfTensors({3, 34, 65}, {"t"}), stack, tensors, 2);
      ASSERT_TRUE(packed.ok()) << packed.status().message();
      EXPECT_EQ(*packed, expected);
      StatusOr<std::vector<float>> back = unpackWeight(stack, *packed);
      ASSERT_TRUE(back.ok());
      if (form == WeightForm::F32) {
        EXPECT_EQ(*back, values);
      }
    }
}

TEST(Pack, ListsOfVectorsArePlain) {
  MemoryTensors tensors;
  tensors.addFloats("t", {3, 5}, counting(15));
  PackedLayout layout{15, 1, WeightForm::Plain, 0, 0, 0};
  StatusOr<std::vector<uint8_t>> packed = packToBytes(recipeOfTensors({3, 5}, {"t"}), layout, tensors);
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  ASSERT_EQ(packed->size(), 64u * 4); // padded
  for (size_t i = 0; i < 15; ++i)
    EXPECT_EQ(at<float>(*packed, 4 * i), static_cast<float>(i + 1));
  EXPECT_EQ(at<float>(*packed, 4 * 15), 0.0f);
}

TEST(Pack, BytesDoNotDependOnThreads) {
  MemoryTensors tensors;
  tensors.addFloats("t", {197, 130}, gaussian(197 * 130, 3));
  WeightRecipe recipe = recipeOfTensors({197, 130}, {"t"});
  for (WeightForm form : {WeightForm::F32, WeightForm::BF16, WeightForm::I8, WeightForm::I4}) {
    PackedLayout layout = matrixLayout(197, 130, form, 16);
    StatusOr<std::vector<uint8_t>> one = packToBytes(recipe, layout, tensors, 1);
    ASSERT_TRUE(one.ok());
    for (int threads : {2, 3, 8}) {
      StatusOr<std::vector<uint8_t>> many = packToBytes(recipe, layout, tensors, threads);
      ASSERT_TRUE(many.ok());
      EXPECT_EQ(*one, *many) << threads;
    }
  }
}

// The parts of two ranks, of which one is many pieces and one less than a piece: rows 0..1999 and 2000..2009.
TEST(Pack, PartsGoToTheirOwnSinksInOrder) {
  MemoryTensors tensors;
  tensors.addFloats("t", {2010, 130}, gaussian(2010 * 130, 5));
  WeightRecipe first = recipeOfTensors({2010, 130}, {"t"}), second = first;
  first.taken = {{{0, 2000}}, {{0, 130}}};
  second.taken = {{{2000, 2010}}, {{0, 130}}};
  const PackedLayout layouts[] = {matrixLayout(2000, 130, WeightForm::F32, 16),
                                  matrixLayout(10, 130, WeightForm::F32, 16)};
  ASSERT_GT(*layouts[0].bytes().value(), 3u << 18);
  for (int threads : {1, 3}) {
    std::vector<uint8_t> packed[2];
    auto into = [](std::vector<uint8_t> &bytes) {
      return [&](std::span<const uint8_t> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return Status();
      };
    };
    const WeightPart parts[] = {{first, layouts[0], into(packed[0])}, {second, layouts[1], into(packed[1])}};
    Status status = packWeights(parts, tensors, threads);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(packed[0], *packToBytes(first, layouts[0], tensors));
    EXPECT_EQ(packed[1], *packToBytes(second, layouts[1], tensors));
  }
}

// The numbers are wrong on purpose: the stored halves are what is packed, whole rows and a rank's columns of them.
TEST(Pack, StoredBf16StaysAsItIs) {
  std::vector<float> values = gaussian(70 * 33, 6), wrong(70 * 33, 1e9f);
  std::vector<uint8_t> bytes;
  for (float &value : values) {
    uint16_t half = bf16FromF32(value);
    value = fromBf16(half);
    bytes.push_back(static_cast<uint8_t>(half));
    bytes.push_back(static_cast<uint8_t>(half >> 8));
  }
  MemoryTensors tensors;
  tensors.addBlocks("stored", {70, 33}, TensorType::BF16, bytes, wrong);
  tensors.addFloats("floats", {70, 33}, values);
  for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 33}, {3, 20}}) {
    auto packed = [&](const std::string &tensor) {
      WeightRecipe recipe = recipeOfTensors({70, 33}, {tensor});
      recipe.taken = {{{0, 70}}, {{begin, end}}};
      return packToBytes(recipe, matrixLayout(70, end - begin, WeightForm::BF16, 40), tensors);
    };
    StatusOr<std::vector<uint8_t>> stored = packed("stored"), floats = packed("floats");
    ASSERT_TRUE(stored.ok() && floats.ok());
    EXPECT_EQ(*stored, *floats) << begin;
  }
}

TEST(Pack, FailuresNameTheWeight) {
  MemoryTensors tensors;
  tensors.addFloats("t", {8, 4}, counting(32));
  std::vector<float> infinite(32, 1.0f), large(32, 1e8f);
  infinite[13] = INFINITY;
  tensors.addFloats("infinite", {8, 4}, infinite);
  tensors.addFloats("large", {8, 4}, large);
  auto error = [&](const std::string &tensor, const PackedLayout &layout) {
    StatusOr<std::vector<uint8_t>> packed = packToBytes(recipeOfTensors({8, 4}, {tensor}), layout, tensors);
    return packed.ok() ? "" : packed.status().message();
  };
  EXPECT_EQ(error("t", matrixLayout(8, 5, WeightForm::F32, 16)), "weight 'w' is [8, 4], but its layout is of [8, 5]");
  EXPECT_NE(error("t", {8, 4, WeightForm::I4, 16, 32, 0}).find("weight 'w': layout of [8, 4] as i4, tile 16, panel 32"),
            std::string::npos);
  for (WeightForm form : {WeightForm::I8, WeightForm::I4, WeightForm::I4M})
    for (std::string tensor : {"infinite", "large"}) // 1e8 / 127 and 1e8 / 8 are beyond 65504
      EXPECT_EQ(error(tensor, matrixLayout(8, 4, form, 16)),
                "weight 'w' has elements near column 0 that are not finite, or too large for an f16 scale; choose bf16 "
                "or f32");
  EXPECT_EQ(error("infinite", matrixLayout(8, 4, WeightForm::BF16, 16)), "");
}

TEST(Pack, ASinkThatFailsIsHeard) {
  MemoryTensors tensors;
  tensors.addFloats("t", {64, 4}, counting(256));
  for (int threads : {1, 2}) {
    Status status = packWeight(
        recipeOfTensors({64, 4}, {"t"}), matrixLayout(64, 4, WeightForm::F32, 16), tensors,
        [](std::span<const uint8_t>) { return Status::error("disk full"); }, threads);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "disk full");
  }
}

TEST(Unpack, RefusesOtherSizes) {
  PackedLayout layout = matrixLayout(16, 4, WeightForm::F32, 16);
  std::vector<uint8_t> packed(16 * 4 * 4);
  float row[4];
  EXPECT_TRUE(unpackRow(layout, packed, 15, row).ok());
  EXPECT_EQ(unpackRow(layout, packed, 16, row).message(), "packed weight has 16 rows, row 16 is asked for");
  packed.pop_back();
  EXPECT_EQ(unpackRow(layout, packed, 0, row).message(), "packed weight has 255 bytes, its layout takes 256");
  EXPECT_EQ(unpackWeight(layout, packed).status().message(), "packed weight has 255 bytes, its layout takes 256");
}
