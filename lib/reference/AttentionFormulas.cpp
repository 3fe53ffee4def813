#include "lib/reference/AttentionFormulas.h"
#include "lib/reference/Formulas.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace llmc;
using namespace llmc::reference;

Matrix llmc::reference::ropeTable(std::span<const int32_t> positions, std::span<const float> frequencies,
                                  float magnitude, int64_t step) {
  Matrix table(static_cast<int64_t>(positions.size()), 2 * static_cast<int64_t>(frequencies.size()));
  for (size_t t = 0; t < positions.size(); ++t) {
    std::span<float> row = table.row(static_cast<int64_t>(t));
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const int64_t position = positions[t] / step * step;
      const float angle = static_cast<float>(position) * frequencies[i]; // rounded to f32 on purpose
      row[i] = static_cast<float>(std::cos(static_cast<double>(angle)) * magnitude);
      row[frequencies.size() + i] = static_cast<float>(std::sin(static_cast<double>(angle)) * magnitude);
    }
  }
  return table;
}

Matrix llmc::reference::rope(const Matrix &x, const Matrix &table, const RopeShape &shape) {
  const int64_t n = table.columns / 2;
  const bool halves = shape.pairing == llm::Pairing::Halves;
  Matrix y = x;
  for (int64_t t = 0; t < x.rows; ++t) {
    const float *turn = table.row(t).data();
    for (int64_t head = 0; head < x.columns; head += shape.headDim) {
      const float *in = x.row(t).data() + head + shape.first;
      float *out = y.row(t).data() + head + shape.first;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t one = halves ? i : 2 * i, other = halves ? n + i : 2 * i + 1;
        const double a = in[one], b = in[other], cosine = turn[i], sine = shape.inverse ? -turn[n + i] : turn[n + i];
        out[one] = static_cast<float>(a * cosine - b * sine);
        out[other] = static_cast<float>(b * cosine + a * sine);
      }
    }
  }
  return y;
}

namespace {

// The logarithm of a sum that nothing takes part in.
constexpr float nothingSeen = -1.0e30f;

// The positions that a row at `position` sees, ascending.
std::vector<int64_t> seenPositions(int64_t position, const AttentionShape &shape) {
  int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
  if (shape.chunk > 0)
    first = std::max(first, position / shape.chunk * shape.chunk);
  std::vector<int64_t> seen;
  if (!shape.selected) {
    seen.resize(static_cast<size_t>(position - first + 1));
    std::iota(seen.begin(), seen.end(), first);
    return seen;
  }
  for (float named : *shape.selected)
    if (named >= static_cast<float>(first) && named <= static_cast<float>(position))
      seen.push_back(static_cast<int64_t>(named));
  std::ranges::sort(seen);
  seen.erase(std::ranges::unique(seen).begin(), seen.end());
  return seen;
}

} // namespace

void llmc::reference::attendRow(std::span<const float> query, const KeysAndValues &cache, int64_t position,
                                const AttentionShape &shape, std::span<float> result, std::span<float> logsums) {
  const std::vector<int64_t> seen = seenPositions(position, shape);
  const int64_t group = shape.heads / cache.kvHeads;
  std::vector<double> scores(seen.size()), sums(static_cast<size_t>(cache.valueDim));
  for (int64_t h = 0; h < shape.heads; ++h) {
    const auto head = static_cast<size_t>(h);
    double top = shape.sinks.empty() ? -std::numeric_limits<double>::infinity() : shape.sinks[head];
    for (size_t i = 0; i < seen.size(); ++i) {
      scores[i] = shape.scale * dot(query.data() + h * cache.headDim, cache.key(seen[i], h / group), cache.headDim);
      if (shape.softcap > 0)
        scores[i] = shape.softcap * std::tanh(scores[i] / shape.softcap);
      if (!shape.alibi.empty())
        scores[i] += shape.alibi[head] * static_cast<double>(seen[i] - position);
      top = std::max(top, scores[i]);
    }
    double total = shape.sinks.empty() ? 0 : std::exp(shape.sinks[head] - top);
    std::ranges::fill(sums, 0.0);
    for (size_t i = 0; i < seen.size(); ++i) {
      const double weight = std::exp(scores[i] - top);
      const float *v = cache.value(seen[i], h / group);
      total += weight;
      for (size_t d = 0; d < sums.size(); ++d)
        sums[d] += weight * v[d];
    }
    for (size_t d = 0; d < sums.size(); ++d)
      result[head * sums.size() + d] = seen.empty() ? 0.0f : static_cast<float>(sums[d] / total);
    if (!logsums.empty())
      logsums[head] = total > 0 ? static_cast<float>(top + std::log(total)) : nothingSeen;
  }
}

void llmc::reference::selectPositions(std::span<const float> query, std::span<const float> weights,
                                      const KeysAndValues &cache, int64_t position, std::span<float> result) {
  std::vector<double> scores(static_cast<size_t>(position) + 1);
  for (size_t j = 0; j < scores.size(); ++j)
    for (size_t h = 0; h < weights.size(); ++h)
      scores[j] += weights[h] * std::max(0.0, dot(query.data() + static_cast<int64_t>(h) * cache.headDim,
                                                  cache.key(static_cast<int64_t>(j), 0), cache.headDim));
  for (double &score : scores) // a NaN would have no place in the order
    if (std::isnan(score))
      score = -std::numeric_limits<double>::infinity();
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::sort(order, [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  order.resize(std::min(order.size(), result.size()));
  std::ranges::sort(order);
  std::ranges::fill(result, -1.0f);
  std::ranges::copy(order, result.begin());
}
