// The formulas against numbers worked out by hand and against the plainest loops, at sizes around the blocks they use.
#include "lib/reference/Formulas.h"
#include "test/lib/reference/RandomMatrix.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace llmc::reference {
namespace {

TEST(Linear, ByHand) {
  // [1 2] [3 4; 5 6]^T + [10 20] = [1*3+2*4+10, 1*5+2*6+20]
  Matrix bias(1, 2, {10, 20});
  EXPECT_EQ(linear({1, 2, {1, 2}}, {2, 2, {3, 4, 5, 6}}, &bias).values, (std::vector<float>{21, 37}));
}

TEST(Linear, AtOddSizes) {
  for (int64_t rows : {1, 3, 4, 5, 17})
    for (int64_t depth : {1, 7, 8, 9, 15, 16, 17, 101}) {
      Matrix x = randomMatrix(rows, depth, 1), w = randomMatrix(13, depth, 2), y = linear(x, w, nullptr);
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
  const Matrix gain(1, 2, {1, 2});
  Matrix y = rmsNorm({1, 4, {3, 4, 30, 40}}, 2, &gain, 1e-6f);
  EXPECT_NEAR(y.values[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[1], 8 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[2], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[3], 8 / std::sqrt(12.5), 1e-6);
}

TEST(RmsNorm, GainsOfEveryHeadOrNone) {
  const Matrix x(1, 4, {3, 4, 30, 40}), gain(1, 4, {1, 2, 5, 10});
  Matrix y = rmsNorm(x, 2, &gain, 1e-6f), plain = rmsNorm(x, 2, nullptr, 1e-6f);
  EXPECT_NEAR(y.values[2], 15 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.values[3], 40 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(plain.values[3], 4 / std::sqrt(12.5), 1e-6);
}

TEST(LayerNorm, ByHand) {
  // mean(1, 5) = 3, variance 4; the second head's mean is 30 and its variance 400
  const Matrix x(1, 4, {1, 5, 10, 50}), gain(1, 2, {1, 2}), offset(1, 4, {0, 1, 2, 3});
  Matrix plain = layerNorm(x, 2, nullptr, nullptr, 12);
  EXPECT_FLOAT_EQ(plain.values[0], -0.5f); // (1 - 3) / sqrt(4 + 12)
  EXPECT_FLOAT_EQ(plain.values[1], 0.5f);
  Matrix y = layerNorm(x, 2, &gain, &offset, 1e-9f);
  EXPECT_FLOAT_EQ(y.values[0], -1); // head 0: gains 1 and 2, offsets 0 and 1
  EXPECT_FLOAT_EQ(y.values[1], 3);
  EXPECT_FLOAT_EQ(y.values[2], 1); // head 1: -1 + 2 and 2 + 3
  EXPECT_FLOAT_EQ(y.values[3], 5);
}

TEST(LayerNorm, KeepsSmallDifferencesOfLargeNumbers) {
  Matrix y = layerNorm({1, 2, {16777215, 16777216}}, 2, nullptr, nullptr, 1e-9f);
  EXPECT_FLOAT_EQ(y.values[0], -1);
  EXPECT_FLOAT_EQ(y.values[1], 1);
}

TEST(Softmax, OfEachHeadAlone) {
  Matrix y = softmax({1, 4, {0, std::log(3.0f), 1000, 1000}}, 2);
  EXPECT_FLOAT_EQ(y.values[0], 0.25f); // 1 / (1 + 3)
  EXPECT_FLOAT_EQ(y.values[1], 0.75f);
  EXPECT_FLOAT_EQ(y.values[2], 0.5f); // no overflow
}

TEST(Sinkhorn, ByHand) {
  // [1 3; 1 1] by columns: [1/2 3/4; 1/2 1/4]; by rows 5/4 and 3/4: [2/5 3/5; 2/3 1/3]; by columns 16/15 and 14/15
  const Matrix x(1, 4, {1, 3, 1, 1});
  const Matrix once = sinkhorn(x, 2, 1, 1e-30f), twice = sinkhorn(x, 2, 2, 1e-30f);
  EXPECT_EQ(once.values, (std::vector<float>{0.5f, 0.75f, 0.5f, 0.25f}));
  const float expected[] = {3.0f / 8, 9.0f / 14, 5.0f / 8, 5.0f / 14};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(twice.values[i], expected[i]);
  // eps counts: 1 / (1 + 1)
  EXPECT_EQ(sinkhorn(Matrix(1, 1, {1}), 1, 1, 1).values, (std::vector<float>{0.5f}));
}

TEST(Activations, ByHand) {
  using llm::Activation;
  EXPECT_FLOAT_EQ(activate(Activation::Silu, 1), 0.7310586f);     // 1 / (1 + e^-1)
  EXPECT_FLOAT_EQ(activate(Activation::Gelu, 1), 0.8413447f);     // Phi(1)
  EXPECT_FLOAT_EQ(activate(Activation::GeluTanh, 1), 0.8411920f); // Hendrycks & Gimpel's approximation
  EXPECT_EQ(activate(Activation::Silu, -1000), 0);
  EXPECT_FLOAT_EQ(activate(Activation::GeluSigmoid, 1), 0.8457958f); // 1 / (1 + e^-1.702)
  EXPECT_EQ(activate(Activation::Relu, -2), 0);
  EXPECT_EQ(activate(Activation::Relu, 3), 3);
  EXPECT_EQ(activate(Activation::Relu2, -2), 0);
  EXPECT_EQ(activate(Activation::Relu2, 3), 9);
  EXPECT_EQ(activate(Activation::Sigmoid, 0), 0.5f);
  EXPECT_FLOAT_EQ(activate(Activation::Sigmoid, 1), 0.7310586f);
  EXPECT_FLOAT_EQ(activate(Activation::Tanh, 1), 0.7615942f);
  EXPECT_FLOAT_EQ(activate(Activation::Exp, 1), 2.7182818f);
  EXPECT_FLOAT_EQ(activate(Activation::Softplus, 0), 0.6931472f); // log 2
  EXPECT_EQ(activate(Activation::Softplus, 100), 100);
  EXPECT_FLOAT_EQ(activate(Activation::Softplus, -20), 2.0611537e-9f); // e^-20 (1 - e^-20 / 2)
  EXPECT_EQ(activate(Activation::Sqrt, 9), 3);
  EXPECT_FLOAT_EQ(softcap(30, 30), 30 * std::tanh(1.0f));
}

TEST(Xielu, ByHand) {
  // softplus(0) = log 2: 0.5 x above 0 and log 2 x^2; below (e^x - 1 - x)(0.5 + log 2) + 0.5 x
  EXPECT_NEAR(xielu(2, 0, 0, 0.5f, -1e-6f), 4 * 0.69314718 + 1, 1e-6);
  EXPECT_NEAR(xielu(-1, 0, 0, 0.5f, -1e-6f), 0.36787944 * 1.19314718 - 0.5, 1e-7);
  // Just below 0 the exponent stops at eps: (e^-1 - 1 + 0.5)(0.5 + log 2) - 0.25
  EXPECT_NEAR(xielu(-0.5f, 0, 0, 0.5f, -1), -0.13212056 * 1.19314718 - 0.25, 1e-7);
  EXPECT_EQ(xielu(1, 30, 0, 0.5f, -1e-6f), 30.5f); // softplus(30) = 30
}

TEST(PositionScale, GrowsByWholePeriods) {
  EXPECT_EQ(positionScale(8190, 0.1f, 8192, 1), 1);
  EXPECT_NEAR(positionScale(8191, 0.1f, 8192, 1), 1 + 0.1 * std::log(2), 1e-8); // (8191 + 1) / 8192 = 1
  EXPECT_NEAR(positionScale(3 * 8192, 0.1f, 8192, 0), 1 + 0.1 * std::log(4), 1e-8);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(roundToBf16(1 + 0x1p-8f), 1);                      // tie: down to even
  EXPECT_EQ(roundToBf16(1 + 3 * 0x1p-8f), 1 + 0x1p-6f);        // tie: up to even
  EXPECT_EQ(roundToBf16(1 + 0x1p-8f + 0x1p-20f), 1 + 0x1p-7f); // just above a tie
  EXPECT_TRUE(std::isinf(roundToBf16(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(roundToBf16(std::numeric_limits<float>::quiet_NaN())));
}

} // namespace
} // namespace llmc::reference
