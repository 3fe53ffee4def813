// The formulas of the llm ops on plain matrices. Sums and transcendental functions are taken in f64 and rounded to f32
// once, so that a result is off by little more than its own rounding: the yardstick for everything faster.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/reference/Matrix.h"

namespace llmc::reference {

/// y = x W^T + bias; bias may be null.
Matrix linear(const Matrix &x, const Matrix &weight, const Matrix *bias);
/// Every part of `weight.columns` elements of a row is normalized alone.
Matrix rmsNorm(const Matrix &x, const Matrix &weight, float eps);
/// Cosines, then sines, of float(position * frequency), times magnitude.
Matrix ropeTable(std::span<const int32_t> positions, std::span<const float> frequencies, float magnitude);
/// Turns the first table.columns channels of every head of `headDim` channels.
Matrix rope(const Matrix &x, const Matrix &table, int64_t headDim);
float activate(llm::Activation activation, float x);
float softcap(float x, float cap);
/// Nearest bf16, ties to even; NaN stays NaN.
float roundToBf16(float x);

struct AttentionShape {
  int64_t heads, kvHeads, headDim;
  float scale, softcap; // softcap 0: none
  int64_t window;       // 0: all positions
};
/// One row at `position` over keys and values [position][kvHeads * headDim] of its sequence.
void attendRow(std::span<const float> query, std::span<const float> keys, std::span<const float> values,
               int64_t position, const AttentionShape &shape, std::span<float> result);

} // namespace llmc::reference
