// Short convolutions by hand and from whole sequences; linear attention by hand and against forms without a state.
#include "lib/reference/RecurrentFormulas.h"
#include "test/lib/reference/RandomMatrix.h"
#include <cmath>
#include <gtest/gtest.h>

namespace llmc::reference {
namespace {

TEST(ShortConv, ByHand) {
  // One channel, weights 1, 10, 100 (newest last), bias 1000; inputs 1, 2, 3, 4
  const Matrix weight(1, 3, {1, 10, 100});
  const std::vector<float> bias = {1000};
  std::vector<double> state(2);
  std::vector<float> result(1);
  for (auto [input, expected] : {std::pair(1.f, 1100.f), {2.f, 1210.f}, {3.f, 1321.f}, {4.f, 1432.f}}) {
    shortConvRow({&input, 1}, weight, bias, state, result);
    EXPECT_EQ(result[0], expected);
  }
  EXPECT_EQ(state, (std::vector<double>{3, 4})); // oldest first
}

TEST(ShortConv, EveryChannelAlone) {
  for (int64_t taps : {2, 3, 4, 7}) {
    Matrix x = randomMatrix(9, 5, 1), w = randomMatrix(5, taps, 2);
    std::vector<double> state(size_t(5 * (taps - 1)));
    for (int64_t t = 0; t < 9; ++t) {
      std::vector<float> result(5);
      shortConvRow(x.row(t), w, {}, state, result);
      for (size_t c = 0; c < 5; ++c) {
        double sum = 0; // over the whole sequence
        for (int64_t i = 0; i < taps; ++i)
          if (t - taps + 1 + i >= 0)
            sum += double(w.row(int64_t(c))[size_t(i)]) * x.row(t - taps + 1 + i)[c];
        EXPECT_NEAR(result[c], sum, std::abs(sum) * 6e-8 + 1e-13) << "row " << t << ", " << taps << " taps";
      }
    }
  }
}

// The softmax over what a row of windows of r positions sees, by its definition: parts of the window before, of this
// one.
float pooled(const Matrix &value, const Matrix &gate, int64_t channels, int64_t t, int64_t r, int64_t c) {
  const int64_t parts = value.columns / channels, window = t / r;
  double total = 0, sum = 0;
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t j = 0; j <= t; ++j)
      if (j / r == window - parts + 1 + part) {
        const size_t at = size_t(part * channels + c);
        const double weight = std::exp(double(gate.row(j)[at]));
        total += weight;
        sum += weight * value.row(j)[at];
      }
  return float(sum / total);
}

TEST(WindowPool, AgainstItsDefinition) {
  for (int64_t parts : {1, 2})
    for (int64_t r : {1, 3, 4, 16}) {
      Matrix value = randomMatrix(13, 5 * parts, 1), gate = randomMatrix(13, 5 * parts, 2);
      for (float &x : gate.values)
        x *= 20;
      std::vector<double> state(size_t(parts == 1 ? 3 * 5 : 9 * 5));
      for (int64_t t = 0; t < 13; ++t) {
        std::vector<float> result(5);
        windowPoolRow(value.row(t), gate.row(t), t, r, state, result);
        for (int64_t c = 0; c < 5; ++c)
          EXPECT_NEAR(result[size_t(c)], pooled(value, gate, 5, t, r, c), 1e-6)
              << parts << " parts, windows of " << r << ", row " << t << ", channel " << c;
      }
    }
}

// Gates far below zero weigh as much as any: nothing is compared with an empty sum's maximum.
TEST(WindowPool, GatesFarBelowZero) {
  std::vector<double> state(9);
  std::vector<float> result(1);
  for (int64_t t = 0; t < 6; ++t) {
    const std::vector<float> value = {float(t), float(10 * t)}, gate = {-900, -900};
    windowPoolRow(value, gate, t, 2, state, result);
  }
  // Window 2: first parts of rows 2 and 3, last parts of rows 4 and 5
  EXPECT_EQ(result[0], (2 + 3 + 40 + 50) / 4.0f);
}

// Inputs of T rows for H heads over H_k key heads of K channels, with values of V channels.
struct Inputs {
  Inputs(int64_t rows, LinearAttentionShape shape, bool decayPerKey)
      : shape(shape), q(randomMatrix(rows, shape.keyHeads * shape.keys, 1)),
        k(randomMatrix(rows, shape.keyHeads * shape.keys, 2)), v(randomMatrix(rows, shape.heads * shape.values, 3)),
        decay(randomMatrix(rows, shape.heads * (decayPerKey ? shape.keys : 1), 4)),
        beta(randomMatrix(rows, shape.heads, 5)), keysPerDecay(decayPerKey ? shape.keys : 1) {
    for (Matrix *gate : {&decay, &beta})
      for (float &x : gate->values)
        x = 1 / (1 + std::exp(-x));
  }
  int64_t keyHead(int64_t h) const { return h / (shape.heads / shape.keyHeads); }
  double key(int64_t t, int64_t h, int64_t i) const { return k.row(t)[size_t(keyHead(h) * shape.keys + i)]; }
  double query(int64_t t, int64_t h, int64_t i) const { return q.row(t)[size_t(keyHead(h) * shape.keys + i)]; }
  double value(int64_t t, int64_t h, int64_t j) const { return v.row(t)[size_t(h * shape.values + j)]; }
  // Product of the decays of rows from + 1 .. to.
  double decayed(int64_t from, int64_t to, int64_t h, int64_t i) const {
    double product = 1;
    for (int64_t t = from + 1; t <= to; ++t)
      product *= decay.row(t)[size_t(h * keysPerDecay + (keysPerDecay > 1 ? i : 0))];
    return product;
  }

  LinearAttentionShape shape;
  Matrix q, k, v, decay, beta;
  int64_t keysPerDecay;
};

enum class Gate { None, PerHead, PerKey };

Matrix run(const Inputs &in, Gate gate, bool delta) {
  const LinearAttentionShape &shape = in.shape;
  std::vector<double> state(size_t(shape.heads * shape.keys * shape.values));
  Matrix result(in.v.rows, in.v.columns);
  for (int64_t t = 0; t < in.v.rows; ++t)
    linearAttentionRow(in.q.row(t), in.k.row(t), in.v.row(t),
                       gate == Gate::None ? std::span<const float>() : in.decay.row(t),
                       delta ? in.beta.row(t) : std::span<const float>(), shape, state, result.row(t));
  return result;
}

// Without a state, in T^2: u_t = beta_t (v_t - sum_(s<t) (k_s . D k_t) u_s) or v_t, o_t = sum_(s<=t) (k_s . D q_t) u_s,
// D the decays of every key channel between s and t.
Matrix quadratic(const Inputs &in, Gate gate, bool delta) {
  const LinearAttentionShape &shape = in.shape;
  const int64_t rows = in.v.rows;
  Matrix result(rows, in.v.columns);
  for (int64_t h = 0; h < shape.heads; ++h) {
    std::vector<std::vector<double>> updates;
    auto recall = [&](int64_t t, bool byKey, int64_t j) {
      double sum = 0;
      for (int64_t s = 0; s < int64_t(updates.size()); ++s)
        for (int64_t i = 0; i < shape.keys; ++i)
          sum += in.key(s, h, i) * (gate == Gate::None ? 1.0 : in.decayed(s, t, h, i)) *
                 (byKey ? in.key(t, h, i) : in.query(t, h, i)) * updates[size_t(s)][size_t(j)];
      return sum;
    };
    for (int64_t t = 0; t < rows; ++t) {
      std::vector<double> update;
      for (int64_t j = 0; j < shape.values; ++j)
        update.push_back(delta ? in.beta.row(t)[size_t(h)] * (in.value(t, h, j) - recall(t, /*byKey=*/true, j))
                               : in.value(t, h, j));
      updates.push_back(update);
      for (int64_t j = 0; j < shape.values; ++j)
        result.row(t)[size_t(h * shape.values + j)] = float(recall(t, /*byKey=*/false, j));
    }
  }
  return result;
}

TEST(LinearAttention, AgainstTheQuadraticForm) {
  for (LinearAttentionShape shape : {LinearAttentionShape{1, 1, 1, 1}, {4, 2, 3, 5}, {3, 1, 4, 2}, {6, 6, 1, 3}})
    for (Gate gate : {Gate::None, Gate::PerHead, Gate::PerKey})
      for (bool delta : {false, true}) {
        Inputs in(7, shape, gate == Gate::PerKey);
        Matrix actual = run(in, gate, delta), expected = quadratic(in, gate, delta);
        for (size_t i = 0; i < actual.values.size(); ++i)
          // One rounding to f32 each, and f64 sums in another order.
          EXPECT_NEAR(actual.values[i], expected.values[i], std::abs(expected.values[i]) * 1.3e-7 + 1e-10)
              << "gate " << int(gate) << ", delta " << delta;
      }
}

TEST(LinearAttention, TheDeltaRuleByHand) {
  // One key, one value. S = 0, v = 4, beta = 0.5, k = 1: u = 2, S = 2, o = 2 q.
  // Then decay 0.5 first: S = 1, v = 4, u = 0.5 (4 - 1) = 1.5, S = 2.5.
  std::vector<double> state(1);
  std::vector<float> one{1}, three{3}, four{4}, half{0.5f}, result(1);
  linearAttentionRow(three, one, four, half, half, {1, 1, 1, 1}, state, result);
  EXPECT_EQ(result[0], 6);
  linearAttentionRow(three, one, four, half, half, {1, 1, 1, 1}, state, result);
  EXPECT_EQ(state[0], 2.5);
  EXPECT_EQ(result[0], 7.5);
}

TEST(LinearAttention, AScanOfAStateSpaceModel) {
  // Mamba-2: h = exp(dt A) h + dt x B, y = C . h; key = B, query = C, value = dt x, decay = exp(dt A).
  Matrix b = randomMatrix(6, 4, 1), c = randomMatrix(6, 4, 2), x = randomMatrix(6, 3, 3), dt = randomMatrix(6, 1, 4);
  const double a = -0.7;
  std::vector<double> state(12), h(12);
  for (int64_t t = 0; t < 6; ++t) {
    const float step = std::exp(dt.row(t)[0]), decay = float(std::exp(step * a));
    std::vector<float> value(3), result(3);
    for (size_t j = 0; j < 3; ++j)
      value[j] = step * x.row(t)[j];
    linearAttentionRow(c.row(t), b.row(t), value, {&decay, 1}, {}, {1, 1, 4, 3}, state, result);
    for (size_t j = 0; j < 3; ++j) {
      double y = 0;
      for (size_t n = 0; n < 4; ++n) {
        h[j * 4 + n] = decay * h[j * 4 + n] + value[j] * double(b.row(t)[n]);
        y += c.row(t)[n] * h[j * 4 + n];
      }
      EXPECT_NEAR(result[j], y, std::abs(y) * 6e-8 + 1e-13);
    }
  }
}

} // namespace
} // namespace llmc::reference
