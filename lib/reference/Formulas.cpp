#include "lib/reference/Formulas.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llmc::reference;

namespace {

constexpr int64_t rowBlock = 4; // rows of x that share one pass over a row of the weight
constexpr int64_t lanes = 8;    // partial sums of a dot product: what the vectoriser needs to reorder nothing

// Four dot products of length k with one shared factor.
void dotBlock(const double *const x[rowBlock], const double *w, int64_t k, double result[rowBlock]) {
  double sums[rowBlock][lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes)
    for (int64_t r = 0; r < rowBlock; ++r)
      for (int64_t l = 0; l < lanes; ++l)
        sums[r][l] += x[r][i + l] * w[i + l];
  for (int64_t r = 0; r < rowBlock; ++r) {
    result[r] = 0;
    for (int64_t l = 0; l < lanes; ++l)
      result[r] += sums[r][l];
    for (int64_t j = i; j < k; ++j)
      result[r] += x[r][j] * w[j];
  }
}

// The element of a vector that stands for all elements, repeated, at `index`: rows and heads are whole repetitions.
float repeated(const Matrix &vector, size_t index) { return vector.values[index % vector.values.size()]; }

} // namespace

double llmc::reference::dot(const float *a, const float *b, int64_t size) {
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes)
    for (int64_t l = 0; l < lanes; ++l)
      sums[l] += static_cast<double>(a[i + l]) * b[i + l];
  double sum = 0;
  for (double part : sums)
    sum += part;
  for (; i < size; ++i)
    sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

Matrix llmc::reference::linear(const Matrix &x, const Matrix &weight, const Matrix *bias) {
  const int64_t depth = weight.columns;
  Matrix y(x.rows, weight.rows);
  std::vector<double> wide(x.values.begin(), x.values.end()), row(static_cast<size_t>(depth));
  for (int64_t n = 0; n < weight.rows; ++n) {
    std::ranges::copy(weight.row(n), row.begin());
    const double offset = bias ? bias->values[static_cast<size_t>(n)] : 0.0;
    for (int64_t t = 0; t < x.rows; t += rowBlock) {
      // A short last block repeats its last row.
      const double *block[rowBlock];
      for (int64_t r = 0; r < rowBlock; ++r)
        block[r] = wide.data() + std::min(t + r, x.rows - 1) * depth;
      double sums[rowBlock];
      dotBlock(block, row.data(), depth, sums);
      for (int64_t r = 0; r < std::min(rowBlock, x.rows - t); ++r)
        y.values[static_cast<size_t>((t + r) * y.columns + n)] = static_cast<float>(sums[r] + offset);
    }
  }
  return y;
}

Matrix llmc::reference::rmsNorm(const Matrix &x, int64_t channels, const Matrix *weight, float eps) {
  Matrix y(x.rows, x.columns);
  for (size_t at = 0; at < x.values.size(); at += static_cast<size_t>(channels)) {
    const float *in = x.values.data() + at;
    double scale = 1.0 / std::sqrt(dot(in, in, channels) / static_cast<double>(channels) + static_cast<double>(eps));
    for (size_t c = at; c < at + static_cast<size_t>(channels); ++c)
      y.values[c] = static_cast<float>(x.values[c] * scale * (weight ? repeated(*weight, c) : 1.0f));
  }
  return y;
}

Matrix llmc::reference::layerNorm(const Matrix &x, int64_t channels, const Matrix *weight, const Matrix *bias,
                                  float eps) {
  Matrix y(x.rows, x.columns);
  const auto size = static_cast<size_t>(channels);
  for (size_t at = 0; at < x.values.size(); at += size) {
    double mean = 0, variance = 0;
    for (size_t c = at; c < at + size; ++c)
      mean += x.values[c] / static_cast<double>(channels);
    for (size_t c = at; c < at + size; ++c)
      variance += (x.values[c] - mean) * (x.values[c] - mean) / static_cast<double>(channels);
    const double scale = 1.0 / std::sqrt(variance + static_cast<double>(eps));
    for (size_t c = at; c < at + size; ++c)
      y.values[c] = static_cast<float>((x.values[c] - mean) * scale * (weight ? repeated(*weight, c) : 1.0f) +
                                       (bias ? repeated(*bias, c) : 0.0f));
  }
  return y;
}

Matrix llmc::reference::softmax(const Matrix &x, int64_t channels) {
  Matrix y(x.rows, x.columns);
  const auto size = static_cast<size_t>(channels);
  for (size_t at = 0; at < x.values.size(); at += size) {
    const double top = *std::max_element(x.values.data() + at, x.values.data() + at + size);
    double total = 0;
    for (size_t c = at; c < at + size; ++c)
      total += std::exp(x.values[c] - top);
    for (size_t c = at; c < at + size; ++c)
      y.values[c] = static_cast<float>(std::exp(x.values[c] - top) / total);
  }
  return y;
}

Matrix llmc::reference::sinkhorn(const Matrix &x, int64_t size, int64_t iterations, float eps) {
  const auto n = static_cast<size_t>(size);
  Matrix y(x.rows, x.columns);
  for (int64_t t = 0; t < x.rows; ++t) {
    std::vector<double> m(x.row(t).begin(), x.row(t).end());
    // Of the lines whose elements are `step` apart; one line begins `next` behind the other.
    auto normalize = [&](size_t step, size_t next) {
      for (size_t line = 0; line < n; ++line) {
        double sum = eps;
        for (size_t i = 0; i < n; ++i)
          sum += m[line * next + i * step];
        for (size_t i = 0; i < n; ++i)
          m[line * next + i * step] /= sum;
      }
    };
    normalize(n, 1);
    for (int64_t i = 1; i < iterations; ++i) {
      normalize(1, n);
      normalize(n, 1);
    }
    std::ranges::transform(m, y.row(t).begin(), [](double value) { return static_cast<float>(value); });
  }
  return y;
}

static double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

float llmc::reference::activate(llm::Activation activation, float value) {
  const double x = value;
  switch (activation) {
  case llm::Activation::Silu:
    return static_cast<float>(x / (1 + std::exp(-x)));
  case llm::Activation::GeluTanh:
    return static_cast<float>(x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))));
  case llm::Activation::Gelu:
    return static_cast<float>(x / 2 * (1 + std::erf(x / std::sqrt(2.0))));
  case llm::Activation::GeluSigmoid:
    return static_cast<float>(x / (1 + std::exp(-1.702 * x)));
  case llm::Activation::Relu:
    return std::max(value, 0.0f);
  case llm::Activation::Relu2:
    return std::max(value, 0.0f) * std::max(value, 0.0f);
  case llm::Activation::Sigmoid:
    return static_cast<float>(1 / (1 + std::exp(-x)));
  case llm::Activation::Tanh:
    return static_cast<float>(std::tanh(x));
  case llm::Activation::Exp:
    return static_cast<float>(std::exp(x));
  case llm::Activation::Softplus:
    return static_cast<float>(softplus(x));
  case llm::Activation::Sqrt:
    return static_cast<float>(std::sqrt(x));
  }
  return std::numeric_limits<float>::quiet_NaN();
}

float llmc::reference::xielu(float value, float positive, float negative, float beta, float eps) {
  const double x = value;
  if (value > 0)
    return static_cast<float>(softplus(positive) * x * x + beta * x);
  return static_cast<float>((std::expm1(std::min(value, eps)) - x) * (beta + softplus(negative)) + beta * x);
}

double llmc::reference::positionScale(int64_t position, float scale, int64_t period, int64_t offset) {
  return 1 + scale * std::log(1 + static_cast<double>((position + offset) / period));
}

float llmc::reference::softcap(float x, float cap) {
  return static_cast<float>(cap * std::tanh(static_cast<double>(x) / cap));
}

float llmc::reference::roundToBf16(float x) { return fromBf16(bf16FromF32(x)); }
