// Published tensors as packing sees them: numbers in the order of their shape, and their stored bytes where a form can
// take them as they are.
#pragma once
#include "lib/importer/files/TensorType.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace llmc {

struct TensorInfo {
  std::vector<int64_t> shape;
  TensorType type;
  // Dimension i of `shape` is dimension order[i] of the elements as they are read; empty: as is.
  std::vector<size_t> order = {};
};

// All functions may be called from several threads at once. Elements asked for are inside the tensor.
class TensorReader {
public:
  virtual ~TensorReader() = default;
  virtual StatusOr<TensorInfo> info(const std::string &tensor) const = 0;
  // Elements [first, first + count), as they are stored one after another, as f32.
  virtual Status readValues(const std::string &tensor, int64_t first, int64_t count, float *out) const = 0;
  // The stored bytes of the same elements, which are whole blocks; `out` is exactly their size.
  virtual Status readBlocks(const std::string &tensor, int64_t first, int64_t count, std::span<uint8_t> out) const = 0;
};

} // namespace llmc
