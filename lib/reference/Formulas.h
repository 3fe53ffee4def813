// The formulas of the llm ops on plain matrices. Sums and transcendental functions are taken in f64 and rounded to f32
// once, so that a result is off by little more than its own rounding: the yardstick for everything faster.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/reference/Matrix.h"

namespace llmc::reference {

/// y = x W^T + bias; bias may be null.
Matrix linear(const Matrix &x, const Matrix &weight, const Matrix *bias);
double dot(const float *a, const float *b, int64_t size);
/// Every part of `channels` elements of a row is normalized alone. Weight and bias, which may be null, have an element
/// for each of them or for each of a row.
Matrix rmsNorm(const Matrix &x, int64_t channels, const Matrix *weight, float eps);
Matrix layerNorm(const Matrix &x, int64_t channels, const Matrix *weight, const Matrix *bias, float eps);
/// Square matrices of `size`, scaled until columns and rows sum to one.
Matrix sinkhorn(const Matrix &x, int64_t size, int64_t iterations, float eps);
Matrix softmax(const Matrix &x, int64_t channels);
float activate(llm::Activation activation, float x);
float xielu(float x, float positive, float negative, float beta, float eps);
float softcap(float x, float cap);
/// The factor of llm.position_scale.
double positionScale(int64_t position, float scale, int64_t period, int64_t offset);
/// Nearest bf16, ties to even; NaN stays NaN.
float roundToBf16(float x);

} // namespace llmc::reference
