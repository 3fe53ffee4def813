#include "lib/reference/ExpertFormulas.h"
#include "lib/reference/Formulas.h"
#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::reference;

namespace {

// The `count` largest in descending order, the lower index first where they are equal; only indices that may be taken.
std::vector<size_t> largest(std::span<const float> values, std::vector<bool> mayTake, int64_t count) {
  std::vector<size_t> chosen;
  for (int64_t i = 0; i < count; ++i) {
    size_t best = values.size();
    for (size_t e = 0; e < values.size(); ++e)
      if (mayTake[e] && (best == values.size() || values[e] > values[best]))
        best = e;
    mayTake[best] = false;
    chosen.push_back(best);
  }
  return chosen;
}

std::vector<float> scores(std::span<const float> logits, llm::Scoring scoring) {
  std::vector<float> s(logits.begin(), logits.end());
  const auto size = static_cast<int64_t>(logits.size());
  if (scoring == llm::Scoring::Softmax)
    return softmax(Matrix(1, size, std::move(s)), size).values;
  for (float &x : s)
    if (scoring == llm::Scoring::Sigmoid)
      x = activate(llm::Activation::Sigmoid, x);
    else if (scoring == llm::Scoring::SqrtSoftplus)
      // The threshold of softplus makes no difference in f32.
      x = static_cast<float>(std::sqrt(x > 0 ? x + std::log1p(std::exp(-static_cast<double>(x)))
                                             : std::log1p(std::exp(static_cast<double>(x)))));
  return s;
}

// Which experts stay when all but the best groups leave.
std::vector<bool> groupsThatStay(std::span<const float> choice, const RouterShape &shape) {
  const size_t size = choice.size() / static_cast<size_t>(shape.groups);
  std::vector<float> values;
  for (size_t first = 0; first < choice.size(); first += size) {
    std::span<const float> group = choice.subspan(first, size);
    double sum = 0;
    for (size_t e : largest(group, std::vector<bool>(size, true), shape.groupSum))
      sum += group[e];
    values.push_back(static_cast<float>(sum));
  }
  std::vector<bool> stay(choice.size(), false);
  for (size_t group : largest(values, std::vector<bool>(values.size(), true), shape.topGroups))
    std::fill_n(stay.begin() + static_cast<std::ptrdiff_t>(group * size), size, true);
  return stay;
}

// Twice the best of what is left, weighted by its part of the softmax over those that come close to it.
void mixSparsely(std::span<const float> logits, double jitter, std::vector<size_t> &chosen, std::vector<double> &s) {
  std::vector<bool> left(logits.size(), true);
  for (int64_t i = 0; i < 2; ++i) {
    const size_t best = largest(logits, left, 1).front();
    const double top = logits[best];
    double total = 0;
    for (size_t e = 0; e < logits.size(); ++e) {
      const double z = logits[e];
      if (left[e] && !((top - z) / std::max(std::abs(z), top) > 2 * jitter))
        total += std::exp(z - top);
    }
    chosen.push_back(best);
    s.push_back(1 / total);
    left[best] = false;
  }
}

} // namespace

void llmc::reference::routeRow(std::span<const float> logits, std::span<const float> bias, const RouterShape &shape,
                               std::span<float> weights, std::span<float> experts, std::span<const float> given) {
  std::vector<size_t> chosen;
  std::vector<double> s;
  if (shape.scoring == llm::Scoring::SparseMixer) {
    mixSparsely(logits, shape.jitter, chosen, s);
  } else {
    const std::vector<float> all = scores(logits, shape.scoring);
    std::vector<float> choice = all;
    for (size_t e = 0; e < bias.size(); ++e)
      choice[e] += bias[e];
    if (given.empty())
      chosen = largest(choice, groupsThatStay(choice, shape), shape.topK);
    else
      chosen.assign(given.begin(), given.end());
    for (size_t e : chosen)
      s.push_back(all[e]);
  }
  double sum = shape.normEps;
  for (double x : s)
    sum += x;
  for (size_t i = 0; i < chosen.size(); ++i) {
    experts[i] = given.empty() ? static_cast<float>(chosen[i]) : given[i];
    weights[i] = static_cast<float>((shape.normalize ? s[i] / sum : s[i]) * shape.scale);
  }
}

void llmc::reference::linearRow(std::span<const float> x, const Matrix &weights, int64_t first,
                                std::span<const float> bias, std::span<float> result) {
  for (size_t n = 0; n < result.size(); ++n) {
    const float *row = weights.row(first + static_cast<int64_t>(n)).data();
    result[n] = static_cast<float>(dot(x.data(), row, weights.columns) + (bias.empty() ? 0.0 : bias[n]));
  }
}

Matrix llmc::reference::combine(const Matrix &slots, const Matrix &weights) {
  const int64_t channels = slots.columns / weights.columns;
  Matrix result(slots.rows, channels);
  for (int64_t t = 0; t < slots.rows; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < weights.columns; ++i)
        sum += static_cast<double>(weights.row(t)[static_cast<size_t>(i)]) *
               slots.row(t)[static_cast<size_t>(i * channels + c)];
      result.row(t)[static_cast<size_t>(c)] = static_cast<float>(sum);
    }
  return result;
}
