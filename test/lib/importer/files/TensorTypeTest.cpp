#include "lib/importer/files/TensorType.h"
#include <gtest/gtest.h>

using namespace llmc;
using Shape = std::vector<uint64_t>;

TEST(TensorType, TableIsInTheOrderOfTheEnum) {
  for (int i = 0; i <= static_cast<int>(TensorType::Q2_0); ++i)
    EXPECT_EQ(static_cast<int>(infoOf(static_cast<TensorType>(i)).type), i);
}

TEST(TensorType, LookUpByNameAndNumber) {
  EXPECT_EQ(safetensorsType("F8_E4M3"), TensorType::F8E4M3);
  EXPECT_EQ(safetensorsType("I128"), std::nullopt);
  EXPECT_EQ(safetensorsType("Q4_K"), std::nullopt) << "a type of GGUF only";
  EXPECT_EQ(ggmlType(12), TensorType::Q4_K);
  EXPECT_EQ(ggmlType(30), TensorType::BF16);
  for (uint32_t unknown : {4u, 5u, 31u, 36u, 255u, UINT32_MAX})
    EXPECT_EQ(ggmlType(unknown), std::nullopt) << unknown;
  EXPECT_EQ(knownSafetensorsTypes().substr(0, 14), "BF16, BOOL, C6");
}

TEST(TensorType, Bytes) {
  EXPECT_EQ(*tensorBytes(TensorType::BF16, Shape{2, 3}), 12u);
  EXPECT_EQ(*tensorBytes(TensorType::F32, Shape{}), 4u) << "a scalar";
  EXPECT_EQ(*tensorBytes(TensorType::F32, Shape{0, 7}), 0u);
  EXPECT_EQ(*tensorBytes(TensorType::Q4_K, Shape{3, 512}), 3u * 2 * 144);
  EXPECT_EQ(*tensorBytes(TensorType::F4, Shape{3, 2}), 3u);
  EXPECT_EQ(*tensorBytes(TensorType::F6E2M3, Shape{4}), 3u);
}

TEST(TensorType, BytesThatDoNotCome) {
  EXPECT_EQ(tensorBytes(TensorType::Q4_K, Shape{256, 100}).status().message(),
            "rows of 100 values do not divide into Q4_K blocks of 256");
  EXPECT_EQ(tensorBytes(TensorType::F4, Shape{3}).status().message(),
            "shape [3] of F4 takes 3 times 4 bits, which is no whole number of bytes");
  constexpr uint64_t half = uint64_t{1} << 63;
  EXPECT_EQ(tensorBytes(TensorType::U8, Shape{4294967296, 4294967296, 2}).status().message(),
            "shape [4294967296, 4294967296, 2] overflows 64 bits");
  EXPECT_EQ(tensorBytes(TensorType::U8, Shape{0, half, half}).status().message(),
            "shape [0, 9223372036854775808, 9223372036854775808] overflows 64 bits");
  EXPECT_EQ(tensorBytes(TensorType::F32, Shape{half}).status().message(),
            "shape [9223372036854775808] of F32 overflows 64 bits");
  EXPECT_EQ(*tensorBytes(TensorType::U8, Shape{half}), half);
}
