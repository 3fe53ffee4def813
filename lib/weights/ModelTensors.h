// The parameters of a published model (lib/importer/files) as packing reads them, whatever tensors store them.
#pragma once
#include "lib/importer/files/ModelFiles.h"
#include "lib/weights/TensorReader.h"

namespace llmc {

// `files` must outlive this.
class ModelTensors : public TensorReader {
public:
  explicit ModelTensors(const ModelFiles &files) : files_(files) {}
  StatusOr<std::shared_ptr<const OpenTensor>> open(const std::string &tensor) const override;
  void release(const std::string &tensor) const override;

private:
  const ModelFiles &files_;
};

} // namespace llmc
