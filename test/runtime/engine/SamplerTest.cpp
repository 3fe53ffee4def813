// Sampler: each transform on distributions small enough to work out by hand, and the draws against their probabilities.
#include "runtime/engine/Sampler.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <set>

namespace llmc {
namespace {

// Probabilities 0.4 0.1 0.3 0.2, as logits.
const std::vector<float> fourLogits = {std::log(0.4f), std::log(0.1f), std::log(0.3f), std::log(0.2f)};

std::map<int32_t, double> frequencies(const std::vector<float> &logits, const SamplingParams &params,
                                      const std::vector<int32_t> &history = {}) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  std::map<int32_t, double> count;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i)
    count[*sampler.sample(logits, params, history, static_cast<uint64_t>(i))] += 1.0 / draws;
  return count;
}

// Four standard deviations of a frequency over 20000 draws: 4 * sqrt(0.25 / 20000) = 0.0141.
constexpr double noise = 0.0142;

SamplingParams hot(double temperature = 1) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 42;
  return params;
}

TEST(Sampler, GreedyTakesTheLargestAndOfEqualsTheLowestId) {
  Sampler sampler(4);
  EXPECT_EQ(sampler.sample(fourLogits, {}, {}, 0), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}, {}, {}, 0), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, -3, -3, -2}, {}, {}, 0), 0);
}

TEST(Sampler, NonFiniteLogitsAreRefused) {
  Sampler sampler(4);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()})
    for (size_t at = 0; at < 4; ++at) {
      std::vector<float> logits = fourLogits;
      logits[at] = bad;
      EXPECT_FALSE(sampler.sample(logits, {}, {}, 0));
      EXPECT_FALSE(sampler.sample(logits, hot(), {}, 0));
    }
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  std::map<int32_t, double> f = frequencies(fourLogits, hot());
  EXPECT_NEAR(f[0], 0.4, noise);
  EXPECT_NEAR(f[1], 0.1, noise);
  EXPECT_NEAR(f[2], 0.3, noise);
  EXPECT_NEAR(f[3], 0.2, noise);
}

TEST(Sampler, TemperatureSharpens) {
  // Temperature 1/2 squares the probabilities: 0.16 0.01 0.09 0.04, sum 0.30.
  std::map<int32_t, double> f = frequencies(fourLogits, hot(0.5));
  EXPECT_NEAR(f[0], 0.16 / 0.30, noise);
  EXPECT_NEAR(f[2], 0.09 / 0.30, noise);
}

TEST(Sampler, TopK) {
  SamplingParams params = hot();
  params.topK = 2;
  std::map<int32_t, double> f = frequencies(fourLogits, params);
  EXPECT_EQ(f.size(), 2u);
  EXPECT_NEAR(f[0], 0.4 / 0.7, noise);
  params.topK = 1;
  EXPECT_EQ(frequencies(fourLogits, params).size(), 1u);
  params.topK = 9; // more than there are
  EXPECT_EQ(frequencies(fourLogits, params).size(), 4u);
  params.topK = 2; // of equals the lowest ids
  f = frequencies({1, 1, 1, 1}, params);
  EXPECT_EQ(f.size(), 2u);
  EXPECT_TRUE(f.count(0) && f.count(1));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  SamplingParams params = hot();
  params.topP = 0.65; // 0.4 + 0.3 = 0.7 reaches it
  std::map<int32_t, double> f = frequencies(fourLogits, params);
  EXPECT_EQ(f.size(), 2u);
  EXPECT_NEAR(f[0], 0.4 / 0.7, noise);
  params.topP = 0.75; // needs the third
  EXPECT_EQ(frequencies(fourLogits, params).size(), 3u);
  params.topP = 1e-9;
  EXPECT_EQ(frequencies(fourLogits, params).size(), 1u);
}

TEST(Sampler, TopPCountsWhatTopKLeft) {
  SamplingParams params = hot();
  params.topK = 2;   // 0.4 / 0.7 = 0.571, 0.3 / 0.7
  params.topP = 0.5; // reached by the first alone; of all four it would take two
  EXPECT_EQ(frequencies(fourLogits, params).size(), 1u);
}

TEST(Sampler, MinP) {
  SamplingParams params = hot();
  params.minP = 0.6; // at least 0.6 * 0.4 = 0.24
  std::map<int32_t, double> f = frequencies(fourLogits, params);
  EXPECT_EQ(f.size(), 2u);
  EXPECT_NEAR(f[2], 0.3 / 0.7, noise);
}

TEST(Sampler, RepetitionPenaltyOncePerToken) {
  SamplingParams params;
  params.repetitionPenalty = 2;
  Sampler sampler(3);
  // 3 / 2 = 1.5 falls behind 2; a second occurrence does not halve it again (0.75 would fall behind 1).
  EXPECT_EQ(sampler.sample(std::vector<float>{3, 2, 1}, params, std::vector<int32_t>{0, 0, 0}, 0), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{3, 2, 1}, params, std::vector<int32_t>{0, 0, 1, 1}, 0), 0);
  // A negative logit is multiplied: -1 * 2 = -2 falls behind -1.5.
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, -1.5, -9}, params, std::vector<int32_t>{0}, 0), 1);
}

TEST(Sampler, DrawsArePinned) {
  // The function of (seed, number) is a promise: the same answers on every platform and in every release.
  EXPECT_EQ(uniformDraw(0, 0), uniformDraw(0, 0));
  std::set<double> draws;
  for (uint64_t seed = 0; seed < 30; ++seed)
    for (uint64_t number = 0; number < 30; ++number)
      draws.insert(uniformDraw(seed, number));
  EXPECT_EQ(draws.size(), 900u);
  EXPECT_DOUBLE_EQ(uniformDraw(42, 7), 0.73472045846236389);
  EXPECT_GE(*draws.begin(), 0);
  EXPECT_LT(*draws.rbegin(), 1);
}

TEST(Sampler, HeapAndRankingAgree) {
  // top-k of all minus one ranks, top-p alone uses the heap: the same candidates in the same order, so the same draws.
  std::vector<float> logits(257);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919 % 257) % 40) * 0.1f; // many equals
  logits[256] = -50;
  Sampler sampler(257);
  SamplingParams heap = hot(), ranked = hot();
  heap.topP = ranked.topP = 0.9;
  ranked.topK = 256;
  for (uint64_t n = 0; n < 2000; ++n)
    ASSERT_EQ(sampler.sample(logits, heap, {}, n), sampler.sample(logits, ranked, {}, n)) << n;
}

TEST(Sampler, ParametersOutOfRange) {
  auto message = [](auto change) {
    SamplingParams params;
    change(params);
    Status status = checkSampling(params);
    return status.ok() ? std::string("ok") : status.message();
  };
  EXPECT_EQ(message([](SamplingParams &p) { p.temperature = -1; }), "temperature is -1, expected 0 to 100");
  EXPECT_EQ(message([](SamplingParams &p) { p.temperature = std::nan(""); }), "temperature is nan, expected 0 to 100");
  EXPECT_EQ(message([](SamplingParams &p) { p.topP = 0; }), "top_p is 0, expected more than 0, up to 1");
  EXPECT_EQ(message([](SamplingParams &p) { p.topP = 1.5; }), "top_p is 1.5, expected 0 to 1");
  EXPECT_EQ(message([](SamplingParams &p) { p.topK = -1; }), "top_k is -1, expected 0 to 2147483647");
  EXPECT_EQ(message([](SamplingParams &p) { p.minP = 2; }), "min_p is 2, expected 0 to 1");
  EXPECT_EQ(message([](SamplingParams &p) { p.repetitionPenalty = 0; }),
            "repetition_penalty is 0, expected 0.01 to 100");
  EXPECT_EQ(message([](SamplingParams &p) { p.temperature = 100; }), "ok");
}

} // namespace
} // namespace llmc
