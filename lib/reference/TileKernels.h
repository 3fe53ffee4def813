// The arithmetic of the tile ops that are more than elementwise, in the exact order that their descriptions fix: what a
// kernel must match bit by bit.
#pragma once
#include "lib/weights/PackedLayout.h"
#include <cstdint>
#include <span>

namespace llmc::reference {

/// result[n] = fma(x[k], w[k, n], result[n]) for ascending k, on one tile of packed f32.
void dotF32(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout, std::span<float> result);
/// The same for bf16 numbers: per pair of k first the odd, then the even product is added by fma. Subnormal inputs and
/// sums count as zero of their sign, as the AVX-512 instruction has it.
void dotBf16(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout, std::span<float> result);
/// 8-bit floats: per group of 32 the sum of the products with the codes, from zero, then fma with the scale.
void dotF8(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout, std::span<float> result);
/// Exact integer sums per group of 32, then fma with the scales: see tile.scaled_dot.
void scaledDot(std::span<const int16_t> codes, std::span<const float> scales, const uint8_t *tile,
               const PackedLayout &layout, std::span<float> result);
void quantize(std::span<const float> x, float largestCode, std::span<int16_t> codes, std::span<float> scales);
/// Sixteen partial results, then halves.
float reduceAdd(std::span<const float> x);
float reduceMax(std::span<const float> x);
/// Minimax on [-1/2, 1/2] with the constant fixed to 1; the exponent is added to its bits. From -126 on.
float exp2Polynomial(float x);
/// A square matrix of at most sixteen rows, in place: see tile.sinkhorn.
void sinkhorn(std::span<float> matrix, int64_t size, int64_t iterations, float eps);

} // namespace llmc::reference
