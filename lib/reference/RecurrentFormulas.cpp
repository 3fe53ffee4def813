#include "lib/reference/RecurrentFormulas.h"
#include <algorithm>
#include <cmath>
#include <numbers>

using namespace llmc::reference;

void llmc::reference::shortConvRow(std::span<const float> input, const Matrix &weight, std::span<const float> bias,
                                   std::span<double> state, std::span<float> result) {
  const size_t kept = static_cast<size_t>(weight.columns) - 1;
  for (size_t c = 0; c < input.size(); ++c) {
    std::span<const float> w = weight.row(static_cast<int64_t>(c));
    std::span<double> past = state.subspan(c * kept, kept);
    double sum = bias.empty() ? 0 : bias[c];
    for (size_t i = 0; i < kept; ++i)
      sum += w[i] * past[i];
    result[c] = static_cast<float>(sum + static_cast<double>(w[kept]) * input[c]);
    std::shift_left(past.begin(), past.end(), 1);
    past.back() = input[c];
  }
}

namespace {

// A softmax-weighted sum of one channel as it grows, of exponents of 2.
struct RunningSum {
  double maximum, weights, sum; // the maximum means nothing while there are no weights

  void add(const RunningSum &other) {
    if (other.weights == 0)
      return;
    const double top = weights == 0 ? other.maximum : std::max(maximum, other.maximum);
    const double kept = weights == 0 ? 0 : std::exp2(maximum - top), added = std::exp2(other.maximum - top);
    *this = {top, weights * kept + other.weights * added, sum * kept + other.sum * added};
  }
};

} // namespace

void llmc::reference::windowPoolRow(std::span<const float> value, std::span<const float> gate, int64_t position,
                                    int64_t window, std::span<double> state, std::span<float> result) {
  const size_t channels = result.size();
  const bool overlaps = value.size() > channels, begins = position % window == 0;
  for (size_t c = 0; c < channels; ++c) {
    const auto load = [&](size_t set) {
      return RunningSum{state[3 * set * channels + c], state[(3 * set + 1) * channels + c],
                        state[(3 * set + 2) * channels + c]};
    };
    const auto store = [&](size_t set, const RunningSum &sum) {
      state[3 * set * channels + c] = sum.maximum;
      state[(3 * set + 1) * channels + c] = sum.weights;
      state[(3 * set + 2) * channels + c] = sum.sum;
    };
    const size_t last = value.size() - channels + c;
    RunningSum pooled = begins ? RunningSum{} : load(0);
    pooled.add({gate[last] * std::numbers::log2e, 1, value[last]});
    store(0, pooled);
    if (overlaps) {
      // What this window leaves for the next one, and what the one before has left.
      RunningSum next = begins ? RunningSum{} : load(1), before = load(begins ? 1 : 2);
      next.add({gate[c] * std::numbers::log2e, 1, value[c]});
      store(1, next);
      store(2, before);
      pooled.add(before);
    }
    result[c] = static_cast<float>(pooled.sum / pooled.weights);
  }
}

namespace {

// One head: S = diag(decay) S, u = beta (v - S^T k) or v, S += k u^T, result = S^T q.
struct Head {
  const float *q, *k, *v, *decay; // decay may be null
  int64_t decayStep;              // 0: one number for all keys
  const float *beta;              // may be null
  int64_t keys, values;

  void advance(double *state, float *result) const {
    const auto at = [&](int64_t key, int64_t value) -> double & { return state[key * values + value]; };
    if (decay)
      for (int64_t i = 0; i < keys; ++i)
        for (int64_t j = 0; j < values; ++j)
          at(i, j) *= decay[i * decayStep];
    for (int64_t j = 0; j < values; ++j) {
      double recalled = 0, sum = 0;
      for (int64_t i = 0; beta && i < keys; ++i)
        recalled += at(i, j) * k[i];
      const double update = beta ? *beta * (v[j] - recalled) : v[j];
      for (int64_t i = 0; i < keys; ++i) {
        at(i, j) += k[i] * update;
        sum += at(i, j) * q[i];
      }
      result[j] = static_cast<float>(sum);
    }
  }
};

} // namespace

void llmc::reference::linearAttentionRow(std::span<const float> query, std::span<const float> key,
                                         std::span<const float> value, std::span<const float> decay,
                                         std::span<const float> beta, const LinearAttentionShape &shape,
                                         std::span<double> state, std::span<float> result) {
  const bool perKey = static_cast<int64_t>(decay.size()) != shape.heads;
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t keyAt = h / (shape.heads / shape.keyHeads) * shape.keys, valueAt = h * shape.values;
    Head head{query.data() + keyAt,
              key.data() + keyAt,
              value.data() + valueAt,
              decay.empty() ? nullptr : decay.data() + (perKey ? h * shape.keys : h),
              perKey ? 1 : 0,
              beta.empty() ? nullptr : beta.data() + h,
              shape.keys,
              shape.values};
    head.advance(state.data() + h * shape.keys * shape.values, result.data() + valueAt);
  }
}
