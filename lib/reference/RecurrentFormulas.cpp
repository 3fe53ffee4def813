#include "lib/reference/RecurrentFormulas.h"
#include <algorithm>

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
