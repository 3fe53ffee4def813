// Formulas of quantised formats. What each multiplies first is part of its definition: the last bit depends on it.
#include "lib/importer/files/quantized/QuantizedTensor.h"
#include "lib/importer/files/Dequantize.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace llmc {
namespace {

// e2m1 by code.
constexpr float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
// Which nibble of an AWQ word holds output 8c + i.
constexpr unsigned awqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t wordAt(std::span<const uint8_t> bytes, uint64_t index) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + 4 * index, 4);
  return word;
}

float numberAt(std::span<const uint8_t> bytes, TensorType type, uint64_t index) {
  uint16_t half;
  float whole;
  switch (type) {
  case TensorType::U8:
  case TensorType::F8E8M0:
    return fromF8E8M0(bytes[index]);
  case TensorType::F8E4M3:
    return fromF8E4M3(bytes[index]);
  case TensorType::BF16:
    std::memcpy(&half, bytes.data() + 2 * index, 2);
    return fromBf16(half);
  case TensorType::F16:
    std::memcpy(&half, bytes.data() + 2 * index, 2);
    return fromF16(half);
  default: // the listing takes no other type for scales
    std::memcpy(&whole, bytes.data() + 4 * index, 4);
    return whole;
  }
}

const std::array<float, 256> &e4m3Values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made;
    for (unsigned code = 0; code < 256; ++code)
      made[code] = fromF8E4M3(static_cast<uint8_t>(code));
    return made;
  }();
  return values;
}

float valueOf(CodeMeaning meaning, uint8_t code, int zero) {
  switch (meaning) {
  case CodeMeaning::E4M3:
    return e4m3Values()[code];
  case CodeMeaning::E5M2:
    return fromF8E5M2(code);
  case CodeMeaning::E2M1:
    return e2m1[code];
  case CodeMeaning::Signed:
    return static_cast<float>(static_cast<int8_t>(code) - zero);
  case CodeMeaning::Unsigned:
    return static_cast<float>(code - zero);
  }
  return 0.0f;
}

} // namespace

uint64_t QuantizedTensor::numRows() const {
  uint64_t rows = 1; // the listing has checked the whole product
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

StatusOr<QuantizedReader> QuantizedReader::open(const QuantizedTensor &tensor, const ModelFiles &files) {
  QuantizedReader reader;
  reader.tensor_ = &tensor;
  auto load = [&](const std::optional<ModelTensor> &from, Part &part) -> Status {
    if (!from)
      return {};
    LLMC_ASSIGN_OR_RETURN(part.bytes, files.bytes(*from));
    part.type = from->type;
    return {};
  };
  LLMC_RETURN_IF_ERROR(load(tensor.codes, reader.codes_));
  LLMC_RETURN_IF_ERROR(load(tensor.scales, reader.scales_));
  LLMC_RETURN_IF_ERROR(load(tensor.zeros, reader.zeros_));
  LLMC_RETURN_IF_ERROR(load(tensor.groupIndex, reader.groupIndex_));
  reader.hasOneScale_ = numElements(tensor.scales->shape) == 1;
  Part factor;
  LLMC_RETURN_IF_ERROR(load(tensor.factor, factor));
  if (tensor.factor)
    reader.factor_ = numberAt(factor.bytes, factor.type, 0);
  return reader;
}

StatusOr<uint64_t> QuantizedReader::groupOf(uint64_t input) const {
  if (groupIndex_.bytes.empty())
    return input / tensor_->groupInputs;
  uint32_t group = wordAt(groupIndex_.bytes, input);
  if (group >= tensor_->groupsPerRow())
    return Status::error("tensor '" + tensor_->groupIndex->name + "' puts input " + std::to_string(input) +
                         " into group " + std::to_string(group) + ", of " + std::to_string(tensor_->groupsPerRow()));
  return group;
}

float QuantizedReader::scale(uint64_t row, uint64_t group) const {
  const QuantizedTensor &t = *tensor_;
  bool isTransposed = t.layout == CodeLayout::Gptq || t.layout == CodeLayout::Awq;
  uint64_t matrix = row / t.outputs(), output = row % t.outputs();
  uint64_t perMatrix = (t.outputs() + t.groupOutputs - 1) / t.groupOutputs;
  uint64_t at = hasOneScale_   ? 0
                : isTransposed ? group * t.outputs() + output
                               : (matrix * perMatrix + output / t.groupOutputs) * t.groupsPerRow() + group;
  float scale = numberAt(scales_.bytes, scales_.type, at);
  if (!t.factor)
    return scale;
  return t.dividesByFactor ? scale / factor_ : scale * factor_;
}

int QuantizedReader::zero(uint64_t row, uint64_t group) const {
  const QuantizedTensor &t = *tensor_;
  if (!t.zeros)
    return t.meaning == CodeMeaning::Unsigned ? 1 << (t.bits - 1) : 0;
  uint64_t codesPerWord = 32 / t.bits, groups = t.groupsPerRow(), outputs = t.outputs();
  if (t.zeros->type == TensorType::I8)
    return static_cast<int8_t>(zeros_.bytes[row * groups + group]);
  uint32_t mask = (1u << t.bits) - 1;
  if (t.layout == CodeLayout::Awq)
    return static_cast<int>(wordAt(zeros_.bytes, group * (outputs / 8) + row / 8) >> (4 * awqNibble[row % 8]) & mask);
  if (t.layout == CodeLayout::Gptq)
    return static_cast<int>(wordAt(zeros_.bytes, group * (outputs / codesPerWord) + row / codesPerWord) >>
                                (t.bits * (row % codesPerWord)) &
                            mask) +
           (t.zerosMinusOne ? 1 : 0);
  return static_cast<int>(wordAt(zeros_.bytes, row / codesPerWord * groups + group) >> (t.bits * (row % codesPerWord)) &
                          mask);
}

void QuantizedReader::rawCodes(uint64_t row, uint64_t input, std::span<uint8_t> out) const {
  const QuantizedTensor &t = *tensor_;
  const uint64_t perWord = 32 / t.bits, outputs = t.outputs(), inputs = t.inputs();
  const uint32_t mask = t.bits == 8 ? 0xFF : (1u << t.bits) - 1;
  for (uint64_t i = 0; i < out.size(); ++i) {
    uint64_t k = input + i;
    switch (t.layout) {
    case CodeLayout::Bytes:
      out[i] = codes_.bytes[row * inputs + k];
      break;
    case CodeLayout::Nibbles:
      out[i] = codes_.bytes[row * (inputs / 2) + k / 2] >> (4 * (k % 2)) & 15;
      break;
    case CodeLayout::Words:
      out[i] = static_cast<uint8_t>(wordAt(codes_.bytes, row * ((inputs + perWord - 1) / perWord) + k / perWord) >>
                                        (t.bits * (k % perWord)) &
                                    mask);
      break;
    case CodeLayout::Gptq:
      out[i] =
          static_cast<uint8_t>(wordAt(codes_.bytes, k / perWord * outputs + row) >> (t.bits * (k % perWord)) & mask);
      break;
    case CodeLayout::Awq:
      out[i] = wordAt(codes_.bytes, k * (outputs / 8) + row / 8) >> (4 * awqNibble[row % 8]) & 15;
      break;
    }
  }
}

Status QuantizedReader::readRow(uint64_t row, uint64_t input, std::span<float> out) const {
  std::array<uint8_t, 64> codes;
  for (uint64_t done = 0; done < out.size();) {
    // A run of one scale, or single inputs where those are dealt out by index.
    LLMC_ASSIGN_OR_RETURN(uint64_t group, groupOf(input + done));
    uint64_t run = groupIndex_.bytes.empty() ? (group + 1) * tensor_->groupInputs - input - done : 1;
    run = std::min<uint64_t>({run, out.size() - done, codes.size()});
    rawCodes(row, input + done, {codes.data(), run});
    float factor = scale(row, group);
    int middle = zero(row, group);
    for (uint64_t i = 0; i < run; ++i)
      out[done + i] = valueOf(tensor_->meaning, codes[i], middle) * factor;
    done += run;
  }
  return {};
}

Status QuantizedReader::read(uint64_t first, std::span<float> out) const {
  const uint64_t inputs = tensor_->inputs(), total = tensor_->numRows() * inputs;
  if (first > total || out.size() > total - first)
    return Status::error("values " + std::to_string(first) + " to " + std::to_string(first + out.size()) +
                         " are asked for, there are " + std::to_string(total));
  while (!out.empty()) {
    uint64_t input = first % inputs, count = std::min<uint64_t>(inputs - input, out.size());
    LLMC_RETURN_IF_ERROR(readRow(first / inputs, input, out.first(count)));
    first += count;
    out = out.subspan(count);
  }
  return {};
}

Status QuantizedReader::readFloat8(uint64_t first, std::span<uint8_t> out) const {
  const uint64_t inputs = tensor_->inputs(), count = out.size() / sizeof(CodedFloat8);
  if (first > tensor_->numRows() * inputs || count > tensor_->numRows() * inputs - first)
    return Status::error("codes " + std::to_string(first) + " to " + std::to_string(first + count) +
                         " are asked for, there are " + std::to_string(tensor_->numRows() * inputs));
  for (uint64_t done = 0; done < count;) {
    uint64_t row = (first + done) / inputs, input = (first + done) % inputs, group = input / tensor_->groupInputs;
    uint64_t end = std::min((group + 1) * tensor_->groupInputs, inputs);
    const float factor = scale(row, group);
    for (; input < end && done < count; ++input, ++done) {
      CodedFloat8 coded;
      coded.code = codes_.bytes[row * inputs + input];
      std::memcpy(coded.scale, &factor, sizeof factor);
      std::memcpy(out.data() + done * sizeof coded, &coded, sizeof coded);
    }
  }
  return {};
}

Status QuantizedReader::readCodes(uint64_t firstGroup, std::span<uint8_t> out) const {
  const QuantizedTensor &t = *tensor_;
  if (t.type == TensorType::CodesFp8)
    return readFloat8(firstGroup, out);
  const uint64_t groupsPerRow = t.inputs() / 32, count = out.size() / sizeof(CodedGroup);
  if (t.inputs() % 32 != 0 || firstGroup + count > t.numRows() * groupsPerRow)
    return Status::error("groups " + std::to_string(firstGroup) + " to " + std::to_string(firstGroup + count) +
                         " of 32 codes are asked for, there are " + std::to_string(t.numRows() * groupsPerRow));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t row = (firstGroup + i) / groupsPerRow, input = (firstGroup + i) % groupsPerRow * 32;
    CodedGroup coded;
    uint8_t raw[32];
    rawCodes(row, input, raw);
    bool isHalved = t.meaning == CodeMeaning::E2M1;
    int middle = zero(row, input / t.groupInputs);
    // Where there are zero points, codes count from 0 and the minimum holds what those take away.
    bool hasMinimum = t.type == TensorType::CodesFrom0;
    for (unsigned k = 0; k < 32; ++k)
      coded.codes[k] = isHalved                           ? twiceE2M1[raw[k]]
                       : t.meaning == CodeMeaning::Signed ? static_cast<int8_t>(raw[k])
                       : hasMinimum                       ? static_cast<int8_t>(raw[k])
                                                          : static_cast<int8_t>(raw[k] - middle);
    for (unsigned half = 0; half < 2; ++half)
      coded.scale[half] = scale(row, (input + 16 * half) / t.groupInputs) * (isHalved ? 0.5f : 1.0f);
    coded.minimum = hasMinimum ? -static_cast<float>(middle) * coded.scale[0] : 0.0f;
    std::memcpy(out.data() + i * sizeof(CodedGroup), &coded, sizeof(CodedGroup));
  }
  return {};
}

} // namespace llmc
