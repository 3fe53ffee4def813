#include "lib/reference/RecurrentKernels.h"
#include "lib/reference/TileKernels.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace llmc::reference {
namespace {

// sum_k a(k) * b(k): partial sums by k mod `partials` (2 or 16), then halves.
template <typename A, typename B> float sumOfProducts(int64_t keys, size_t partials, A a, B b) {
  std::array<float, 16> sums = {};
  for (int64_t k = 0; k < keys; ++k) {
    float &sum = sums[static_cast<size_t>(k) % partials];
    sum = std::fma(a(k), b(k), sum);
  }
  for (size_t half = partials / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      sums[i] += sums[half + i];
  return sums[0];
}

} // namespace

void StateView::clear(int64_t tile, int64_t tiles) const {
  int64_t floats = type.bytes() / 4 / tiles;
  std::fill_n(memory + tile * floats, floats, 0.0f);
}

void convolve(std::span<const float> input, const uint8_t *tile, const PackedLayout &weight, int64_t column,
              const StateView &state, std::span<float> result) {
  auto lanes = static_cast<int64_t>(input.size());
  float *lines = state.memory + column * (weight.k - 1) * lanes;
  for (int64_t c = 0; c < lanes; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < weight.k; ++i) {
      float tap, x = i + 1 < weight.k ? lines[i * lanes + c] : input[static_cast<size_t>(c)];
      std::memcpy(&tap, tile + (i * weight.panel + c) * 4, 4);
      sum = std::fma(tap, x, sum);
      if (i > 0)
        lines[(i - 1) * lanes + c] = x;
    }
    result[static_cast<size_t>(c)] = sum;
  }
}

void recur(const RecurOperands &operands, int64_t column, const StateView &state, std::span<float> result) {
  const llm::RecurrentType type = state.type;
  const int64_t keys = type.getKeys(), values = type.getValues();
  auto size = static_cast<int64_t>(operands.value.size());
  const int64_t first = column * size, heads = std::max<int64_t>(1, size / values);
  const bool decayPerKey = static_cast<int64_t>(operands.decay.size()) == heads * keys;
  auto query = [&](int64_t k) { return operands.query[static_cast<size_t>(k)]; };
  auto key = [&](int64_t k) { return operands.key[static_cast<size_t>(k)]; };
  const size_t partials = type.lanesAreKeys() ? 16 : 2;
  const float agreement = sumOfProducts(keys, 16, query, key);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t head = (first + i) / values, place = (first + i) % values, inTile = head - first / values;
    const float value = operands.value[static_cast<size_t>(i)];
    auto times = [&](int64_t k, float x) {
      return operands.decay.empty() ? x
                                    : operands.decay[static_cast<size_t>(decayPerKey ? inTile * keys + k : inTile)] * x;
    };
    auto element = [&](int64_t k) -> float & { return state.at(head, k, place); };
    float update = value, fromState = 0;
    if (!operands.beta.empty()) {
      auto byKey = [&](int64_t k) { return times(k, key(k)); };
      auto byQuery = [&](int64_t k) { return times(k, query(k)); };
      update = operands.beta[static_cast<size_t>(inTile)] * (value - sumOfProducts(keys, partials, byKey, element));
      fromState = sumOfProducts(keys, partials, byQuery, element);
    }
    for (int64_t k = 0; k < keys; ++k)
      element(k) = std::fma(key(k), update, times(k, element(k)));
    result[static_cast<size_t>(i)] =
        operands.beta.empty() ? sumOfProducts(keys, partials, query, element) : std::fma(agreement, update, fromState);
  }
}

namespace {

// A running sum of one channel: its three lines are `stride` apart.
struct PoolSum {
  float *at;
  int64_t stride;
  float &maximum() const { return at[0]; }
  float &weights() const { return at[stride]; }
  float &sum() const { return at[2 * stride]; }
  float maximumOr(float nothing) const { return weights() == 0 ? nothing : maximum(); }

  void clear() const { maximum() = weights() = sum() = 0; }
  void add(float gate, float value) const {
    const float scaled = gate * 1.44269504f, next = std::max(maximumOr(scaled), scaled);
    const float kept = exp2Polynomial(maximumOr(next) - next), added = exp2Polynomial(scaled - next);
    weights() = std::fma(weights(), kept, added);
    sum() = std::fma(sum(), kept, added * value);
    maximum() = next;
  }
};

} // namespace

void pool(std::span<const float> value, std::span<const float> gate, bool begins, int64_t column,
          const StateView &state, std::span<float> result) {
  const auto lanes = static_cast<int64_t>(result.size());
  float *lines = state.memory + column * state.type.getKeys() * lanes;
  const size_t last = value.size() - result.size();
  for (size_t c = 0; c < result.size(); ++c) {
    const auto sumOf = [&](int64_t index) { return PoolSum{lines + 3 * index * lanes + c, lanes}; };
    const PoolSum here = sumOf(0);
    if (begins)
      here.clear();
    here.add(gate[last + c], value[last + c]);
    if (last == 0) {
      result[c] = here.sum() / here.weights();
      continue;
    }
    const PoolSum next = sumOf(1), before = sumOf(2);
    if (begins) {
      before.maximum() = next.maximum();
      before.weights() = next.weights();
      before.sum() = next.sum();
      next.clear();
    }
    next.add(gate[c], value[c]);
    const float top = std::max(here.maximum(), before.maximumOr(here.maximum()));
    const float f = exp2Polynomial(here.maximum() - top), e = exp2Polynomial(before.maximumOr(top) - top);
    result[c] = std::fma(here.sum(), f, before.sum() * e) / std::fma(here.weights(), f, before.weights() * e);
  }
}

} // namespace llmc::reference
