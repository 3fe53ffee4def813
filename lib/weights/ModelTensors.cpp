// Names to parameters, and what reading them says of where it was.
#include "lib/weights/ModelTensors.h"
#include "lib/importer/WeightSource.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "runtime/support/Json.h"
#include <cstring>

namespace llmc {
namespace {

// The numbers of "constant [1,0] 8", which the importer wrote.
struct Constant {
  std::vector<float> numbers;
  int64_t count = 0;
};

std::optional<StatusOr<Constant>> constantOf(const std::string &tensor) {
  if (tensor.rfind(constantPrefix, 0) != 0)
    return std::nullopt;
  size_t end = std::max(tensor.rfind(' '), constantPrefix.size());
  StatusOr<Json> list = parseJson(tensor.substr(constantPrefix.size(), end - constantPrefix.size()), tensor, JsonRoot::Any);
  Constant constant;
  int64_t times = end < tensor.size() ? std::atoll(tensor.c_str() + end) : 0;
  if (!list.ok() || !list->is_array() || list->empty() || times < 1 ||
      __builtin_mul_overflow(times, static_cast<int64_t>(list->size()), &constant.count))
    return Status::error("'" + tensor + "' is no list of numbers and how often it is repeated");
  for (const Json &number : *list)
    constant.numbers.push_back(number.is_number() ? number.get<float>() : 0.0f);
  return constant;
}

} // namespace

StatusOr<const LogicalTensor *> ModelTensors::find(const std::string &tensor) const {
  LLMC_ASSIGN_OR_RETURN(const LogicalTensors *tensors, files_.logical());
  if (const LogicalTensor *found = tensors->find(tensor))
    return found;
  return Status::error("tensor '" + tensor + "' is not in " + files_.path());
}

StatusOr<TensorInfo> ModelTensors::info(const std::string &tensor) const {
  if (std::optional<StatusOr<Constant>> constant = constantOf(tensor)) {
    LLMC_RETURN_IF_ERROR(constant->status());
    const auto length = static_cast<int64_t>((*constant)->numbers.size()), times = (*constant)->count / length;
    return TensorInfo{times == 1 ? std::vector<int64_t>{length} : std::vector<int64_t>{times, length}, TensorType::F32};
  }
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
  if (std::optional<StatusOr<Constant>> constant = constantOf(tensor)) {
    LLMC_RETURN_IF_ERROR(constant->status());
    for (int64_t i = 0; i < count; ++i)
      out[i] = (*constant)->numbers[static_cast<size_t>(first + i) % (*constant)->numbers.size()];
    return {};
  }
  LLMC_ASSIGN_OR_RETURN(const LogicalTensor *found, find(tensor));
  return readLogical(files_, *found, static_cast<uint64_t>(first), {out, static_cast<uint64_t>(count)})
      .inside("tensor '" + tensor + "'");
}

Status ModelTensors::readBlocks(const std::string &tensor, int64_t first, int64_t count, std::span<uint8_t> out) const {
  if (tensor.rfind(constantPrefix, 0) == 0) {
    std::vector<float> values(static_cast<size_t>(count));
    LLMC_RETURN_IF_ERROR(readValues(tensor, first, count, values.data()));
    std::memcpy(out.data(), values.data(), out.size());
    return {};
  }
  LLMC_ASSIGN_OR_RETURN(const LogicalTensor *found, find(tensor));
  return readLogicalBlocks(files_, *found, static_cast<uint64_t>(first), static_cast<uint64_t>(count), out)
      .inside("tensor '" + tensor + "'");
}

} // namespace llmc
