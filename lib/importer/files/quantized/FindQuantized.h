// Which tensors make up quantised parameters, from names, types and shapes.
#pragma once
#include "lib/importer/files/quantized/QuantizationConfig.h"
#include "lib/importer/files/quantized/QuantizedTensor.h"
#include <unordered_set>

namespace llmc {

struct QuantizedTensors {
  std::vector<QuantizedTensor> tensors;
  std::unordered_set<std::string_view> parts; // names of tensors that belong to them, or change nothing
};
// An error names the first scale, zero point or index whose weight is not there, or parts whose shapes do not fit.
StatusOr<QuantizedTensors> findQuantized(const ModelFiles &files, const QuantizationConfig &config);

} // namespace llmc
