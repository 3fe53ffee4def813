// One function per way to store codes. Names decide what belongs together, shapes what kind of scale it is.
#include "lib/importer/files/quantized/FindQuantized.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "runtime/support/Json.h"
#include <algorithm>
#include <cstring>

namespace llmc {
namespace {

constexpr const char *scaleSuffixes[] = {"_scale", "_scale_inv"};
// Scales of activations and caches: stored because the kernels of others want them, without effect on a weight.
constexpr const char *withoutEffect[] = {
    ".input_scale", ".activation_scale", ".input_global_scale", ".input_zero_point",   ".output_scale", ".k_scale",
    ".v_scale",     ".q_scale",          ".prob_scale",         ".output_global_scale"};
// Parts that mean nothing alone.
constexpr const char *orphanSuffixes[] = {".weight_scale",        ".weight_scale_inv", ".weight_scale_2",
                                          ".weight_zero_point",   ".weight_shape",     ".weight_g_idx",
                                          ".weight_global_scale", ".qzeros",           ".g_idx",
                                          "_proj_scales",         "_scale_inv",        ".pre_quant_scale"};

uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

class Finder {
public:
  Finder(const ModelFiles &files, const QuantizationConfig &config) : files_(files), config_(config) {}

  StatusOr<QuantizedTensors> find() {
    for (const ModelTensor &tensor : files_.tensors())
      if (Status read = consider(tensor); !read.ok())
        return read.inside("tensor '" + tensor.name + "'");
    LLMC_RETURN_IF_ERROR(checkLeftOver());
    return std::move(found_);
  }

private:
  using Shape = std::vector<uint64_t>;

  const ModelTensor *named(const std::string &name) const { return files_.find(name); }
  // The part of that name; it belongs to the tensor from now on.
  std::optional<ModelTensor> take(QuantizedTensor &tensor, const std::string &name) {
    const ModelTensor *part = named(name);
    if (!part)
      return std::nullopt;
    found_.parts.insert(part->name);
    tensor.storedBytes += part->bytes;
    return *part;
  }

  Status consider(const ModelTensor &tensor);
  Status readQweight(const std::string &module);
  Status readPacked(const std::string &name);
  Status readBlocks(const std::string &name);
  Status readScaled(const ModelTensor &tensor);
  Status readGgmlScaled(const ModelTensor &tensor);
  Status setFloat4(QuantizedTensor &tensor, const std::string &name);
  Status setGroups(QuantizedTensor &tensor, const std::string &what);
  Status setZeros(QuantizedTensor &tensor, const std::string &name);
  StatusOr<uint64_t> groupSizeFor(uint64_t inputs, uint64_t groups) const;
  StatusOr<bool> isActOrder(const QuantizedTensor &tensor) const;
  StatusOr<bool> setGroupIndex(QuantizedTensor &tensor, const std::string &name);
  Status add(QuantizedTensor tensor);
  Status checkLeftOver();

  const ModelFiles &files_;
  const QuantizationConfig &config_;
  QuantizedTensors found_;
};

bool endsWith(std::string_view name, std::string_view suffix) { return name.ends_with(suffix); }
std::string without(const std::string &name, std::string_view suffix) {
  return name.substr(0, name.size() - suffix.size());
}

bool isFloat8(TensorType type) { return type == TensorType::F8E4M3 || type == TensorType::F8E5M2; }
bool isPowerOfTwo(TensorType type) { return type == TensorType::U8 || type == TensorType::F8E8M0; }
bool isScale(TensorType type) {
  return isPowerOfTwo(type) || type == TensorType::F8E4M3 || type == TensorType::F32 || type == TensorType::F16 ||
         type == TensorType::BF16;
}

std::string scalesOf(const QuantizedTensor &tensor) {
  return " (" + std::string(nameOf(tensor.scales->type)) + " scales)";
}

// "the scales 'x' are [2, 3], expected [4, 3]"
Status wrongShape(const std::string &what, const ModelTensor &part, std::span<const uint64_t> expected) {
  return Status::error("the " + what + " '" + part.name + "' are " + printShape(part.shape) + ", expected " +
                       printShape(expected));
}

Status checkWords(const std::string &what, const ModelTensor &part) {
  return part.type == TensorType::I32 ? Status()
                                      : Status::error("the " + what + " '" + part.name + "' are of type " +
                                                      std::string(nameOf(part.type)) + ", expected I32");
}

// Scales are counted by rows and inputs.
Status checkSizes(const QuantizedTensor &tensor) {
  if (numElements(tensor.shape).value_or(0) > 0)
    return {};
  return Status::error("has codes of shape " + printShape(tensor.shape) + ", expected positive sizes");
}

Status checkScales(const ModelTensor &scales) {
  return isScale(scales.type) ? Status()
                              : Status::error("has scales of " + std::string(nameOf(scales.type)) +
                                              ", expected F32, F16, BF16, F8_E4M3 or powers of two in bytes");
}

// The shape of scales that stand for `outputs` and `inputs` each.
std::vector<uint64_t> scaleShape(const QuantizedTensor &tensor, uint64_t outputs, uint64_t inputs) {
  std::vector<uint64_t> shape = tensor.shape;
  shape.back() = ceilDiv(shape.back(), inputs);
  shape[shape.size() - 2] = ceilDiv(shape[shape.size() - 2], outputs);
  return shape;
}

Status Finder::consider(const ModelTensor &tensor) {
  const std::string &name = tensor.name;
  if (endsWith(name, ".qweight"))
    return readQweight(without(name, ".qweight"));
  if (endsWith(name, "_packed") && (tensor.type == TensorType::I32 || tensor.type == TensorType::U8))
    return readPacked(without(name, "_packed"));
  if (endsWith(name, "_blocks") && tensor.type == TensorType::U8)
    return readBlocks(without(name, "_blocks"));
  if (tensor.type == TensorType::NVFP4)
    return readGgmlScaled(tensor);
  if (isFloat8(tensor.type) || tensor.type == TensorType::I8 || tensor.type == TensorType::U8)
    return readScaled(tensor);
  return {};
}

// GPTQ [in / codes of a word, out] or AWQ [in, out / 8].
Status Finder::readQweight(const std::string &module) {
  QuantizedTensor tensor;
  tensor.name = module + ".weight";
  tensor.codes = *take(tensor, module + ".qweight");
  tensor.scales = take(tensor, module + ".scales");
  tensor.zeros = take(tensor, module + ".qzeros");
  if (!tensor.scales || tensor.scales->shape.size() != 2 || tensor.codes.shape.size() != 2)
    return Status::error("is " + printShape(tensor.codes.shape) + ", expected a matrix with '" + module +
                         ".scales' of [groups, outputs]");
  LLMC_RETURN_IF_ERROR(checkWords("codes", tensor.codes));
  tensor.bits = static_cast<unsigned>(config_.bits);
  if (tensor.bits != 2 && tensor.bits != 4 && tensor.bits != 8)
    return Status::error("has codes of " + std::to_string(tensor.bits) + " bits (" + config_.file +
                         "), supported are 2, 4 and 8");
  uint64_t outputs = tensor.scales->shape[1], groups = tensor.scales->shape[0], perWord = 32 / tensor.bits;
  tensor.meaning = CodeMeaning::Unsigned;
  bool isAwq = tensor.codes.shape[1] != outputs;
  tensor.layout = isAwq ? CodeLayout::Awq : CodeLayout::Gptq;
  uint64_t inputs = isAwq ? tensor.codes.shape[0] : tensor.codes.shape[0] * perWord;
  if (isAwq ? tensor.codes.shape[1] * 8 != outputs || tensor.bits != 4 : outputs % perWord != 0)
    return Status::error("is " + printShape(tensor.codes.shape) + ", which with scales of " +
                         printShape(tensor.scales->shape) + " is neither GPTQ of " + std::to_string(tensor.bits) +
                         " bits nor AWQ");
  if (isAwq && !config_.format.empty() && config_.format != "gemm")
    return Status::error("is AWQ of version '" + config_.format + "', supported is 'gemm'");
  if (!isAwq && !config_.format.empty() && config_.format != "gptq" && config_.format != "gptq_v2")
    return Status::error("is GPTQ of format '" + config_.format + "', supported are 'gptq' and 'gptq_v2'");
  tensor.shape = {outputs, inputs};
  LLMC_ASSIGN_OR_RETURN(tensor.groupInputs, groupSizeFor(inputs, groups));
  const Shape zeroShape = {groups, outputs / perWord};
  if (!tensor.zeros || tensor.zeros->shape != zeroShape || tensor.zeros->type != TensorType::I32)
    return tensor.zeros ? wrongShape("zero points", *tensor.zeros, zeroShape)
                        : Status::error("has no zero points '" + module + ".qzeros'");
  tensor.zerosMinusOne = !isAwq && config_.storesZerosMinusOne;
  LLMC_ASSIGN_OR_RETURN(bool actOrder, setGroupIndex(tensor, module + ".g_idx"));
  bool isSymmetric = !isAwq && config_.isSymmetric;
  tensor.format = std::string(isAwq ? "AWQ" : "GPTQ") + " INT" + std::to_string(tensor.bits) +
                  (isSymmetric ? "" : " asymmetric") + " group " + std::to_string(tensor.groupInputs) +
                  (actOrder ? " act-order" : "") + scalesOf(tensor);
  return add(std::move(tensor));
}

// Whether some input lies elsewhere than in the group of its neighbours.
StatusOr<bool> Finder::isActOrder(const QuantizedTensor &tensor) const {
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> bytes, files_.bytes(*tensor.groupIndex));
  for (uint64_t i = 0; i < tensor.inputs(); ++i) {
    int32_t group;
    std::memcpy(&group, bytes.data() + 4 * i, 4);
    if (group < 0 || static_cast<uint64_t>(group) >= tensor.groupsPerRow())
      return Status::error("the groups of inputs '" + tensor.groupIndex->name + "' name group " +
                           std::to_string(group) + ", of " + std::to_string(tensor.groupsPerRow()));
    if (static_cast<uint64_t>(group) != i / tensor.groupInputs)
      return true;
  }
  return false;
}

// Kept where it orders the groups, which is the result.
StatusOr<bool> Finder::setGroupIndex(QuantizedTensor &tensor, const std::string &name) {
  tensor.groupIndex = take(tensor, name);
  if (!tensor.groupIndex)
    return false;
  LLMC_RETURN_IF_ERROR(checkWords("groups of inputs", *tensor.groupIndex));
  if (tensor.groupIndex->shape != Shape{tensor.inputs()})
    return wrongShape("groups of inputs", *tensor.groupIndex, Shape{tensor.inputs()});
  LLMC_ASSIGN_OR_RETURN(bool actOrder, isActOrder(tensor));
  if (!actOrder)
    tensor.groupIndex.reset();
  return actOrder;
}

// The stated size that makes as many groups; one that divides the inputs where none is stated.
StatusOr<uint64_t> Finder::groupSizeFor(uint64_t inputs, uint64_t groups) const {
  if (groups == 1)
    return std::max<uint64_t>(inputs, 1);
  for (int64_t stated : config_.groupSizes)
    if (stated > 0 && ceilDiv(inputs, static_cast<uint64_t>(stated)) == groups)
      return static_cast<uint64_t>(stated);
  if (config_.groupSizes.empty() && groups > 0 && inputs % groups == 0)
    return inputs / groups;
  std::string stated;
  for (int64_t size : config_.groupSizes)
    stated += (stated.empty() ? "" : ", ") + std::to_string(size);
  return Status::error("has " + std::to_string(groups) + " groups of its " + std::to_string(inputs) +
                       " inputs, but the config states groups of " + (stated.empty() ? "no size" : stated));
}

// compressed-tensors: integers in 32-bit words, or four-bit floats in bytes.
Status Finder::readPacked(const std::string &name) {
  QuantizedTensor tensor;
  tensor.name = name;
  tensor.codes = *take(tensor, name + "_packed");
  tensor.scales = take(tensor, name + "_scale");
  std::optional<ModelTensor> shape = take(tensor, name + "_shape");
  if (!tensor.scales || tensor.codes.shape.size() < 2)
    return Status::error("is " + printShape(tensor.codes.shape) + ", expected a matrix with scales '" + name +
                         "_scale'");
  tensor.shape = tensor.codes.shape;
  LLMC_RETURN_IF_ERROR(checkSizes(tensor));
  if (tensor.codes.type == TensorType::U8) {
    tensor.factor = take(tensor, name + "_global_scale");
    tensor.dividesByFactor = true;
    return setFloat4(tensor, name);
  }
  if (!shape || shape->type != TensorType::I64 || shape->bytes < 16)
    return Status::error("has no shape '" + name + "_shape' beside it, of two 64-bit integers");
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> bytes, files_.bytes(*shape));
  int64_t inputs;
  std::memcpy(&inputs, bytes.data() + shape->bytes - 8, 8);
  uint64_t words = tensor.codes.shape.back();
  for (unsigned bits : {4u, 8u, 2u})
    if (inputs > 0 && ceilDiv(static_cast<uint64_t>(inputs), 32 / bits) == words) {
      tensor.bits = bits;
      tensor.shape.back() = static_cast<uint64_t>(inputs);
      tensor.meaning = CodeMeaning::Unsigned;
      tensor.layout = CodeLayout::Words;
      LLMC_RETURN_IF_ERROR(setGroups(tensor, "INT" + std::to_string(bits)));
      return add(std::move(tensor));
    }
  return Status::error("is " + printShape(tensor.codes.shape) + ", but '" + shape->name + "' says " +
                       std::to_string(inputs) + " inputs, which codes of 2, 4 or 8 bits do not fill");
}

// gpt-oss: [E, out, in / 32, 16] bytes; the unquantised parameter is [E, in, out].
Status Finder::readBlocks(const std::string &name) {
  const ModelTensor *blocks = named(name + "_blocks"), *scales = named(name + "_scales");
  if (!scales || blocks->shape.size() < 3 || blocks->shape.back() != 16)
    return {}; // some other tensor of that name
  QuantizedTensor tensor;
  tensor.name = name;
  tensor.codes = *take(tensor, blocks->name);
  tensor.scales = take(tensor, scales->name);
  tensor.shape.assign(blocks->shape.begin(), blocks->shape.end() - 1);
  if (scales->shape != tensor.shape || !isPowerOfTwo(scales->type))
    return wrongShape("scales", *scales, tensor.shape);
  tensor.shape.back() *= 32;
  for (size_t i = 0; i + 2 < tensor.shape.size(); ++i)
    tensor.order.push_back(i);
  tensor.order.push_back(tensor.shape.size() - 1);
  tensor.order.push_back(tensor.shape.size() - 2);
  tensor.layout = CodeLayout::Nibbles;
  tensor.meaning = CodeMeaning::E2M1;
  tensor.bits = 4;
  tensor.groupInputs = 32;
  tensor.format = "MXFP4";
  return add(std::move(tensor));
}

// Two codes a byte: MXFP4 with powers of two for 32 inputs, NVFP4 with e4m3 scales for 16 and a factor for all.
Status Finder::setFloat4(QuantizedTensor &tensor, const std::string &name) {
  tensor.shape.back() *= 2;
  tensor.layout = CodeLayout::Nibbles;
  tensor.meaning = CodeMeaning::E2M1;
  tensor.bits = 4;
  bool isMx = isPowerOfTwo(tensor.scales->type);
  tensor.groupInputs = isMx ? 32 : 16;
  tensor.format = isMx ? "MXFP4" : "NVFP4 (F32 factor)";
  if (!isMx && tensor.scales->type != TensorType::F8E4M3)
    return Status::error("has scales of " + std::string(nameOf(tensor.scales->type)) +
                         ", four-bit floats have F8_E4M3 or U8");
  if (isMx == tensor.factor.has_value() || (tensor.factor && tensor.factor->type != TensorType::F32))
    return Status::error(isMx ? "is MXFP4, which has no factor '" + tensor.factor->name + "'"
                              : "is NVFP4, which needs an F32 factor of all scales, '" + name + "_scale_2' or '" +
                                    name + "_global_scale'");
  if (tensor.factor && numElements(tensor.factor->shape) != 1)
    return wrongShape("factors", *tensor.factor, Shape{1});
  std::vector<uint64_t> expected = scaleShape(tensor, 1, tensor.groupInputs);
  if (tensor.scales->shape != expected)
    return wrongShape("scales", *tensor.scales, expected);
  return add(std::move(tensor));
}

// Integers with scales of a tensor, of outputs or of groups, and zero points.
Status Finder::setGroups(QuantizedTensor &tensor, const std::string &what) {
  const ModelTensor &scales = *tensor.scales;
  uint64_t rows = tensor.numRows(), count = numElements(scales.shape).value_or(0);
  std::string kind;
  if (count == 1) {
    tensor.groupOutputs = std::max<uint64_t>(tensor.outputs(), 1);
    tensor.groupInputs = tensor.inputs();
    kind = " tensor";
  } else if (count == rows) {
    tensor.groupInputs = tensor.inputs();
    kind = " channel";
  } else if (count % rows == 0) {
    LLMC_ASSIGN_OR_RETURN(tensor.groupInputs, groupSizeFor(tensor.inputs(), count / rows));
    kind = " group " + std::to_string(tensor.groupInputs);
  } else {
    return wrongShape("scales", scales, scaleShape(tensor, 1, tensor.inputs()));
  }
  LLMC_RETURN_IF_ERROR(setZeros(tensor, tensor.name + "_zero_point"));
  LLMC_ASSIGN_OR_RETURN(bool actOrder, setGroupIndex(tensor, tensor.name + "_g_idx"));
  tensor.format = what + (tensor.zeros ? " asymmetric" : "") + kind + (actOrder ? " act-order" : "") + scalesOf(tensor);
  return {};
}

Status Finder::setZeros(QuantizedTensor &tensor, const std::string &name) {
  tensor.zeros = take(tensor, name);
  if (!tensor.zeros)
    return {};
  uint64_t groups = tensor.groupsPerRow(), perWord = 32 / tensor.bits;
  bool isPacked = tensor.zeros->type == TensorType::I32;
  const Shape expected = {isPacked ? ceilDiv(tensor.numRows(), perWord) : tensor.numRows(), groups};
  if (tensor.zeros->shape != expected || (!isPacked && tensor.zeros->type != TensorType::I8) ||
      tensor.groupOutputs != 1)
    return wrongShape("zero points", *tensor.zeros, expected);
  return {};
}

// Codes of a byte (or of two to a byte) with scales under the tensor's own name.
Status Finder::readScaled(const ModelTensor &codes) {
  QuantizedTensor tensor;
  tensor.name = codes.name;
  for (const char *suffix : scaleSuffixes)
    if (!tensor.scales)
      tensor.scales = take(tensor, codes.name + suffix);
  if (!tensor.scales)
    return {}; // plain, or an error of whoever reads it
  if (codes.shape.size() < 2)
    return Status::error("is " + printShape(codes.shape) + " with scales '" + tensor.scales->name +
                         "', expected a matrix");
  LLMC_RETURN_IF_ERROR(checkScales(*tensor.scales));
  tensor.codes = *take(tensor, codes.name);
  tensor.shape = codes.shape;
  LLMC_RETURN_IF_ERROR(checkSizes(tensor));
  tensor.factor = take(tensor, codes.name + "_scale_2");
  if (codes.type == TensorType::U8)
    return setFloat4(tensor, codes.name);
  tensor.layout = CodeLayout::Bytes;
  if (tensor.factor)
    return Status::error("has a second scale '" + tensor.factor->name + "', which only four-bit floats do");
  if (codes.type == TensorType::I8) {
    tensor.meaning = CodeMeaning::Signed;
    LLMC_RETURN_IF_ERROR(setGroups(tensor, "INT8"));
    return add(std::move(tensor));
  }
  tensor.meaning = codes.type == TensorType::F8E4M3 ? CodeMeaning::E4M3 : CodeMeaning::E5M2;
  const std::string e5m2 = codes.type == TensorType::F8E4M3 ? "" : " E5M2";
  const ModelTensor &scales = *tensor.scales;
  uint64_t count = numElements(scales.shape).value_or(0);
  if (isPowerOfTwo(scales.type) && scales.shape == scaleShape(tensor, 1, 32)) {
    tensor.groupInputs = 32;
    tensor.format = "MXFP8" + e5m2;
    return add(std::move(tensor));
  }
  bool isOfBlocks = config_.blockSize && count > 1;
  auto [outputs, inputs] = config_.blockSize.value_or(std::pair<int64_t, int64_t>(1, 1));
  if (isOfBlocks && scales.shape == scaleShape(tensor, static_cast<uint64_t>(outputs), static_cast<uint64_t>(inputs))) {
    tensor.groupOutputs = static_cast<uint64_t>(outputs);
    tensor.groupInputs = static_cast<uint64_t>(inputs);
    tensor.format =
        "FP8" + e5m2 + " block " + std::to_string(outputs) + "x" + std::to_string(inputs) + scalesOf(tensor);
    return add(std::move(tensor));
  }
  if (count != 1 && count != tensor.numRows() && count % tensor.numRows() != 0)
    return Status::error(
        "has scales of " + printShape(scales.shape) + ", but " +
        (config_.blockSize
             ? "blocks of " + std::to_string(outputs) + "x" + std::to_string(inputs) + " make " +
                   printShape(scaleShape(tensor, static_cast<uint64_t>(outputs), static_cast<uint64_t>(inputs)))
             : "no weight_block_size says how large their blocks are"));
  LLMC_RETURN_IF_ERROR(setGroups(tensor, "FP8" + e5m2));
  return add(std::move(tensor));
}

// A GGUF file may hold a factor of NVFP4's scales beside the blocks.
Status Finder::readGgmlScaled(const ModelTensor &codes) {
  std::string name = endsWith(codes.name, ".weight") ? without(codes.name, ".weight") : codes.name;
  const ModelTensor *factor = named(name + ".scale");
  if (!factor)
    return {};
  return Status::error("has a factor '" + factor->name + "' beside it, which is not supported for GGUF files");
}

Status Finder::add(QuantizedTensor tensor) {
  LLMC_RETURN_IF_ERROR(checkSizes(tensor));
  if (tensor.layout != CodeLayout::Gptq && tensor.layout != CodeLayout::Awq && tensor.groupOutputs == 1 &&
      numElements(tensor.scales->shape).value_or(0) != tensor.numRows() * tensor.groupsPerRow())
    return wrongShape("scales", *tensor.scales, scaleShape(tensor, 1, tensor.groupInputs));
  LLMC_RETURN_IF_ERROR(checkScales(*tensor.scales));
  // Packed forms have a scale for 32 inputs of whole groups, or for the halves of such.
  bool isFloat8 = tensor.meaning == CodeMeaning::E4M3 || tensor.meaning == CodeMeaning::E5M2;
  uint64_t unit = tensor.format.starts_with("NVFP4") ? 16 : 32;
  bool isWhole = tensor.groupInputs == tensor.inputs() || tensor.groupInputs % unit == 0;
  if (!isWhole || (!isFloat8 && tensor.inputs() % 32 != 0))
    tensor.format += " uneven";
  tensor.type = quantizedType(tensor.format).value_or(TensorType::ScaledOf8Bits);
  found_.tensors.push_back(std::move(tensor));
  return {};
}

Status Finder::checkLeftOver() {
  bool isQuantized = !found_.tensors.empty() || !config_.file.empty();
  for (const ModelTensor &tensor : files_.tensors()) {
    if (found_.parts.count(tensor.name))
      continue;
    auto has = [&](const char *suffix) { return endsWith(tensor.name, suffix); };
    if (isQuantized && std::any_of(std::begin(withoutEffect), std::end(withoutEffect), has))
      found_.parts.insert(tensor.name);
    else if (std::any_of(std::begin(orphanSuffixes), std::end(orphanSuffixes), has))
      return Status::error("tensor '" + tensor.name + "' belongs to quantised codes, which are not stored");
  }
  return {};
}

} // namespace

StatusOr<QuantizedTensors> findQuantized(const ModelFiles &files, const QuantizationConfig &config) {
  return Finder(files, config).find();
}

} // namespace llmc
