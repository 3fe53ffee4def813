// The order and the rounding of each product, by hand and against the definition, at sizes around a panel and a group.
#include "lib/reference/TileKernels.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/reference/Formulas.h"
#include "lib/weights/SmallFloats.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace llmc::reference {
namespace {

std::vector<float> random(size_t size, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float &x : values)
    x = normal(engine);
  return values;
}

PackedLayout layoutFor(int64_t k, WeightForm form, int64_t panel) { return {32, k, form, 32, panel, 0}; }

// [tile / panel][k][panel], as docs/weight-layouts.md has it.
std::vector<uint8_t> packF32(const std::vector<float> &w, const PackedLayout &layout) {
  std::vector<uint8_t> bytes(static_cast<size_t>(32 * layout.k * 4));
  for (int64_t n = 0; n < 32; ++n)
    for (int64_t k = 0; k < layout.k; ++k)
      std::memcpy(bytes.data() + ((n / layout.panel * layout.k + k) * layout.panel + n % layout.panel) * 4,
                  &w[static_cast<size_t>(n * layout.k + k)], 4);
  return bytes;
}

// [tile / panel][pairs][panel][2]
std::vector<uint8_t> packBf16(const std::vector<float> &w, const PackedLayout &layout) {
  const int64_t pairs = (layout.k + 1) / 2;
  std::vector<uint8_t> bytes(static_cast<size_t>(32 * pairs * 4));
  for (int64_t n = 0; n < 32; ++n)
    for (int64_t k = 0; k < layout.k; ++k) {
      uint16_t bits = bf16FromF32(w[static_cast<size_t>(n * layout.k + k)]);
      int64_t at = ((n / layout.panel * pairs + k / 2) * layout.panel + n % layout.panel) * 2 + k % 2;
      std::memcpy(bytes.data() + at * 2, &bits, 2);
    }
  return bytes;
}

TEST(Dot, F32FollowsAscendingFma) {
  for (int64_t panel : {16, 32})
    for (int64_t k : {1, 15, 16, 17, 101}) {
      PackedLayout layout = layoutFor(k, WeightForm::F32, panel);
      std::vector<float> x = random(static_cast<size_t>(k), 1), w = random(static_cast<size_t>(32 * k), 2), y(32);
      dotF32(x, packF32(w, layout).data(), layout, y);
      for (size_t n = 0; n < 32; ++n) {
        float sum = 0;
        for (size_t i = 0; i < x.size(); ++i)
          sum = std::fma(x[i], w[n * x.size() + i], sum);
        EXPECT_EQ(y[n], sum) << "k " << k << " panel " << panel;
      }
    }
}

TEST(Dot, Bf16AddsOddThenEven) {
  for (int64_t k : {1, 2, 15, 16, 17, 101}) {
    PackedLayout layout = layoutFor(k, WeightForm::BF16, 32);
    std::vector<float> x = random(static_cast<size_t>(k), 1), w = random(static_cast<size_t>(32 * k), 2), y(32);
    for (std::vector<float> *values : {&x, &w})
      for (float &value : *values)
        value = roundToBf16(value);
    dotBf16(x, packBf16(w, layout).data(), layout, y);
    for (size_t n = 0; n < 32; ++n) {
      float sum = 0;
      for (size_t i = 0; i < x.size(); i += 2) {
        if (i + 1 < x.size())
          sum += x[i + 1] * w[n * x.size() + i + 1]; // the product is exact
        sum += x[i] * w[n * x.size() + i];
      }
      EXPECT_EQ(y[n], sum) << "k " << k;
    }
  }
}

TEST(Dot, Bf16TreatsSubnormalsAsZero) {
  PackedLayout layout = layoutFor(2, WeightForm::BF16, 32);
  std::vector<float> w(64, 1.0f), y(32);
  w[0] = 0x1p-130f; // a subnormal weight
  std::vector<float> x{0x1p120f, 0x1p-126f};
  dotBf16(x, packBf16(w, layout).data(), layout, y);
  EXPECT_EQ(y[0], 0x1p-126f);
  EXPECT_EQ(y[1], 0x1p120f); // the smallest normal number is lost in the sum, not flushed before
  x = {0, 0x1p-130f};        // a subnormal input
  dotBf16(x, packBf16(w, layout).data(), layout, y);
  EXPECT_EQ(y[1], 0);
}

TEST(Quantize, ByHand) {
  std::vector<float> x(33, 0.0f), scales(2);
  x[0] = -65024, x[1] = 3, x[2] = 1, x[32] = 0;
  std::vector<int16_t> codes(64, 99);
  quantize(x, 32512, codes, scales);
  EXPECT_EQ(scales, (std::vector<float>{2, 0})); // 65024 / 32512; a group of zeros has scale 0
  EXPECT_EQ(codes[0], -32512);
  EXPECT_EQ(codes[1], 2); // 3 / 2 = 1.5: to even
  EXPECT_EQ(codes[2], 0); // 1 / 2 = 0.5: to even
  EXPECT_EQ(codes[63], 0);
}

TEST(Quantize, SurvivesTheSmallestAndTheImpossible) {
  std::vector<float> scales(2), x{0x1p-149f, std::nanf(""), 0x1p-149f};
  std::vector<int16_t> codes(64);
  quantize(x, 32512, codes, scales);
  for (int16_t code : codes)
    EXPECT_GE(code, -32512);
}

// One block of 16 columns and 64 of K with given codes, written byte by byte from the table in docs/weight-layouts.md.
TEST(ScaledDot, ReadsEveryForm) {
  std::mt19937 engine(3);
  for (auto [form, bytes, low, high] :
       {std::tuple(WeightForm::I8, 1088, -127, 127), std::tuple(WeightForm::I4, 576, -8, 7),
        std::tuple(WeightForm::I4M, 640, 0, 15), std::tuple(WeightForm::F4, 640, 0, 15)}) {
    PackedLayout layout{16, 64, form, 16, 16, 0};
    std::vector<uint8_t> block(static_cast<size_t>(bytes));
    int codes[16][64];
    for (int l = 0; l < 16; ++l)
      for (int k = 0; k < 64; ++k) {
        codes[l][k] = std::uniform_int_distribution(low, high)(engine);
        const int g = k / 32, j = k % 32;
        if (form == WeightForm::I8) {
          block[static_cast<size_t>(512 * g + 64 * (j / 4) + 4 * l + j % 4)] = static_cast<uint8_t>(codes[l][k] + 128);
          continue;
        }
        const int stored = form == WeightForm::I4 ? codes[l][k] + 8 : codes[l][k];
        block[static_cast<size_t>(256 * g + 64 * ((j / 4) % 4) + 4 * l + j % 4)] |=
            static_cast<uint8_t>(j < 16 ? stored : stored << 4);
      }
    auto put = [&](int at, int g, int l, float value) {
      uint16_t bits = f16FromF32(value);
      std::memcpy(block.data() + at + 32 * g + 2 * l, &bits, 2);
    };
    for (int g = 0; g < 2; ++g)
      for (int l = 0; l < 16; ++l) {
        put(form == WeightForm::I8 ? 1024 : 512, g, l, 0.25f * static_cast<float>(l + 1));
        if (form == WeightForm::I4M || form == WeightForm::F4)
          put(576, g, l, -0.5f * static_cast<float>(g + 1));
      }
    std::vector<int16_t> x(64);
    for (int16_t &code : x)
      code = static_cast<int16_t>(std::uniform_int_distribution(-32512, 32512)(engine));
    std::vector<float> scales{0.5f, 0.125f}, y(16);
    scaledDot(x, scales, block.data(), layout, y);
    for (int l = 0; l < 16; ++l) {
      float expected = 0; // all numbers are short: every step is exact
      for (int g = 0; g < 2; ++g) {
        int sum = 0, codeSum = 0;
        for (int k = 32 * g; k < 32 * g + 32; ++k) {
          int code = form == WeightForm::F4 ? twiceE2M1[codes[l][k]] : codes[l][k];
          bool second = form == WeightForm::F4 && k % 32 >= 16;
          (second ? codeSum : sum) += x[static_cast<size_t>(k)] * code;
          codeSum += form == WeightForm::F4 ? 0 : x[static_cast<size_t>(k)];
        }
        expected += static_cast<float>(sum) * (0.25f * static_cast<float>(l + 1)) * scales[static_cast<size_t>(g)];
        if (form == WeightForm::I4M || form == WeightForm::F4) // the minimum, or the second half and its scale
          expected +=
              static_cast<float>(codeSum) * (-0.5f * static_cast<float>(g + 1)) * scales[static_cast<size_t>(g)];
      }
      EXPECT_FLOAT_EQ(y[static_cast<size_t>(l)], expected);
    }
  }
}

// One block of 8-bit floats, of which the row has 40 columns: the second group is short.
TEST(DotF8, SumsGroupsApart) {
  PackedLayout layout{16, 40, WeightForm::F8, 16, 16, 0};
  std::vector<uint8_t> block(1152);
  std::vector<float> x = random(40, 8), y(16);
  for (size_t k = 0; k < 40; ++k)
    for (size_t l = 0; l < 16; ++l)
      block[16 * k + l] = static_cast<uint8_t>((7 * k + 13 * l) % 0x7F);
  for (size_t l = 0; l < 16; ++l)
    for (size_t g = 0; g < 2; ++g) {
      float scale = 0.01f * static_cast<float>(l + 1) + static_cast<float>(g);
      std::memcpy(block.data() + 1024 + 64 * g + 4 * l, &scale, 4);
    }
  dotF8(x, block.data(), layout, y);
  for (size_t l = 0; l < 16; ++l) {
    float sums[2] = {};
    for (size_t k = 0; k < 40; ++k)
      sums[k / 32] = std::fma(fromF8E4M3(static_cast<uint8_t>((7 * k + 13 * l) % 0x7F)), x[k], sums[k / 32]);
    float scale = 0.01f * static_cast<float>(l + 1);
    EXPECT_EQ(y[l], std::fma(sums[1], scale + 1.0f, std::fma(sums[0], scale, 0.0f)));
  }
}

TEST(Reduce, SixteenPartialsThenHalves) {
  for (size_t size : {1u, 15u, 16u, 17u, 101u}) {
    std::vector<float> x = random(size, 4), partial(16);
    for (size_t i = 0; i < size; ++i)
      partial[i % 16] += x[i];
    for (size_t half = 8; half; half /= 2)
      for (size_t i = 0; i < half; ++i)
        partial[i] += partial[i + half];
    EXPECT_EQ(reduceAdd(x), partial[0]);
    EXPECT_EQ(reduceMax(x), *std::max_element(x.begin(), x.end()));
  }
}

} // namespace
} // namespace llmc::reference
