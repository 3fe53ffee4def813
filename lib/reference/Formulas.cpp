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

double dot(const float *a, const float *b, int64_t size) {
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

} // namespace

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

Matrix llmc::reference::rmsNorm(const Matrix &x, const Matrix &weight, float eps) {
  const int64_t width = weight.columns;
  Matrix y(x.rows, x.columns);
  for (size_t at = 0; at < x.values.size(); at += static_cast<size_t>(width)) {
    const float *in = x.values.data() + at;
    double scale = 1.0 / std::sqrt(dot(in, in, width) / static_cast<double>(width) + static_cast<double>(eps));
    for (int64_t c = 0; c < width; ++c)
      y.values[at + static_cast<size_t>(c)] = static_cast<float>(in[c] * scale * weight.values[static_cast<size_t>(c)]);
  }
  return y;
}

Matrix llmc::reference::ropeTable(std::span<const int32_t> positions, std::span<const float> frequencies,
                                  float magnitude) {
  Matrix table(static_cast<int64_t>(positions.size()), 2 * static_cast<int64_t>(frequencies.size()));
  for (size_t t = 0; t < positions.size(); ++t) {
    std::span<float> row = table.row(static_cast<int64_t>(t));
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const float angle = static_cast<float>(positions[t]) * frequencies[i]; // rounded to f32 on purpose
      row[i] = static_cast<float>(std::cos(static_cast<double>(angle)) * magnitude);
      row[frequencies.size() + i] = static_cast<float>(std::sin(static_cast<double>(angle)) * magnitude);
    }
  }
  return table;
}

Matrix llmc::reference::rope(const Matrix &x, const Matrix &table, int64_t headDim) {
  const int64_t n = table.columns / 2;
  Matrix y = x;
  for (int64_t t = 0; t < x.rows; ++t) {
    const float *turn = table.row(t).data();
    for (int64_t h = 0; h < x.columns; h += headDim) {
      const float *in = x.row(t).data() + h;
      float *out = y.row(t).data() + h;
      for (int64_t i = 0; i < n; ++i) {
        const double a = in[i], b = in[n + i], cosine = turn[i], sine = turn[n + i];
        out[i] = static_cast<float>(a * cosine - b * sine);
        out[n + i] = static_cast<float>(b * cosine + a * sine);
      }
    }
  }
  return y;
}

float llmc::reference::activate(llm::Activation activation, float value) {
  const double x = value;
  switch (activation) {
  case llm::Activation::Silu:
    return static_cast<float>(x / (1 + std::exp(-x)));
  case llm::Activation::GeluTanh:
    return static_cast<float>(x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))));
  case llm::Activation::Gelu:
    return static_cast<float>(x / 2 * (1 + std::erf(x / std::sqrt(2.0))));
  }
  return std::numeric_limits<float>::quiet_NaN();
}

float llmc::reference::softcap(float x, float cap) {
  return static_cast<float>(cap * std::tanh(static_cast<double>(x) / cap));
}

float llmc::reference::roundToBf16(float x) { return fromBf16(bf16FromF32(x)); }

void llmc::reference::attendRow(std::span<const float> query, std::span<const float> keys,
                                std::span<const float> values, int64_t position, const AttentionShape &shape,
                                std::span<float> result) {
  const int64_t width = shape.kvHeads * shape.headDim, group = shape.heads / shape.kvHeads;
  const int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
  std::vector<double> scores(static_cast<size_t>(position - first + 1)), sums(static_cast<size_t>(shape.headDim));
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t part = h / group * shape.headDim; // channels of the key-value head
    const float *q = query.data() + h * shape.headDim;
    double top = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < scores.size(); ++j) {
      double score =
          shape.scale * dot(q, keys.data() + (first + static_cast<int64_t>(j)) * width + part, shape.headDim);
      if (shape.softcap > 0)
        score = shape.softcap * std::tanh(score / shape.softcap);
      scores[j] = score;
      top = std::max(top, score);
    }
    double total = 0;
    std::ranges::fill(sums, 0.0);
    for (size_t j = 0; j < scores.size(); ++j) {
      const double weight = std::exp(scores[j] - top);
      const float *v = values.data() + (first + static_cast<int64_t>(j)) * width + part;
      total += weight;
      for (size_t d = 0; d < sums.size(); ++d)
        sums[d] += weight * v[d];
    }
    for (size_t d = 0; d < sums.size(); ++d)
      result[static_cast<size_t>(h * shape.headDim) + d] = static_cast<float>(sums[d] / total);
  }
}
