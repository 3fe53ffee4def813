// Names to parameters, and what reading them says of where it was.
#include "lib/weights/ModelTensors.h"
#include "lib/importer/files/quantized/LogicalTensors.h"

namespace llmc {

StatusOr<const LogicalTensor *> ModelTensors::find(const std::string &tensor) const {
  LLMC_ASSIGN_OR_RETURN(const LogicalTensors *tensors, files_.logical());
  if (const LogicalTensor *found = tensors->find(tensor))
    return found;
  return Status::error("tensor '" + tensor + "' is not in " + files_.path());
}

StatusOr<TensorInfo> ModelTensors::info(const std::string &tensor) const {
  LLMC_ASSIGN_OR_RETURN(const LogicalTensor *found, find(tensor));
  TensorInfo info{{}, found->type, found->order};
  for (uint64_t dimension : found->shape) {
    if (dimension > INT64_MAX)
      return Status::error("tensor '" + tensor + "' is " + printShape(found->shape) + ", beyond 63 bits");
    info.shape.push_back(static_cast<int64_t>(dimension));
  }
  if (info.shape.empty()) // a scalar is a vector of one
    info.shape.push_back(1);
  return info;
}

Status ModelTensors::readValues(const std::string &tensor, int64_t first, int64_t count, float *out) const {
  LLMC_ASSIGN_OR_RETURN(const LogicalTensor *found, find(tensor));
  return readLogical(files_, *found, static_cast<uint64_t>(first), {out, static_cast<uint64_t>(count)})
      .inside("tensor '" + tensor + "'");
}

Status ModelTensors::readBlocks(const std::string &tensor, int64_t first, int64_t count, std::span<uint8_t> out) const {
  LLMC_ASSIGN_OR_RETURN(const LogicalTensor *found, find(tensor));
  return readLogicalBlocks(files_, *found, static_cast<uint64_t>(first), static_cast<uint64_t>(count), out)
      .inside("tensor '" + tensor + "'");
}

} // namespace llmc
