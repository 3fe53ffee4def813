// Sampler: the next token from a row of logits. The transforms and their order are those of Hugging Face's transformers
// (llama.cpp applies the temperature last instead):
//
//   1. repetition penalty p: a logit of a token that occurred is divided by p when positive, else multiplied by p
//   2. temperature: logits / temperature; 0 = greedy: the largest logit, of equals the lowest id, and nothing more
//   3. top-k: the k largest stay (of equals the lowest ids)
//   4. top-p: the fewest largest whose probabilities, renormalised after top-k, reach p stay; at least one
//   5. min-p: those with at least p times the largest probability stay
//   6. a draw in proportion to the probabilities of what is left
//
// The draw number n of seed s is a pure function of (s, n): no state, the same on every platform, independent of what
// else runs. Arithmetic is in double. A logit that is no finite number is refused, never ranked.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace llmc {

struct SamplingParams {
  double temperature = 0;
  int32_t topK = 0; // 0 = all
  double topP = 1;
  double minP = 0;
  double repetitionPenalty = 1;
  uint64_t seed = 0;
};

// Ranges of every field, NaN refused: "temperature is -1, expected 0 to 100".
Status checkSampling(const SamplingParams &params);

// Uniform in [0, 1), 53 bits: draw `number` of `seed`.
double uniformDraw(uint64_t seed, uint64_t number);

// Holds the scratch for one row of `vocabulary` logits. Sampling allocates nothing. One thread.
class Sampler {
public:
  explicit Sampler(int32_t vocabulary);
  // `history`: the tokens of the sequence so far, for the penalty. Nothing when a logit is NaN or infinite.
  std::optional<int32_t> sample(std::span<const float> logits, const SamplingParams &params,
                                std::span<const int32_t> history, uint64_t draw);

private:
  struct Candidate {
    double weight; // first a logit, then exp(logit - largest)
    int32_t id;
  };
  static bool ranksBelow(const Candidate &a, const Candidate &b);
  void penalize(std::span<const int32_t> history, double penalty);
  int32_t draw(const SamplingParams &params, double uniform);
  static std::span<Candidate> keepTopP(std::span<Candidate> from, double topP, bool ranked);
  static double totalWeight(std::span<const Candidate> candidates);
  static int32_t pick(std::span<const Candidate> candidates, double uniform);

  std::vector<Candidate> candidates_;
  std::vector<uint32_t> seen_; // round in which the token was penalised last
  uint32_t round_ = 0;
};

} // namespace llmc
