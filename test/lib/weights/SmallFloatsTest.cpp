// Rounding to bf16 and f16 at every kind of boundary.
#include "lib/weights/SmallFloats.h"
#include "lib/importer/files/Dequantize.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;

TEST(SmallFloats, EveryF16ComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    float value = fromF16(half);
    if (!std::isnan(value)) {
      EXPECT_EQ(f16FromF32(value), half);
      continue;
    }
    EXPECT_EQ(f16FromF32(value), half | 0x200); // quiet
  }
  EXPECT_EQ(fromF16(0x0001), 0x1p-24f);
  EXPECT_EQ(fromF16(0x3C00), 1.0f);
  EXPECT_EQ(fromF16(0xFBFF), -65504.0f);
}

// Between neighbours the nearer one, at the middle the even one: checked at the middle of all pairs.
TEST(SmallFloats, F16RoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7BFF; ++low) {
    float middle = (fromF16(static_cast<uint16_t>(low)) + fromF16(static_cast<uint16_t>(low + 1))) / 2;
    EXPECT_EQ(f16FromF32(middle), low + low % 2);
    EXPECT_EQ(f16FromF32(std::nextafter(middle, 0.0f)), low);
    EXPECT_EQ(f16FromF32(-std::nextafter(middle, 1e9f)), 0x8000 | (low + 1));
  }
  EXPECT_EQ(f16FromF32(65519.996f), 0x7BFF);
  EXPECT_EQ(f16FromF32(65520.0f), 0x7C00); // half a step beyond the largest: infinite
  EXPECT_EQ(f16FromF32(-INFINITY), 0xFC00);
}

TEST(SmallFloats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(bf16FromF32(1.0f), 0x3F80);
  EXPECT_EQ(bf16FromF32(1.0f + 0x1p-8f), 0x3F80);            // middle, 0x3F80 is even
  EXPECT_EQ(bf16FromF32(1.0f + 0x3p-8f), 0x3F82);            // middle, 0x3F82 is even
  EXPECT_EQ(bf16FromF32(1.0f + 0x1p-8f + 0x1p-23f), 0x3F81); // just above
  EXPECT_EQ(bf16FromF32(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(bf16FromF32(-INFINITY), 0xFF80);
  EXPECT_EQ(fromBf16(0xC040), -3.0f);
}

TEST(SmallFloats, NanStaysNan) {
  for (uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0x7FC00000u}) {
    EXPECT_TRUE(std::isnan(fromBf16(bf16FromF32(std::bit_cast<float>(bits))))) << std::hex << bits;
    EXPECT_TRUE(std::isnan(fromF16(f16FromF32(std::bit_cast<float>(bits))))) << std::hex << bits;
  }
}
