// Published tensors as packing sees them: numbers in the order of their shape, and their stored bytes where a form can
// take them as they are.
#pragma once
#include "lib/importer/files/TensorType.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <memory>
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
class OpenTensor {
public:
  explicit OpenTensor(TensorInfo info) : info_(std::move(info)) {}
  virtual ~OpenTensor() = default;
  const TensorInfo &info() const { return info_; }
  // Elements [first, first + count), as they are stored one after another, as f32.
  virtual Status readValues(int64_t first, int64_t count, float *out) const = 0;
  // The stored bytes of the same elements, which are whole blocks; `out` is exactly their size.
  virtual Status readBlocks(int64_t first, int64_t count, std::span<uint8_t> out) const = 0;

private:
  TensorInfo info_;
};

class TensorReader {
public:
  virtual ~TensorReader() = default;
  // Finds a tensor and asks whether its file is unchanged: once here, as pieces of a row are many.
  virtual StatusOr<std::shared_ptr<const OpenTensor>> open(const std::string &tensor) const = 0;
  // Nobody reads the tensor for now: memory that holds nothing else may be given back.
  virtual void release(const std::string &tensor) const {}
};

} // namespace llmc
