// Distributions by the part a weight plays, and a generator that counts instead of stepping.
#include "lib/synth/RandomTensors.h"
#include "lib/importer/CheckWeights.h"
#include "lib/weights/SmallFloats.h"
#include "runtime/support/Hash.h"
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

namespace llmc {
namespace {

// Of gains and biases: enough that a kernel which leaves them out is found, too little to change the scale.
constexpr double vectorDeviation = 0.02;

// Four uniform numbers of 16 bits: their sum has this mean and deviation, sqrt(4 * (2^32 - 1) / 12).
constexpr int32_t meanOfSum = 2 * 65535;
const double deviationOfSum = std::sqrt((0x1p32 - 1) / 3);

struct Distribution {
  double mean, deviation;
};

Distribution distributionOf(const WeightSpec &weight) {
  if (weight.shape.size() > 1)
    return {0.0, 1.0 / std::sqrt(static_cast<double>(weight.shape.back()))};
  bool isBias = weight.name.ends_with(".bias");
  return {isBias ? 0.0 : 1.0 - weight.add, vectorDeviation};
}

// Steele et al. 2014, "Fast splittable pseudorandom number generators": SplitMix64, whose n-th output needs no n - 1
// before it.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
uint64_t firstHalf(const std::string &hex) {
  uint64_t value = 0;
  std::from_chars(hex.data(), hex.data() + 16, value, 16);
  return value;
}

constexpr uint64_t goldenGamma = 0x9E3779B97F4A7C15u;

} // namespace

std::vector<RandomTensor> randomTensors(const ModelSpec &spec) {
  std::map<std::string, const WeightSpec *> weightOf;
  for (const WeightSpec &weight : spec.weights)
    for (const WeightSource &source : weight.sources)
      for (int64_t i = 0; i < source.numTensors(); ++i)
        weightOf.emplace(source.tensorAt(i), &weight);
  std::vector<RandomTensor> tensors;
  for (const ExpectedTensor &expected : expectedTensors(spec)) {
    Distribution distribution = distributionOf(*weightOf.at(expected.name));
    std::vector<uint64_t> shape(expected.shape.begin(), expected.shape.end());
    tensors.push_back({expected.name, std::move(shape), distribution.mean, distribution.deviation});
  }
  return tensors;
}

RandomValues::RandomValues(const RandomTensor &tensor, uint64_t seed)
    : key_(firstHalf(hashHex(std::to_string(seed) + "/" + tensor.name))), mean_(static_cast<float>(tensor.mean)),
      step_(static_cast<float>(tensor.deviation / deviationOfSum)) {}

void RandomValues::fill(uint64_t first, std::span<float> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = mix(key_ + (first + i) * goldenGamma);
    auto sum = static_cast<int32_t>((bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48));
    values[i] = mean_ + static_cast<float>(sum - meanOfSum) * step_;
  }
}

void encode(std::span<const float> values, TensorType type, uint8_t *out) {
  if (type == TensorType::F32) {
    std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = type == TensorType::BF16 ? bf16FromF32(values[i]) : f16FromF32(values[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

} // namespace llmc
