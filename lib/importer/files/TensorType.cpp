// The one table of storage types, and byte counts from it.
#include "lib/importer/files/TensorType.h"
#include "runtime/support/CheckedSize.h"
#include <algorithm>
#include <iterator>

namespace llmc {
namespace {

using enum TensorType;

// In the order of the enum. Block sizes: ggml's ggml-common.h, safetensors' Dtype::bitsize.
const TensorTypeInfo types[] = {
    {F64, "F64", 1, 8, 28, true},
    {F32, "F32", 1, 4, 0, true},
    {F16, "F16", 1, 2, 1, true},
    {BF16, "BF16", 1, 2, 30, true},
    {I64, "I64", 1, 8, 27, true},
    {I32, "I32", 1, 4, 26, true},
    {I16, "I16", 1, 2, 25, true},
    {I8, "I8", 1, 1, 24, true},
    {U64, "U64", 1, 8, -1, true},
    {U32, "U32", 1, 4, -1, true},
    {U16, "U16", 1, 2, -1, true},
    {U8, "U8", 1, 1, -1, true},
    {Bool, "BOOL", 1, 1, -1, true},
    {C64, "C64", 1, 8, -1, true},
    {F8E4M3, "F8_E4M3", 1, 1, -1, true},
    {F8E5M2, "F8_E5M2", 1, 1, -1, true},
    {F8E8M0, "F8_E8M0", 1, 1, -1, true},
    {F6E2M3, "F6_E2M3", 4, 3, -1, true},
    {F6E3M2, "F6_E3M2", 4, 3, -1, true},
    {F4, "F4", 2, 1, -1, true},
    {Q4_0, "Q4_0", 32, 18, 2, false},
    {Q4_1, "Q4_1", 32, 20, 3, false},
    {Q5_0, "Q5_0", 32, 22, 6, false},
    {Q5_1, "Q5_1", 32, 24, 7, false},
    {Q8_0, "Q8_0", 32, 34, 8, false},
    {Q8_1, "Q8_1", 32, 36, 9, false},
    {Q2_K, "Q2_K", 256, 84, 10, false},
    {Q3_K, "Q3_K", 256, 110, 11, false},
    {Q4_K, "Q4_K", 256, 144, 12, false},
    {Q5_K, "Q5_K", 256, 176, 13, false},
    {Q6_K, "Q6_K", 256, 210, 14, false},
    {Q8_K, "Q8_K", 256, 292, 15, false},
    {IQ1_S, "IQ1_S", 256, 50, 19, false},
    {IQ1_M, "IQ1_M", 256, 56, 29, false},
    {IQ2_XXS, "IQ2_XXS", 256, 66, 16, false},
    {IQ2_XS, "IQ2_XS", 256, 74, 17, false},
    {IQ2_S, "IQ2_S", 256, 82, 22, false},
    {IQ3_XXS, "IQ3_XXS", 256, 98, 18, false},
    {IQ3_S, "IQ3_S", 256, 110, 21, false},
    {IQ4_NL, "IQ4_NL", 32, 18, 20, false},
    {IQ4_XS, "IQ4_XS", 256, 136, 23, false},
    {TQ1_0, "TQ1_0", 256, 54, 34, false},
    {TQ2_0, "TQ2_0", 256, 66, 35, false},
    {MXFP4, "MXFP4", 32, 17, 39, false},
    {NVFP4, "NVFP4", 64, 36, 40, false},
    {Q1_0, "Q1_0", 128, 18, 41, false},
    {Q2_0, "Q2_0", 64, 18, 42, false},
    {CodesOf8Bits, "codes of 8 bits", 32, 44, -1, false},
    {CodesOf4Bits, "codes of 4 bits", 32, 44, -1, false},
    {CodesFrom0, "codes from 0", 32, 44, -1, false},
    {CodesMxfp4, "MXFP4 codes", 32, 44, -1, false},
    {CodesNvfp4, "NVFP4 codes", 32, 44, -1, false},
    {CodesFp8, "FP8 codes", 1, 5, -1, false},
    {ScaledMxfp8, "MXFP8 numbers", 1, 4, -1, false},
    {ScaledOf8Bits, "scaled numbers of 8 bits", 1, 4, -1, false},
    {ScaledOf4Bits, "scaled numbers of 4 bits", 1, 4, -1, false},
};

constexpr bool inEnumOrder() { return std::size(types) == static_cast<size_t>(lastTensorType) + 1; }
static_assert(inEnumOrder(), "infoOf indexes the table by the enum");

template <typename Size> std::string printList(std::span<const Size> sizes) {
  std::string out = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

} // namespace

const TensorTypeInfo &infoOf(TensorType type) { return types[static_cast<size_t>(type)]; }

std::optional<TensorType> safetensorsType(std::string_view dtype) {
  for (const TensorTypeInfo &info : types)
    if (info.inSafetensors && info.name == dtype)
      return info.type;
  return std::nullopt;
}

std::optional<TensorType> ggmlType(uint32_t number) {
  for (const TensorTypeInfo &info : types)
    if (info.ggmlType >= 0 && static_cast<uint32_t>(info.ggmlType) == number)
      return info.type;
  return std::nullopt;
}

std::string knownSafetensorsTypes() {
  std::vector<std::string_view> names;
  for (const TensorTypeInfo &info : types)
    if (info.inSafetensors)
      names.push_back(info.name);
  std::sort(names.begin(), names.end());
  std::string out;
  for (std::string_view name : names)
    out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::string printShape(std::span<const uint64_t> shape) { return printList(shape); }
std::string printShape(std::span<const int64_t> shape) { return printList(shape); }

std::optional<uint64_t> numElements(std::span<const uint64_t> shape) {
  // Beside the true product the one of the dimensions that are not zero: [0, 2^63, 2^63] overflows too.
  CheckedSize product(1), withoutZeros(1);
  for (uint64_t dimension : shape) {
    product = product * dimension;
    withoutZeros = withoutZeros * std::max<uint64_t>(dimension, 1);
  }
  return withoutZeros.ok() ? product.value() : std::nullopt;
}

StatusOr<uint64_t> tensorBytes(TensorType type, std::span<const uint64_t> shape) {
  const TensorTypeInfo &info = infoOf(type);
  std::optional<uint64_t> elements = numElements(shape);
  if (!elements)
    return Status::error("shape " + printShape(shape) + " overflows 64 bits");
  if (!info.inSafetensors) {
    uint64_t row = shape.empty() ? 1 : shape.back();
    if (row % info.blockValues != 0)
      return Status::error("rows of " + std::to_string(row) + " values do not divide into " + std::string(info.name) +
                           " blocks of " + std::to_string(info.blockValues));
  }
  if (*elements % info.blockValues != 0)
    return Status::error("shape " + printShape(shape) + " of " + std::string(info.name) + " takes " +
                         std::to_string(*elements) + " times " +
                         std::to_string(info.blockBytes * 8 / info.blockValues) +
                         " bits, which is no whole number of bytes");
  std::optional<uint64_t> bytes = (CheckedSize(*elements / info.blockValues) * info.blockBytes).value();
  if (!bytes)
    return Status::error("shape " + printShape(shape) + " of " + std::string(info.name) + " overflows 64 bits");
  return *bytes;
}

} // namespace llmc
