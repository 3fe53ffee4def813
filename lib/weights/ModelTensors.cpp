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
  StatusOr<Json> list =
      parseJson(tensor.substr(constantPrefix.size(), end - constantPrefix.size()), tensor, JsonRoot::Any);
  Constant constant;
  int64_t times = end < tensor.size() ? std::atoll(tensor.c_str() + end) : 0;
  if (!list.ok() || !list->is_array() || list->empty() || times < 1 ||
      __builtin_mul_overflow(times, static_cast<int64_t>(list->size()), &constant.count))
    return Status::error("'" + tensor + "' is no list of numbers and how often it is repeated");
  for (const Json &number : *list)
    constant.numbers.push_back(number.is_number() ? number.get<float>() : 0.0f);
  return constant;
}

class OpenConstant final : public OpenTensor {
public:
  OpenConstant(TensorInfo info, std::vector<float> numbers)
      : OpenTensor(std::move(info)), numbers_(std::move(numbers)) {}
  Status readValues(int64_t first, int64_t count, float *out) const override {
    for (int64_t i = 0; i < count; ++i)
      out[i] = numbers_[static_cast<size_t>(first + i) % numbers_.size()];
    return {};
  }
  Status readBlocks(int64_t first, int64_t count, std::span<uint8_t> out) const override {
    std::vector<float> values(static_cast<size_t>(count));
    LLMC_RETURN_IF_ERROR(readValues(first, count, values.data()));
    std::memcpy(out.data(), values.data(), out.size());
    return {};
  }

private:
  std::vector<float> numbers_;
};

class OpenParameter final : public OpenTensor {
public:
  OpenParameter(TensorInfo info, const std::string &name, LogicalReader reader)
      : OpenTensor(std::move(info)), name_(name), reader_(std::move(reader)) {}
  Status readValues(int64_t first, int64_t count, float *out) const override {
    Status read = reader_.read(static_cast<uint64_t>(first), {out, static_cast<uint64_t>(count)});
    return read.ok() ? read : read.inside("tensor '" + name_ + "'");
  }
  Status readBlocks(int64_t first, int64_t count, std::span<uint8_t> out) const override {
    Status read = reader_.readBlocks(static_cast<uint64_t>(first), static_cast<uint64_t>(count), out);
    return read.ok() ? read : read.inside("tensor '" + name_ + "'");
  }

private:
  std::string name_;
  LogicalReader reader_;
};

using Opened = std::shared_ptr<const OpenTensor>;

} // namespace

StatusOr<Opened> ModelTensors::open(const std::string &tensor) const {
  if (std::optional<StatusOr<Constant>> constant = constantOf(tensor)) {
    LLMC_RETURN_IF_ERROR(constant->status());
    const auto length = static_cast<int64_t>((*constant)->numbers.size()), times = (*constant)->count / length;
    std::vector<int64_t> shape = times == 1 ? std::vector<int64_t>{length} : std::vector<int64_t>{times, length};
    return Opened(std::make_shared<OpenConstant>(TensorInfo{shape, TensorType::F32}, std::move((*constant)->numbers)));
  }
  LLMC_ASSIGN_OR_RETURN(const LogicalTensors *tensors, files_.logical());
  const LogicalTensor *found = tensors->find(tensor);
  if (!found)
    return Status::error("tensor '" + tensor + "' is not in " + files_.path());
  TensorInfo info{{}, found->type, found->order};
  for (uint64_t dimension : found->shape) {
    if (dimension > INT64_MAX)
      return Status::error("tensor '" + tensor + "' is " + printShape(found->shape) + ", beyond 63 bits");
    info.shape.push_back(static_cast<int64_t>(dimension));
  }
  if (info.shape.empty()) // a scalar is a vector of one
    info.shape.push_back(1);
  StatusOr<LogicalReader> reader = LogicalReader::open(files_, *found);
  if (!reader.ok())
    return reader.status().inside("tensor '" + tensor + "'");
  return Opened(std::make_shared<OpenParameter>(std::move(info), tensor, std::move(*reader)));
}

void ModelTensors::release(const std::string &tensor) const {
  StatusOr<const LogicalTensors *> tensors = files_.logical();
  if (const LogicalTensor *found = tensors.ok() ? (*tensors)->find(tensor) : nullptr)
    releaseLogical(files_, *found);
}

} // namespace llmc
