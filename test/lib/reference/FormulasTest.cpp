// The formulas against numbers worked out by hand and against the plainest loops, at sizes around the blocks they use.
#include "lib/reference/Formulas.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace llmc::reference {
namespace {

Matrix random(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Matrix matrix(rows, columns);
  for (float &x : matrix.values)
    x = normal(engine);
  return matrix;
}

TEST(Linear, ByHand) {
  // [1 2] [3 4; 5 6]^T + [10 20] = [1*3+2*4+10, 1*5+2*6+20]
  Matrix bias(1, 2, {10, 20});
  EXPECT_EQ(linear({1, 2, {1, 2}}, {2, 2, {3, 4, 5, 6}}, &bias).values, (std::vector<float>{21, 37}));
}

TEST(Linear, AtOddSizes) {
  for (int64_t rows : {1, 3, 4, 5, 17})
    for (int64_t depth : {1, 7, 8, 9, 15, 16, 17, 101}) {
      Matrix x = random(rows, depth, 1), w = random(13, depth, 2), y = linear(x, w, nullptr);
      for (int64_t t = 0; t < rows; ++t)
        for (int64_t n = 0; n < 13; ++n) {
          double sum = 0, size = 0;
          for (int64_t k = 0; k < depth; ++k) {
            double product = double(x.row(t)[size_t(k)]) * w.row(n)[size_t(k)];
            sum += product, size += std::abs(product);
          }
          // One rounding to f32, and f64 sums in another order.
          EXPECT_NEAR(y.row(t)[size_t(n)], sum, std::abs(sum) * 6e-8 + size * 1e-14) << rows << " x " << depth;
        }
    }
}

TEST(RmsNorm, NormalizesEveryHeadAlone) {
  // mean(3^2, 4^2) = 12.5; two heads, the second ten times the first
  Matrix y = rmsNorm({1, 4, {3, 4, 30, 40}}, {1, 2, {1, 2}}, 1e-6f);
  EXPECT_NEAR(y.values[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[1], 8 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[2], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[3], 8 / std::sqrt(12.5), 1e-6);
}

TEST(Rope, TurnsPairsOfHalvesAndPassesTheRest) {
  std::vector<int32_t> positions{2};
  std::vector<float> frequencies{0.5f};
  Matrix table = ropeTable(positions, frequencies, 2.0f);
  EXPECT_FLOAT_EQ(table.values[0], 2 * std::cos(1.0f)); // 2 * cos(2 * 0.5)
  EXPECT_FLOAT_EQ(table.values[1], 2 * std::sin(1.0f));
  // Two heads of three channels: the first two turn, the third passes.
  Matrix y = rope({1, 6, {1, 0, 7, 0, 1, 8}}, {1, 2, {0.6f, 0.8f}}, 3);
  EXPECT_EQ(y.values, (std::vector<float>{0.6f, 0.8f, 7, -0.8f, 0.6f, 8}));
}

TEST(Rope, RoundsTheAngleToF32) {
  std::vector<int32_t> positions{16777217 / 3};
  std::vector<float> frequencies{0.1f};
  float angle = float(16777217 / 3) * 0.1f;
  EXPECT_EQ(ropeTable(positions, frequencies, 1).values[0], float(std::cos(double(angle))));
}

TEST(Activations, ByHand) {
  using llm::Activation;
  EXPECT_FLOAT_EQ(activate(Activation::Silu, 1), 0.7310586f);     // 1 / (1 + e^-1)
  EXPECT_FLOAT_EQ(activate(Activation::Gelu, 1), 0.8413447f);     // Phi(1)
  EXPECT_FLOAT_EQ(activate(Activation::GeluTanh, 1), 0.8411920f); // Hendrycks & Gimpel's approximation
  EXPECT_EQ(activate(Activation::Silu, -1000), 0);
  EXPECT_FLOAT_EQ(softcap(30, 30), 30 * std::tanh(1.0f));
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(roundToBf16(1 + 0x1p-8f), 1);                      // tie: down to even
  EXPECT_EQ(roundToBf16(1 + 3 * 0x1p-8f), 1 + 0x1p-6f);        // tie: up to even
  EXPECT_EQ(roundToBf16(1 + 0x1p-8f + 0x1p-20f), 1 + 0x1p-7f); // just above a tie
  EXPECT_TRUE(std::isinf(roundToBf16(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(roundToBf16(std::numeric_limits<float>::quiet_NaN())));
}

// The definition, position after position, in the same f64.
void plainAttention(const Matrix &q, const Matrix &k, const Matrix &v, int64_t position, const AttentionShape &shape,
                    std::vector<double> &result) {
  int64_t group = shape.heads / shape.kvHeads;
  result.assign(size_t(shape.heads * shape.headDim), 0);
  for (int64_t h = 0; h < shape.heads; ++h) {
    double total = 0;
    for (int64_t j = 0; j <= position; ++j) {
      if (shape.window > 0 && j <= position - shape.window)
        continue;
      double score = 0;
      for (int64_t d = 0; d < shape.headDim; ++d)
        score += double(q.row(0)[size_t(h * shape.headDim + d)]) * k.row(j)[size_t(h / group * shape.headDim + d)];
      score *= shape.scale;
      if (shape.softcap > 0)
        score = shape.softcap * std::tanh(score / shape.softcap);
      double weight = std::exp(score); // scores here are small
      total += weight;
      for (int64_t d = 0; d < shape.headDim; ++d)
        result[size_t(h * shape.headDim + d)] += weight * v.row(j)[size_t(h / group * shape.headDim + d)];
    }
    for (int64_t d = 0; d < shape.headDim; ++d)
      result[size_t(h * shape.headDim + d)] /= total;
  }
}

TEST(Attention, AgainstPlainLoops) {
  for (int64_t heads : {2, 6})
    for (int64_t window : {0, 1, 3, 16, 100})
      for (float cap : {0.0f, 2.0f})
        for (int64_t position : {0, 1, 15, 16, 17}) {
          AttentionShape shape{heads, 2, 7, 0.3f, cap, window};
          Matrix q = random(1, heads * 7, 1), k = random(position + 1, 14, 2), v = random(position + 1, 14, 3);
          std::vector<float> result(size_t(heads * 7));
          std::vector<double> expected;
          attendRow(q.values, k.values, v.values, position, shape, result);
          plainAttention(q, k, v, position, shape, expected);
          for (size_t i = 0; i < result.size(); ++i)
            EXPECT_NEAR(result[i], expected[i], std::abs(expected[i]) * 6e-8 + 1e-13) << "window " << window;
        }
}

} // namespace
} // namespace llmc::reference
