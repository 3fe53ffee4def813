// Routers of every scoring worked out by hand, and products of experts against the plainest loops.
#include "lib/reference/ExpertFormulas.h"
#include "test/lib/reference/RandomMatrix.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace llmc::reference {
namespace {
using llm::Scoring;

struct Routed {
  std::vector<float> weights, experts;
};

Routed route(const std::vector<float> &logits, const RouterShape &shape, const std::vector<float> &bias = {}) {
  Routed routed{std::vector<float>(size_t(shape.topK)), std::vector<float>(size_t(shape.topK))};
  routeRow(logits, bias, shape, routed.weights, routed.experts);
  return routed;
}

void expectWeights(const Routed &routed, const std::vector<double> &expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(routed.weights[i], expected[i], 1e-6 * expected[i]) << "weight " << i;
}

TEST(Router, SoftmaxOverAllExperts) {
  // e^z = 1, 2, 4, 1
  Routed routed = route({0, std::log(2.0f), std::log(4.0f), 0}, {Scoring::Softmax, 2});
  EXPECT_EQ(routed.experts, (std::vector<float>{2, 1}));
  expectWeights(routed, {4 / 8.0, 2 / 8.0});
}

TEST(Router, NormalizesAndScales) {
  RouterShape shape{Scoring::Softmax, 2};
  shape.normalize = true;
  shape.scale = 3;
  expectWeights(route({0, std::log(2.0f), std::log(4.0f), 0}, shape), {3 * 4 / 6.0, 3 * 2 / 6.0});
  shape.normEps = 0.25; // 4/8 + 2/8 + 1/4
  expectWeights(route({0, std::log(2.0f), std::log(4.0f), 0}, shape), {3 * 0.5, 3 * 0.25});
}

TEST(Router, EqualOnesByIndex) {
  EXPECT_EQ(route({1, 3, 3, 1, 1}, {Scoring::Softmax, 4}).experts, (std::vector<float>{1, 2, 0, 3}));
  EXPECT_EQ(route({2, 2, 2}, {Scoring::None, 2}).experts, (std::vector<float>{0, 1}));
}

TEST(Router, ScoresOneByOne) {
  Routed sigmoid = route({0, -1, 1}, {Scoring::Sigmoid, 2});
  EXPECT_EQ(sigmoid.experts, (std::vector<float>{2, 0}));
  expectWeights(sigmoid, {0.7310586, 0.5});
  Routed root = route({0, -1, 1}, {Scoring::SqrtSoftplus, 3});
  EXPECT_EQ(root.experts, (std::vector<float>{2, 0, 1}));
  expectWeights(root, {std::sqrt(1.3132617), std::sqrt(0.6931472), std::sqrt(0.3132617)});
  expectWeights(route({1000}, {Scoring::SqrtSoftplus, 1}), {std::sqrt(1000)}); // no overflow
  expectWeights(route({3, 5}, {Scoring::None, 2}), {5, 3});
}

TEST(Router, ABiasChangesTheChoiceOnly) {
  Routed routed = route({0, 0, 1}, {Scoring::Sigmoid, 2}, {1, 0.5f, 0});
  EXPECT_EQ(routed.experts, (std::vector<float>{0, 1})); // 1.5, 1 and 0.73
  expectWeights(routed, {0.5, 0.5});
}

TEST(Router, BestGroupsStay) {
  // Three groups of two. By their largest: 5, 4, 3; by their sums: 5, 7, 6.
  const std::vector<float> logits = {5, 0, 4, 3, 3, 3};
  RouterShape shape{Scoring::None, 2, /*groups=*/3, /*topGroups=*/1, /*groupSum=*/1};
  EXPECT_EQ(route(logits, shape).experts, (std::vector<float>{0, 1}));
  shape.groupSum = 2;
  EXPECT_EQ(route(logits, shape).experts, (std::vector<float>{2, 3}));
  shape.topGroups = 2;
  shape.topK = 3;
  EXPECT_EQ(route(logits, shape).experts, (std::vector<float>{2, 3, 4})); // 5 is in no group that stays
  // A bias counts for groups too: it lifts the first.
  EXPECT_EQ(route(logits, shape, {3, 0, 0, 0, 0, 0}).experts, (std::vector<float>{0, 2, 3}));
}

TEST(Router, EqualGroupsByIndex) {
  RouterShape shape{Scoring::None, 1, /*groups=*/2, /*topGroups=*/1, /*groupSum=*/2};
  EXPECT_EQ(route({1, 2, 2, 1}, shape).experts, (std::vector<float>{1}));
}

TEST(Router, GivenExperts) {
  // The best would be 3 and 2; 0 and 2 are given: their scores, divided by the sum, times 2.
  RouterShape shape{Scoring::None, 2};
  shape.normalize = true;
  shape.scale = 2;
  std::vector<float> weights(2), experts(2);
  const std::vector<float> logits = {1, 2, 3, 4}, given = {2, 0};
  routeRow(logits, {}, shape, weights, experts, given);
  EXPECT_EQ(experts, given);
  EXPECT_EQ(weights, (std::vector<float>{1.5f, 0.5f}));
}

TEST(Router, SparseMixer) {
  // jitter 0.1: experts within a fifth of the best count. First: 10 and 9 ((10 - 9) / 10 = 0.1), not 7.
  RouterShape shape{Scoring::SparseMixer, 2};
  shape.jitter = 0.1f;
  Routed routed = route({7, 10, 9}, shape);
  EXPECT_EQ(routed.experts, (std::vector<float>{1, 2}));
  // Then 9 alone: (9 - 7) / 9 = 0.22.
  expectWeights(routed, {1 / (1 + std::exp(-1.0)), 1});
  // Nearly equal ones share; a negative logit is measured by its own size: (-1 + 1.1) / 1.1 = 0.09.
  routed = route({-1.1f, -1}, shape);
  EXPECT_EQ(routed.experts, (std::vector<float>{1, 0}));
  expectWeights(routed, {1 / (1 + std::exp(-0.1)), 1});
}

TEST(Router, NotANumberIsAChoiceToo) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  RouterShape shape{Scoring::Sigmoid, 2, /*groups=*/2, /*topGroups=*/1, /*groupSum=*/2};
  for (float expert : route({nan, nan, nan, nan}, shape).experts)
    EXPECT_TRUE(expert >= 0 && expert < 4);
}

TEST(LinearRow, AgainstPlainLoops) {
  for (int64_t depth : {1, 7, 8, 17}) {
    Matrix x = randomMatrix(1, depth, 1), w = randomMatrix(6, depth, 2), bias = randomMatrix(1, 3, 3);
    std::vector<float> plain(3), shifted(3);
    linearRow(x.row(0), w, 3, {}, plain);
    linearRow(x.row(0), w, 3, bias.row(0), shifted);
    for (size_t n = 0; n < 3; ++n) {
      double sum = 0;
      for (size_t k = 0; k < size_t(depth); ++k)
        sum += double(x.values[k]) * w.row(3 + int64_t(n))[k];
      EXPECT_NEAR(plain[n], sum, std::abs(sum) * 6e-8 + 1e-13);
      EXPECT_NEAR(shifted[n], sum + bias.values[n], std::abs(sum + bias.values[n]) * 6e-8 + 1e-13);
    }
  }
}

TEST(Combine, ByHand) {
  // Two slots of two channels: 10 * (1, 2) + 100 * (3, 4), then 0 and 1
  Matrix y = combine({2, 4, {1, 2, 3, 4, 5, 6, 7, 8}}, {2, 2, {10, 100, 0, 1}});
  EXPECT_EQ(y.values, (std::vector<float>{310, 420, 7, 8}));
}

} // namespace
} // namespace llmc::reference
