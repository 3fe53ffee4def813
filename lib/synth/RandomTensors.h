// Random weights that leave the activations of a model sane through any number of layers: each published tensor's
// distribution, and its values. A value depends on the seed, the tensor's name and the value's place in it only.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "lib/importer/files/TensorType.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace llmc {

struct RandomTensor {
  std::string name;
  std::vector<uint64_t> shape;
  double mean = 0.0, deviation = 0.0;
};

// What a checkpoint of `spec` holds, in the order of the forward pass. A matrix has mean 0 and deviation
// 1 / sqrt(columns): inputs of mean square 1 come out as such. Norm gains lie around the value that leaves the input as
// it is (1, or 0 where the model adds 1), biases around 0.
std::vector<RandomTensor> randomTensors(const ModelSpec &spec);

// Values [first, first + values.size()) of a tensor. The distribution is nearly normal and bounded: the sum of four
// uniform numbers, at most 3.5 deviations from the mean. Uses no function whose last bit depends on the machine.
class RandomValues {
public:
  RandomValues(const RandomTensor &tensor, uint64_t seed);
  void fill(uint64_t first, std::span<float> values) const;

private:
  uint64_t key_;
  float mean_, step_;
};

// float32 to the bytes of F32, BF16 or F16, rounded to nearest even; `out` has values.size() times the type's bytes.
void encode(std::span<const float> values, TensorType type, uint8_t *out);

} // namespace llmc
