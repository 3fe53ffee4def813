#include "lib/synth/RandomTensors.h"
#include "lib/importer/files/Dequantize.h"
#include "test/lib/importer/ImporterTesting.h"
#include <algorithm>
#include <cmath>

using namespace llmc;

namespace {

std::vector<float> valuesOf(const RandomTensor &tensor, uint64_t seed, uint64_t first, size_t count) {
  std::vector<float> values(count);
  RandomValues(tensor, seed).fill(first, values);
  return values;
}

const RandomTensor *named(const std::vector<RandomTensor> &tensors, const std::string &name) {
  auto it = std::find_if(tensors.begin(), tensors.end(), [&](const RandomTensor &t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

const RandomTensor unit{"model.layers.0.mlp.up_proj.weight", {256, 256}, 0.0, 1.0};

} // namespace

TEST(RandomTensors, KeepTheScaleOfActivations) {
  std::vector<RandomTensor> tensors = randomTensors(fixture::resolved("published/qwen3-0.6b"));
  EXPECT_EQ(tensors.size(), 310u); // 11 a layer, embedding and final norm
  const RandomTensor *down = named(tensors, "model.layers.27.mlp.down_proj.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (std::vector<uint64_t>{1024, 3072}));
  EXPECT_DOUBLE_EQ(down->deviation, 1 / std::sqrt(3072.0));
  EXPECT_EQ(named(tensors, "model.norm.weight")->mean, 1.0);
  EXPECT_EQ(named(tensors, "lm_head.weight"), nullptr); // tied
}

// The gain of such a norm is stored less 1.
TEST(RandomTensors, GainsLieAroundTheIdentityOfTheFamily) {
  EXPECT_EQ(named(randomTensors(fixture::resolved("published/gemma-2b")), "model.norm.weight")->mean, 0.0);
}

TEST(RandomTensors, BiasesLieAroundZero) {
  std::vector<RandomTensor> tensors = randomTensors(fixture::resolved("published/qwen2-7b"));
  EXPECT_EQ(named(tensors, "model.layers.0.self_attn.q_proj.bias")->mean, 0.0);
  EXPECT_EQ(named(tensors, "model.layers.0.input_layernorm.weight")->mean, 1.0);
}

// One tensor for three weights, once and whole.
TEST(RandomTensors, FusedProjectionsComeOnce) {
  std::vector<RandomTensor> tensors = randomTensors(fixture::resolved("published/phi-3-mini-4k"));
  EXPECT_EQ(std::count_if(tensors.begin(), tensors.end(),
                          [](const RandomTensor &t) { return t.name == "model.layers.0.self_attn.qkv_proj.weight"; }),
            1);
  EXPECT_EQ(named(tensors, "model.layers.0.self_attn.qkv_proj.weight")->shape, (std::vector<uint64_t>{9216, 3072}));
}

TEST(RandomTensors, ValuesDependOnSeedNameAndPlaceOnly) {
  std::vector<float> all = valuesOf(unit, 7, 0, 1000), tail = valuesOf(unit, 7, 990, 10);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), all.begin() + 990));
  EXPECT_NE(all, valuesOf(unit, 8, 0, 1000));
  RandomTensor other = unit;
  other.name += "s";
  EXPECT_NE(all, valuesOf(other, 7, 0, 1000));
}

// 65536 draws: the deviations of their mean and mean square are 1/256 and 1.2/256.
TEST(RandomTensors, ValuesHaveTheMeanAndDeviation) {
  std::vector<float> values = valuesOf(unit, 1, 0, 65536);
  double sum = 0, squares = 0;
  for (float value : values) {
    sum += value;
    squares += double(value) * value;
    EXPECT_LE(std::fabs(value), 3.4642f); // all four uniform numbers at their end: 131070 / 37837.2
  }
  EXPECT_NEAR(sum / 65536, 0.0, 4.0 / 256);
  EXPECT_NEAR(squares / 65536, 1.0, 5.0 / 256);
}

// Pinned: a checkpoint made anywhere, any time, is the same.
TEST(RandomTensors, ValuesNeverChange) {
  std::vector<float> values = valuesOf(unit, 0, 0, 3);
  EXPECT_EQ(values, (std::vector<float>{-0x1.9cb718p-3f, 0x1.ae4cb2p+0f, -0x1.d643ecp-1f}));
}

TEST(RandomTensors, EncodesToEachType) {
  const std::vector<float> values = {1.0f, -0.3f};
  uint8_t bytes[8];
  encode(values, TensorType::BF16, bytes);
  EXPECT_EQ(bytes[2] | bytes[3] << 8, 0xBE9A); // -0.30078125
  encode(values, TensorType::F16, bytes);
  EXPECT_EQ(fromF16(static_cast<uint16_t>(bytes[2] | bytes[3] << 8)), -0.300048828125f);
  encode(values, TensorType::F32, bytes);
  EXPECT_EQ(bytes[3], 0x3F);
}
