// LogicalTensors: the parameters of a model under their unquantised names, whatever tensors store them. Everything that
// reads weights reads through here.
#pragma once
#include "lib/importer/files/quantized/QuantizationConfig.h"
#include "lib/importer/files/quantized/QuantizedTensor.h"
#include <map>

namespace llmc {

struct LogicalTensor {
  std::string name;
  std::vector<uint64_t> shape;        // as an unquantised checkpoint has it
  std::vector<size_t> order;          // dimension i of `shape` is dimension order[i] of what is read; empty: as is
  TensorType type;                    // of the stored tensor, or what several of them together are
  std::string format;                 // for reports and IR: "BF16", "FP8 block 128x128"
  uint64_t bytes = 0;                 // stored, with scales and whatever else belongs to it
  const ModelTensor *plain = nullptr; // one of these two
  std::shared_ptr<const QuantizedTensor> quantized;
};

class LogicalTensors {
public:
  // Tensors that belong to a quantised parameter are part of it; a scale without its weight is an error that names it.
  // Input and cache scales, which change nothing here, are in neither list.
  static StatusOr<LogicalTensors> of(const ModelFiles &files);

  // Sorted by name.
  const std::vector<LogicalTensor> &all() const { return tensors_; }
  const LogicalTensor *find(std::string_view name) const;

private:
  std::vector<LogicalTensor> tensors_;
};

// The numbers of one parameter, where its bytes lie in the files.
class LogicalReader {
public:
  // Fails where a file that holds some of it has changed. `tensor` and `files` must outlive the reader.
  static StatusOr<LogicalReader> open(const ModelFiles &files, const LogicalTensor &tensor);

  // Elements [first, first + out.size()) in the order in which they are stored, as float32.
  Status read(uint64_t first, std::span<float> out) const;
  // The bytes of elements [first, first + count), whole blocks of the tensor's type.
  Status readBlocks(uint64_t first, uint64_t count, std::span<uint8_t> out) const;

private:
  TensorType type_ = TensorType::F32;
  std::span<const uint8_t> stored_; // of a plain tensor
  std::optional<QuantizedReader> quantized_;
};

// For callers with one question.
Status readLogical(const ModelFiles &files, const LogicalTensor &tensor, uint64_t first, std::span<float> out);
Status readLogicalBlocks(const ModelFiles &files, const LogicalTensor &tensor, uint64_t first, uint64_t count,
                         std::span<uint8_t> out);

// Memory that holds the bytes of the tensor may be given back.
void releaseLogical(const ModelFiles &files, const LogicalTensor &tensor);

// What a format that several tensors make up ("INT4 group 32 (BF16 scales)") is as a type, or nothing.
std::optional<TensorType> quantizedType(std::string_view format);

} // namespace llmc
