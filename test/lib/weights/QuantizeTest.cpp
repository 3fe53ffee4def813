// The quantisers on single groups: error bounds, hard values, and that the search pays.
#include "lib/weights/Quantize.h"
#include "MemoryTensors.h"
#include "lib/importer/files/Dequantize.h"
#include <cmath>
#include <cstring>

using namespace llmc;
using namespace llmc::test;

namespace {
// 16 lanes x 32 values as [lane][k], through the packed form and back.
std::vector<float> throughForm(const std::vector<float> &values, WeightForm form) {
  PackedLayout layout = matrixLayout(16, 32, form, 16);
  StatusOr<std::vector<float>> back = unpackWeight(layout, packFloats(values, layout));
  return back.ok() ? *back : std::vector<float>(512, NAN);
}

// Root of sum error^2 / sum w^2, over all.
double relativeError(const std::vector<float> &values, const std::vector<float> &back) {
  double error = 0, energy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(back[i]) - values[i], 2);
    energy += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / energy);
}

// The same with weights w^2, which is what the search makes small.
double weightedError(const std::vector<float> &values, const std::vector<float> &back) {
  double error = 0, energy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double w = values[i], e = back[i] - w;
    error += w * w * e * e;
    energy += w * w * w * w;
  }
  return std::sqrt(error / energy);
}

// 4 bits with the scale that maps the largest magnitude to -8, in f64 and without rounding of the scale.
std::vector<float> plainFourBits(const std::vector<float> &values) {
  std::vector<float> back(values.size());
  for (size_t g = 0; g < values.size(); g += 32) {
    auto first = values.begin() + static_cast<int64_t>(g);
    float extreme = *std::max_element(first, first + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    double scale = extreme / -8.0;
    for (size_t i = g; i < g + 32; ++i)
      back[i] = static_cast<float>(std::clamp(std::nearbyint(values[i] / scale), -8.0, 7.0) * scale);
  }
  return back;
}
} // namespace

TEST(Quantize, EightBitsOverManyMagnitudes) {
  // From where the scale is a subnormal f16 to the largest that fits: 65504 * 127.
  for (float magnitude : {1e-7f, 1e-5f, 1e-3f, 1.0f, 1e3f, 8.3e6f}) {
    std::vector<float> values = gaussian(512, 7);
    float largest = 0;
    for (float &value : values)
      largest = std::max(largest, std::fabs(value));
    for (float &value : values)
      value *= magnitude / largest;
    std::vector<float> back = throughForm(values, WeightForm::I8);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_LE(std::fabs(back[i] - values[i]), 0.5005f * magnitude / 127 + 127 * 0x1p-25f) << magnitude;
  }
}

TEST(Quantize, GroupsOfZerosStayZero) {
  for (WeightForm form : {WeightForm::I8, WeightForm::I4, WeightForm::I4M})
    EXPECT_EQ(throughForm(std::vector<float>(512, 0.0f), form), std::vector<float>(512, 0.0f));
}

TEST(Quantize, FourBitsKeepWhatFourBitsHold) {
  std::vector<float> values(512);
  for (size_t i = 0; i < 512; ++i)
    values[i] = static_cast<float>(static_cast<int>(i * 7 % 16) - 8) * (i / 32 % 2 ? -0.375f : 24.0f);
  EXPECT_EQ(throughForm(values, WeightForm::I4), values);
}

// Errors on Gaussian weights, by a separate program in f64 over 20000 groups: weighted 0.0490 plain, 0.0427 searched;
// unweighted 0.0861 and 0.0843. 4000 groups give these to about 1 %.
TEST(Quantize, FourBitSearchBeatsThePlainScale) {
  PackedLayout layout = matrixLayout(400, 320, WeightForm::I4, 64);
  std::vector<float> values = gaussian(400 * 320, 1);
  std::vector<float> back = *unpackWeight(layout, packFloats(values, layout)), plain = plainFourBits(values);
  EXPECT_NEAR(weightedError(values, plain), 0.0490, 0.0010);
  EXPECT_NEAR(weightedError(values, back), 0.0427, 0.0010);
  EXPECT_NEAR(relativeError(values, plain), 0.0861, 0.0010);
  EXPECT_NEAR(relativeError(values, back), 0.0843, 0.0010);
}

TEST(Quantize, FourBitsDoNotDependOnTheUnit) {
  // Powers of two change neither codes nor the rounding of normal f16 scales.
  std::vector<float> values = gaussian(512, 9), back = throughForm(values, WeightForm::I4);
  for (float unit : {0x1p-5f, 0x1p12f}) {
    std::vector<float> scaled = values;
    for (float &value : scaled)
      value *= unit;
    std::vector<float> scaledBack = throughForm(scaled, WeightForm::I4);
    for (size_t i = 0; i < 512; ++i)
      ASSERT_EQ(scaledBack[i], back[i] * unit);
  }
}

TEST(Quantize, TinyAndHugeFourBitGroups) {
  std::vector<float> tiny(512, 1e-38f), huge(512, 5e5f);
  EXPECT_EQ(throughForm(tiny, WeightForm::I4), std::vector<float>(512, 0.0f)); // the scale is far below 2^-25
  std::vector<float> back = throughForm(huge, WeightForm::I4);
  for (float value : back)
    EXPECT_NEAR(value, 5e5f, 5e5f * 0x1p-11f);
}

// What a Q4_1 block held: 16 levels, not around zero.
TEST(Quantize, FourBitsWithAMinimumKeepSixteenLevels) {
  std::vector<float> values(512);
  for (size_t i = 0; i < 512; ++i)
    values[i] = static_cast<float>(i * 7 % 16) * 0.375f - (i / 32 % 2 ? 1.25f : -20.0f);
  EXPECT_EQ(throughForm(values, WeightForm::I4M), values);
  EXPECT_EQ(throughForm(std::vector<float>(512, -0.75f), WeightForm::I4M), std::vector<float>(512, -0.75f));
}

// From the smallest to the largest value in 15 steps, in f64: what the search must beat.
TEST(Quantize, FourBitsWithAMinimumBeatTheFullRangeAndThoseWithout) {
  PackedLayout layout = matrixLayout(400, 320, WeightForm::I4M, 64),
               without = matrixLayout(400, 320, WeightForm::I4, 64);
  std::vector<float> values = gaussian(400 * 320, 1), plain(values.size());
  for (size_t g = 0; g < values.size(); g += 32) {
    auto [low, high] =
        std::minmax_element(values.begin() + static_cast<int64_t>(g), values.begin() + static_cast<int64_t>(g) + 32);
    double scale = (static_cast<double>(*high) - *low) / 15;
    for (size_t i = g; i < g + 32; ++i)
      plain[i] = static_cast<float>(std::nearbyint((values[i] - *low) / scale) * scale + *low);
  }
  double found = relativeError(values, *unpackWeight(layout, packFloats(values, layout)));
  EXPECT_LT(found, 0.97 * relativeError(values, plain));
  EXPECT_LT(found, 0.9 * relativeError(values, *unpackWeight(without, packFloats(values, without))));
}

TEST(Quantize, TinyAndHugeGroupsWithAMinimum) {
  std::vector<float> tiny(512, 1e-38f), huge(512, 5e4f);
  EXPECT_EQ(throughForm(tiny, WeightForm::I4M), std::vector<float>(512, 0.0f));
  for (float value : throughForm(huge, WeightForm::I4M))
    EXPECT_NEAR(value, 5e4f, 5e4f * 0x1p-11f);
}

// What 4-bit floats times a scale say is found again, whichever of them is the largest.
TEST(Quantize, FourBitFloatsKeepTheirOwn) {
  std::mt19937 generator(11);
  std::vector<float> values(512);
  for (size_t half = 0; half < values.size() / 16; ++half) {
    float scale = std::ldexp(1.0f, static_cast<int>(half % 9) - 6) * (half % 2 ? 1.0f : 1.125f);
    int largest = 1 + static_cast<int>(half % 7);
    for (size_t i = 16 * half; i < 16 * half + 16; ++i)
      values[i] =
          scale * twiceE2M1[std::uniform_int_distribution(0, largest)(generator)] * (generator() % 2 ? 1.0f : -1.0f);
    values[16 * half] = scale * twiceE2M1[largest];
  }
  EXPECT_EQ(throughForm(values, WeightForm::F4), values);
}

TEST(Quantize, FourBitFloatsOfWeights) {
  std::vector<float> values = gaussian(512, 3);
  EXPECT_LT(relativeError(values, throughForm(values, WeightForm::F4)), 0.1);
}

// What 8-bit floats times a scale say is found again, but for the scale's rounding.
TEST(Quantize, EightBitFloatsKeepTheirOwn) {
  std::mt19937 generator(12);
  std::vector<float> values(512);
  for (size_t group = 0; group < values.size() / 32; ++group) {
    float scale = 0.0137f * static_cast<float>(group + 1);
    int largest = 1 + static_cast<int>(generator() % 0x7E);
    for (size_t i = 32 * group; i < 32 * group + 32; ++i)
      values[i] = scale * fromF8E4M3(static_cast<uint8_t>(generator() % static_cast<unsigned>(largest + 1))) *
                  (generator() % 2 ? 1.0f : -1.0f);
  }
  std::vector<float> kept = throughForm(values, WeightForm::F8);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_LE(std::fabs(kept[i] - values[i]), 0x1p-22f * std::fabs(values[i])) << i;
}

TEST(Quantize, EightBitFloatsOfWeights) {
  std::vector<float> values = gaussian(512, 4), rounded = throughForm(values, WeightForm::F8);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_LE(std::fabs(rounded[i] - values[i]), 0.0625f * std::fabs(values[i]) + 1e-4f) << i;
}
