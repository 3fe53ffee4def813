// f32 to the bits of bf16 and f16, to nearest even, written so that loops over them vectorise. The way back is in
// lib/importer/files/Dequantize.h.
#pragma once
#include <bit>
#include <cstdint>

namespace llmc {

inline uint16_t bf16FromF32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  // Rounding could carry a NaN's payload into the sign; keep its top bits and make it quiet instead.
  uint32_t quietNan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quietNan : rounded);
}

// Beyond 65504 + 16 (half a step) the result is infinite.
inline uint16_t f16FromF32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
  if (magnitude >= 0x477FF000) // 65520
    return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) { // 2^-14: the subnormals are steps of 2^-24, and f32 addition rounds to them
    float shifted = std::bit_cast<float>(magnitude) + 0x1p-1f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0x1p-1f)));
  }
  uint32_t rebased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13));
}

inline bool f16IsFinite(uint16_t bits) { return (bits & 0x7C00) != 0x7C00; }

} // namespace llmc
