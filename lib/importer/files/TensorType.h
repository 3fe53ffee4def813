// How weight files store numbers: names, block sizes and byte counts of the types of safetensors and GGUF. What the
// bytes of a block mean is in Dequantize.h.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

enum class TensorType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool,
  C64,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  F6E2M3,
  F6E3M2,
  F4,
  // ggml's blocks.
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q8_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ4_NL,
  IQ4_XS,
  TQ1_0,
  TQ2_0,
  MXFP4,
  NVFP4,
  Q1_0,
  Q2_0,
  // What several tensors together say (quantized/QuantizedTensor.h), by what a packed form can take of it: codes in
  // groups of 32 inputs, as integers.
  CodesOf8Bits, // -128 .. 127, one scale
  CodesOf4Bits, // -8 .. 7, one scale
  CodesFrom0,   // 0 .. 15, one scale and a minimum
  CodesMxfp4,   // -12 .. 12, one scale
  CodesNvfp4,   // -12 .. 12, a scale for each half
  CodesFp8,     // bytes (e4m3) and the scale of each, which is that of a group of 32: CodedFloat8
  // Numbers only.
  ScaledMxfp8,   // of eight-bit floats and powers of two
  ScaledOf8Bits, // of eight-bit floats or integers
  ScaledOf4Bits, // of codes of four bits or fewer, whose groups are not those of a packed form
};
inline constexpr TensorType lastTensorType = TensorType::ScaledOf4Bits;

// A block is the smallest run of values along the last dimension with bytes of its own; 1 for plain numbers.
struct TensorTypeInfo {
  TensorType type;
  std::string_view name; // as safetensors spells it ("F8_E4M3"), else as ggml does ("Q4_K")
  uint32_t blockValues;
  uint32_t blockBytes;
  int ggmlType; // its number in GGUF, or -1
  bool inSafetensors;
};

const TensorTypeInfo &infoOf(TensorType type);
inline std::string_view nameOf(TensorType type) { return infoOf(type).name; }
std::optional<TensorType> safetensorsType(std::string_view dtype);
std::optional<TensorType> ggmlType(uint32_t number);
// "BF16, BOOL, ...", for messages.
std::string knownSafetensorsTypes();

// "[2, 3]"
std::string printShape(std::span<const uint64_t> shape);
std::string printShape(std::span<const int64_t> shape);
// The product of the dimensions, or nothing when it overflows 64 bits (a zero hides no overflow).
std::optional<uint64_t> numElements(std::span<const uint64_t> shape);
// Bytes of a tensor, or a sentence: the product overflows, or blocks do not divide the last dimension ("rows of 100
// values do not divide into Q4_K blocks of 256"). safetensors packs its sub-byte types through the rows; there only the
// total must come out in whole bytes.
StatusOr<uint64_t> tensorBytes(TensorType type, std::span<const uint64_t> shape);

} // namespace llmc
