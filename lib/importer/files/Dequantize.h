// Stored bytes to float32, exactly: the value that the format's definition gives, rounded once where float32 cannot
// hold it.
#pragma once
#include "lib/importer/files/TensorType.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace llmc {

float fromF16(uint16_t bits);
float fromBf16(uint16_t bits);
float fromF8E4M3(uint8_t bits); // the finite variant: 0x7F and 0xFF are NaN, there is no infinity
float fromF8E5M2(uint8_t bits);
float fromF8E8M0(uint8_t bits); // 2^(bits - 127); 0xFF is NaN

// The sixteen levels of IQ4_NL and IQ4_XS, and twice those of a 4-bit float (e2m1), by code.
inline constexpr int8_t iq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr int8_t twiceE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Whether dequantize knows the type. Integers of 32 bits and more hold packed codes or indices and are read as bytes.
bool isDequantizable(TensorType type);

// Values [firstValue, firstValue + out.size()) of the tensor whose bytes are `bytes`. The range begins and ends at
// blocks and lies within the bytes; otherwise, and for types without isDequantizable, an error.
Status dequantize(TensorType type, std::span<const uint8_t> bytes, uint64_t firstValue, std::span<float> out);

// The index of the first NaN or infinity.
std::optional<size_t> findNonFinite(std::span<const float> values);
// The same as a sentence: "tensor 'x.scales' holds NaN at [3, 7]; ...". `values` begin at `firstValue` of the tensor.
Status checkFinite(const std::string &tensor, std::span<const uint64_t> shape, uint64_t firstValue,
                   std::span<const float> values);

} // namespace llmc
