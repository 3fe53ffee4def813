#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/Safetensors.h"
#include "runtime/support/File.h"
#include "test/lib/importer/files/WeightFileBytes.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

// Blocks and values of an independent implementation: NAME.raw and NAME.values.
class GoldenBlocks {
public:
  GoldenBlocks() {
    StatusOr<std::string> text = readFile(LLMC_TEST_DATA "/gguf-types.safetensors", 1 << 20);
    EXPECT_TRUE(text.ok());
    bytes_ = *text;
    StatusOr<SafetensorsHeader> header = parseSafetensorsHeader(test::asBytes(bytes_), bytes_.size(), "golden");
    EXPECT_TRUE(header.ok()) << header.status().message();
    tensors_ = header->tensors;
  }
  std::span<const uint8_t> operator[](const std::string &name) const {
    for (const SafetensorsTensor &tensor : tensors_)
      if (tensor.name == name)
        return test::asBytes(bytes_).subspan(tensor.offset, tensor.bytes);
    ADD_FAILURE() << name;
    return {};
  }

private:
  std::string bytes_;
  std::vector<SafetensorsTensor> tensors_;
};

class DequantizeGolden : public ::testing::TestWithParam<TensorType> {};

} // namespace

TEST_P(DequantizeGolden, EqualBitForBit) {
  GoldenBlocks golden;
  std::string name(nameOf(GetParam()));
  std::span<const uint8_t> raw = golden[name + ".raw"], expected = golden[name + ".values"];
  std::vector<float> values(expected.size() / sizeof(float));
  ASSERT_GT(values.size(), 0u);
  Status status = dequantize(GetParam(), raw, 0, values);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, expected.data() + 4 * i, 4);
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), bits)
        << "value " << i << ": " << values[i] << " against " << std::bit_cast<float>(bits);
  }
  // The last block alone gives the same as in the whole.
  uint64_t block = infoOf(GetParam()).blockValues;
  std::vector<float> last(block);
  ASSERT_TRUE(dequantize(GetParam(), raw, values.size() - block, last).ok());
  EXPECT_EQ(std::memcmp(last.data(), values.data() + values.size() - block, block * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, DequantizeGolden,
                         ::testing::Values(TensorType::F16, TensorType::BF16, TensorType::Q4_0, TensorType::Q4_1,
                                           TensorType::Q5_0, TensorType::Q5_1, TensorType::Q8_0, TensorType::Q2_K,
                                           TensorType::Q3_K, TensorType::Q4_K, TensorType::Q5_K, TensorType::Q6_K,
                                           TensorType::IQ4_NL, TensorType::IQ4_XS, TensorType::MXFP4, TensorType::NVFP4,
                                           TensorType::IQ1_S, TensorType::IQ1_M, TensorType::IQ2_XXS,
                                           TensorType::IQ2_XS, TensorType::IQ2_S, TensorType::IQ3_XXS,
                                           TensorType::IQ3_S, TensorType::TQ1_0, TensorType::TQ2_0, TensorType::Q1_0,
                                           TensorType::Q2_0),
                         [](const auto &info) { return std::string(nameOf(info.param)); });

// Against the definition, for every bit pattern.
TEST(Dequantize, HalfFloats) {
  for (uint32_t bits = 0; bits < 0x8000; ++bits) {
    int exponent = static_cast<int>(bits >> 10);
    double mantissa = bits & 0x3FF;
    float value = fromF16(static_cast<uint16_t>(bits)), negative = fromF16(static_cast<uint16_t>(bits | 0x8000));
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), mantissa != 0);
      EXPECT_EQ(std::isinf(value), mantissa == 0);
      continue;
    }
    double expected = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
    ASSERT_EQ(static_cast<double>(value), expected) << bits;
    ASSERT_EQ(static_cast<double>(negative), -expected) << bits;
    ASSERT_TRUE(std::signbit(negative));
  }
  EXPECT_LT(fromF16(0xFC00), 0);
}

TEST(Dequantize, EightBitFloats) {
  EXPECT_EQ(fromF8E4M3(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(fromF8E4M3(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(fromF8E4M3(0x38), 1.0f);
  EXPECT_EQ(fromF8E4M3(0x7E), 448.0f);
  EXPECT_EQ(fromF8E4M3(0xFE), -448.0f);
  EXPECT_TRUE(std::isnan(fromF8E4M3(0x7F)));
  EXPECT_TRUE(std::isnan(fromF8E4M3(0xFF)));
  EXPECT_TRUE(std::signbit(fromF8E4M3(0x80)));
  EXPECT_EQ(fromF8E5M2(0x01), std::ldexp(1.0f, -16));
  EXPECT_EQ(fromF8E5M2(0x3C), 1.0f);
  EXPECT_EQ(fromF8E5M2(0x7B), 57344.0f);
  EXPECT_TRUE(std::isinf(fromF8E5M2(0x7C)));
  EXPECT_TRUE(std::isnan(fromF8E5M2(0x7D)));
  EXPECT_EQ(fromF8E8M0(127), 1.0f);
  EXPECT_EQ(fromF8E8M0(0), std::ldexp(1.0f, -127));
  EXPECT_EQ(fromF8E8M0(254), std::ldexp(1.0f, 127));
  EXPECT_TRUE(std::isnan(fromF8E8M0(255)));
}

TEST(Dequantize, PlainNumbers) {
  auto one = [](TensorType type, const std::string &bytes) {
    float value = -99;
    EXPECT_TRUE(dequantize(type, test::asBytes(bytes), 0, std::span(&value, 1)).ok());
    return value;
  };
  EXPECT_EQ(one(TensorType::F32, test::littleEndian(0.1f)), 0.1f);
  EXPECT_EQ(one(TensorType::F64, test::littleEndian(0.1)), 0.1f) << "rounded to the nearest";
  EXPECT_EQ(one(TensorType::I8, "\xFE"), -2.0f);
  EXPECT_EQ(one(TensorType::U8, "\xFE"), 254.0f);
  EXPECT_EQ(one(TensorType::I16, test::littleEndian(int16_t{-300})), -300.0f);
  EXPECT_EQ(one(TensorType::I32, test::littleEndian(int32_t{-70000})), -70000.0f);
  EXPECT_EQ(one(TensorType::I64, test::littleEndian(int64_t{16777215})), 16777215.0f);
}

// Q8_K is no type of golden files: only ggml's dot products make it. d * q, by hand.
TEST(Dequantize, Q8_K) {
  std::string block = test::littleEndian(0.3f);
  for (int i = 0; i < 256; ++i)
    block += static_cast<char>(i - 128);
  block += std::string(32, '\x55');
  std::vector<float> values(256);
  ASSERT_TRUE(dequantize(TensorType::Q8_K, test::asBytes(block), 0, values).ok());
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(values[i], 0.3f * static_cast<float>(i - 128));
}

// Group 10: blocks may lie anywhere.
TEST(Dequantize, OddAddresses) {
  GoldenBlocks golden;
  std::span<const uint8_t> raw = golden["Q5_1.raw"];
  std::vector<uint8_t> shifted(raw.size() + 1);
  std::copy(raw.begin(), raw.end(), shifted.begin() + 1);
  std::vector<float> a(512), b(512);
  ASSERT_TRUE(dequantize(TensorType::Q5_1, raw, 0, a).ok());
  ASSERT_TRUE(dequantize(TensorType::Q5_1, std::span(shifted).subspan(1), 0, b).ok());
  EXPECT_EQ(a, b);
}

TEST(Dequantize, RangesThatAreRefused) {
  std::vector<uint8_t> bytes(2 * 18);
  std::vector<float> out(32);
  auto error = [&](TensorType type, uint64_t first, size_t count) {
    return dequantize(type, bytes, first, std::span(out).first(count)).message();
  };
  EXPECT_EQ(error(TensorType::Q4_0, 16, 32), "values 16 to 48 do not begin and end at Q4_0 blocks of 32");
  EXPECT_EQ(error(TensorType::Q4_0, 0, 31), "values 0 to 31 do not begin and end at Q4_0 blocks of 32");
  EXPECT_EQ(error(TensorType::Q4_0, 64, 32), "blocks 2 to 3 asked for, 2 are stored");
  EXPECT_EQ(error(TensorType::Q4_0, UINT64_MAX - 31, 32).substr(0, 6), "blocks");
  EXPECT_EQ(error(TensorType::U32, 0, 1), "no float values for type U32");
  EXPECT_TRUE(dequantize(TensorType::Q4_0, bytes, 32, out).ok());
  EXPECT_TRUE(dequantize(TensorType::F32, {}, 0, {}).ok());
  EXPECT_TRUE(isDequantizable(TensorType::Q6_K));
  EXPECT_FALSE(isDequantizable(TensorType::U64));
}

// Group 11.
TEST(Dequantize, FiniteOrNamed) {
  std::vector<float> values(16, 1.0f);
  std::vector<uint64_t> shape = {4, 8};
  EXPECT_TRUE(checkFinite("x.scales", shape, 16, values).ok());
  values[15] = NAN; // 16 + 15 = 3 * 8 + 7
  EXPECT_EQ(checkFinite("x.scales", shape, 16, values).message(),
            "tensor 'x.scales' holds NaN at [3, 7]; weights must be finite, so the file is damaged or was saved from a "
            "diverged model");
  values[0] = -INFINITY;
  EXPECT_NE(checkFinite("x", shape, 16, values).message().find("holds -Infinity at [2, 0]"), std::string::npos);
  EXPECT_EQ(findNonFinite(values), 0u);
  EXPECT_EQ(findNonFinite(std::vector<float>{}), std::nullopt);
}
