// The parameters of a published model (lib/importer/files) as packing reads them, whatever tensors store them.
#pragma once
#include "lib/importer/files/ModelFiles.h"
#include "lib/weights/TensorReader.h"

namespace llmc {

struct LogicalTensor;

// `files` must outlive this.
class ModelTensors : public TensorReader {
public:
  explicit ModelTensors(const ModelFiles &files) : files_(files) {}
  StatusOr<TensorInfo> info(const std::string &tensor) const override;
  Status readValues(const std::string &tensor, int64_t first, int64_t count, float *out) const override;
  Status readBlocks(const std::string &tensor, int64_t first, int64_t count, std::span<uint8_t> out) const override;

private:
  StatusOr<const LogicalTensor *> find(const std::string &tensor) const;
  const ModelFiles &files_;
};

} // namespace llmc
