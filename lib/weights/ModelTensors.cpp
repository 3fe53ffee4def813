// Rows of dimension 0 over ModelFiles, whose own rows are those of the last dimension.
#include "lib/weights/ModelTensors.h"
#include "lib/importer/files/Dequantize.h"
#include <algorithm>

namespace llmc {
namespace {

// Values behind one index of dimension 0. ModelFiles has checked that the whole shape fits 64 bits.
uint64_t valuesPerRow(const ModelTensor &tensor) {
  uint64_t values = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i)
    values *= tensor.shape[i];
  return values;
}

} // namespace

StatusOr<const ModelTensor *> ModelTensors::find(const std::string &tensor) const {
  if (const ModelTensor *found = files_.find(tensor))
    return found;
  return Status::error("tensor '" + tensor + "' is not in " + files_.path());
}

StatusOr<TensorInfo> ModelTensors::info(const std::string &tensor) const {
  LLMC_ASSIGN_OR_RETURN(const ModelTensor *found, find(tensor));
  TensorInfo info{{}, found->type};
  for (uint64_t dimension : found->shape) {
    if (dimension > INT64_MAX)
      return Status::error("tensor '" + tensor + "' is " + printShape(found->shape) + ", beyond 63 bits");
    info.shape.push_back(static_cast<int64_t>(dimension));
  }
  if (info.shape.empty()) // a scalar is a vector of one
    info.shape.push_back(1);
  return info;
}

Status ModelTensors::readRows(const std::string &tensor, int64_t firstRow, int64_t numRows, float *out) const {
  LLMC_ASSIGN_OR_RETURN(const ModelTensor *found, find(tensor));
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> stored, files_.bytes(*found));
  uint64_t perRow = valuesPerRow(*found);
  return dequantize(found->type, stored, static_cast<uint64_t>(firstRow) * perRow,
                    {out, static_cast<uint64_t>(numRows) * perRow})
      .inside("tensor '" + tensor + "'");
}

Status ModelTensors::readBlocks(const std::string &tensor, int64_t firstRow, int64_t numRows,
                                std::span<uint8_t> out) const {
  LLMC_ASSIGN_OR_RETURN(const ModelTensor *found, find(tensor));
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> stored, files_.bytes(*found));
  const TensorTypeInfo &type = infoOf(found->type);
  uint64_t perRow = valuesPerRow(*found);
  if (perRow % type.blockValues != 0)
    return Status::error("tensor '" + tensor + "' has rows of " + std::to_string(perRow) + ", which are no whole " +
                         std::string(type.name) + " blocks of " + std::to_string(type.blockValues));
  uint64_t rowBytes = perRow / type.blockValues * type.blockBytes;
  uint64_t first = static_cast<uint64_t>(firstRow) * rowBytes;
  if (out.size() != static_cast<uint64_t>(numRows) * rowBytes || first > stored.size() ||
      out.size() > stored.size() - first)
    return Status::error("tensor '" + tensor + "' has " + std::to_string(stored.size()) + " bytes, " +
                         std::to_string(out.size()) + " from byte " + std::to_string(first) + " are asked for");
  std::copy_n(stored.begin() + static_cast<int64_t>(first), out.size(), out.begin());
  return {};
}

} // namespace llmc
