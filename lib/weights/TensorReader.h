// Published tensors as packing sees them: rows of numbers, and their stored bytes where a form can take them as they
// are.
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
};

// A row is one index of dimension 0: all elements behind it, so that of a 1-D tensor has one element.
// All functions may be called from several threads at once. Rows asked for are inside the tensor.
class TensorReader {
public:
  virtual ~TensorReader() = default;
  virtual StatusOr<TensorInfo> info(const std::string &tensor) const = 0;
  // Rows [firstRow, firstRow + numRows), one after another, as f32.
  virtual Status readRows(const std::string &tensor, int64_t firstRow, int64_t numRows, float *out) const = 0;
  // The stored bytes of the same rows, for types of whole blocks per row; `out` is exactly their size.
  virtual Status readBlocks(const std::string &tensor, int64_t firstRow, int64_t numRows,
                            std::span<uint8_t> out) const = 0;
};

} // namespace llmc
