// Plain tensors as they are, quantised ones put together; both by one name and one way to read.
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/quantized/FindQuantized.h"
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

LogicalTensor logicalOf(const ModelTensor &plain) {
  return {plain.name, plain.shape, {}, plain.type, std::string(nameOf(plain.type)), plain.bytes, &plain, nullptr};
}

LogicalTensor logicalOf(QuantizedTensor tensor) {
  std::vector<uint64_t> shape = tensor.shape;
  for (size_t i = 0; i < tensor.order.size(); ++i)
    shape[i] = tensor.shape[tensor.order[i]];
  auto shared = std::make_shared<const QuantizedTensor>(std::move(tensor));
  return {shared->name,   std::move(shape),    shared->order, shared->type,
          shared->format, shared->storedBytes, nullptr,       shared};
}

} // namespace

StatusOr<LogicalTensors> LogicalTensors::of(const ModelFiles &files) {
  LogicalTensors logical;
  LLMC_ASSIGN_OR_RETURN(QuantizationConfig config,
                        readQuantizationConfig(files.configPath(), files.sideFile("hf_quant_config.json")));
  StatusOr<QuantizedTensors> found = findQuantized(files, config);
  if (!found.ok())
    return found.status().inside(files.path());
  for (const ModelTensor &tensor : files.tensors())
    if (!found->parts.count(tensor.name))
      logical.tensors_.push_back(logicalOf(tensor));
  for (QuantizedTensor &tensor : found->tensors)
    logical.tensors_.push_back(logicalOf(std::move(tensor)));
  std::sort(logical.tensors_.begin(), logical.tensors_.end(),
            [](const LogicalTensor &a, const LogicalTensor &b) { return a.name < b.name; });
  for (size_t i = 1; i < logical.tensors_.size(); ++i)
    if (logical.tensors_[i].name == logical.tensors_[i - 1].name)
      return Status::error(files.path() + ": tensor '" + logical.tensors_[i].name +
                           "' is stored twice, once plain or once as codes too many");
  return logical;
}

const LogicalTensor *LogicalTensors::find(std::string_view name) const {
  auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                             [](const LogicalTensor &tensor, std::string_view key) { return tensor.name < key; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

StatusOr<LogicalReader> LogicalReader::open(const ModelFiles &files, const LogicalTensor &tensor) {
  LogicalReader reader;
  reader.type_ = tensor.type;
  if (tensor.quantized) {
    LLMC_ASSIGN_OR_RETURN(reader.quantized_, QuantizedReader::open(*tensor.quantized, files));
  } else {
    LLMC_ASSIGN_OR_RETURN(reader.stored_, files.bytes(*tensor.plain));
  }
  return reader;
}

Status LogicalReader::read(uint64_t first, std::span<float> out) const {
  return quantized_ ? quantized_->read(first, out) : dequantizeAny(type_, stored_, first, out);
}

Status LogicalReader::readBlocks(uint64_t first, uint64_t count, std::span<uint8_t> out) const {
  const TensorTypeInfo &type = infoOf(type_);
  if (first % type.blockValues != 0 || count % type.blockValues != 0)
    return Status::error("elements " + std::to_string(first) + " to " + std::to_string(first + count) +
                         " are no whole " + std::string(type.name) + " blocks of " + std::to_string(type.blockValues));
  uint64_t size = count / type.blockValues * type.blockBytes;
  if (out.size() != size)
    return Status::error(std::to_string(count) + " elements take " + std::to_string(size) +
                         " bytes, there is room for " + std::to_string(out.size()));
  if (quantized_)
    return quantized_->readCodes(first / type.blockValues, out);
  uint64_t begin = first / type.blockValues * type.blockBytes;
  if (begin > stored_.size() || size > stored_.size() - begin)
    return Status::error("has " + std::to_string(stored_.size()) + " bytes, " + std::to_string(size) + " from byte " +
                         std::to_string(begin) + " are asked for");
  std::copy_n(stored_.begin() + static_cast<int64_t>(begin), size, out.begin());
  return {};
}

Status readLogical(const ModelFiles &files, const LogicalTensor &tensor, uint64_t first, std::span<float> out) {
  LLMC_ASSIGN_OR_RETURN(LogicalReader reader, LogicalReader::open(files, tensor));
  return reader.read(first, out);
}

Status readLogicalBlocks(const ModelFiles &files, const LogicalTensor &tensor, uint64_t first, uint64_t count,
                         std::span<uint8_t> out) {
  LLMC_ASSIGN_OR_RETURN(LogicalReader reader, LogicalReader::open(files, tensor));
  return reader.readBlocks(first, count, out);
}

void releaseLogical(const ModelFiles &files, const LogicalTensor &tensor) {
  if (tensor.plain)
    return files.release(*tensor.plain);
  const QuantizedTensor &parts = *tensor.quantized;
  files.release(parts.codes);
  for (const std::optional<ModelTensor> *part : {&parts.scales, &parts.zeros, &parts.factor, &parts.groupIndex})
    if (*part)
      files.release(**part);
}

std::optional<TensorType> quantizedType(std::string_view format) {
  for (std::string_view family : {"AWQ ", "GPTQ "})
    if (format.starts_with(family))
      format.remove_prefix(family.size());
  auto is = [&](std::string_view family) { return format.starts_with(family); };
  auto says = [&](std::string_view word) { return format.find(word) != std::string_view::npos; };
  if (is("MXFP8 E5M2"))
    return TensorType::ScaledMxfp8;
  if (is("FP8 ") || is("MXFP8"))
    return says(" E5M2") || says(" uneven") ? TensorType::ScaledOf8Bits : TensorType::CodesFp8;
  // Groups that no packed form has.
  bool isOther = says(" act-order") || says(" uneven");
  if (is("INT8 "))
    return isOther || says(" asymmetric") ? TensorType::ScaledOf8Bits : TensorType::CodesOf8Bits;
  if (!is("INT") && !is("MXFP4") && !is("NVFP4"))
    return std::nullopt;
  if (isOther)
    return TensorType::ScaledOf4Bits;
  if (is("MXFP4"))
    return TensorType::CodesMxfp4;
  if (is("NVFP4"))
    return TensorType::CodesNvfp4;
  return says(" asymmetric") ? TensorType::CodesFrom0 : TensorType::CodesOf4Bits;
}

} // namespace llmc
