// Elements over ModelFiles, which knows rows of the last dimension and whole blocks only.
#include "lib/weights/ModelTensors.h"
#include "lib/importer/files/Dequantize.h"
#include <algorithm>
#include <array>

namespace llmc {
namespace {

constexpr uint64_t mostBlockValues = 256;

// Values [first, first + out.size()) where they need not begin and end at blocks.
Status dequantizeAny(TensorType type, std::span<const uint8_t> stored, uint64_t first, std::span<float> out) {
  const uint64_t block = infoOf(type).blockValues;
  std::array<float, mostBlockValues> whole;
  while (!out.empty()) {
    uint64_t skipped = first % block, taken = out.size() / block * block;
    if (skipped == 0 && taken > 0) {
      LLMC_RETURN_IF_ERROR(dequantize(type, stored, first, out.first(taken)));
    } else {
      LLMC_RETURN_IF_ERROR(dequantize(type, stored, first - skipped, {whole.data(), block}));
      taken = std::min<uint64_t>(block - skipped, out.size());
      std::copy_n(whole.data() + skipped, taken, out.begin());
    }
    first += taken;
    out = out.subspan(taken);
  }
  return {};
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

Status ModelTensors::readValues(const std::string &tensor, int64_t first, int64_t count, float *out) const {
  LLMC_ASSIGN_OR_RETURN(const ModelTensor *found, find(tensor));
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> stored, files_.bytes(*found));
  return dequantizeAny(found->type, stored, static_cast<uint64_t>(first), {out, static_cast<uint64_t>(count)})
      .inside("tensor '" + tensor + "'");
}

Status ModelTensors::readBlocks(const std::string &tensor, int64_t first, int64_t count, std::span<uint8_t> out) const {
  LLMC_ASSIGN_OR_RETURN(const ModelTensor *found, find(tensor));
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> stored, files_.bytes(*found));
  const TensorTypeInfo &type = infoOf(found->type);
  if (first % type.blockValues != 0 || count % type.blockValues != 0)
    return Status::error("elements " + std::to_string(first) + " to " + std::to_string(first + count) + " of tensor '" +
                         tensor + "' are no whole " + std::string(type.name) + " blocks of " +
                         std::to_string(type.blockValues));
  uint64_t begin = static_cast<uint64_t>(first) / type.blockValues * type.blockBytes;
  uint64_t size = static_cast<uint64_t>(count) / type.blockValues * type.blockBytes;
  if (out.size() != size || begin > stored.size() || size > stored.size() - begin)
    return Status::error("tensor '" + tensor + "' has " + std::to_string(stored.size()) + " bytes, " +
                         std::to_string(out.size()) + " from byte " + std::to_string(begin) + " are asked for");
  std::copy_n(stored.begin() + static_cast<int64_t>(begin), out.size(), out.begin());
  return {};
}

} // namespace llmc
