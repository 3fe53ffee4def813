#include "runtime/engine/Sampler.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace llmc {
namespace {

std::string str(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}

Status checkRange(const char *name, double value, double min, double max) {
  if (value >= min && value <= max) // NaN fails both
    return {};
  return Status::error(std::string(name) + " is " + str(value) + ", expected " + str(min) + " to " + str(max));
}

// One pass that the compiler vectorises: the largest logit, and whether all are finite.
bool allFinite(std::span<const float> logits) {
  constexpr float largest = std::numeric_limits<float>::max();
  bool finite = true;
  for (float logit : logits)
    finite &= std::fabs(logit) <= largest;
  return finite;
}

// splitmix64's finalizer (Steele, Lea, Flood 2014).
uint64_t scramble(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

} // namespace

Status checkSampling(const SamplingParams &params) {
  LLMC_RETURN_IF_ERROR(checkRange("temperature", params.temperature, 0, limits::temperature));
  LLMC_RETURN_IF_ERROR(checkRange("top_k", params.topK, 0, std::numeric_limits<int32_t>::max()));
  if (!(params.topP > 0))
    return Status::error("top_p is " + str(params.topP) + ", expected more than 0, up to 1");
  LLMC_RETURN_IF_ERROR(checkRange("top_p", params.topP, 0, 1));
  LLMC_RETURN_IF_ERROR(checkRange("min_p", params.minP, 0, 1));
  return checkRange("repetition_penalty", params.repetitionPenalty, limits::repetitionPenaltyMin,
                    limits::repetitionPenaltyMax);
}

double uniformDraw(uint64_t seed, uint64_t number) {
  uint64_t bits = scramble(scramble(seed + 0x9e3779b97f4a7c15u) + (number + 1) * 0x9e3779b97f4a7c15u);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Sampler::Sampler(int32_t vocabulary) : seen_(static_cast<size_t>(vocabulary)) {
  candidates_.reserve(static_cast<size_t>(vocabulary));
}

// Lower weight, of equals the higher id: the order in which candidates are given up.
bool Sampler::ranksBelow(const Candidate &a, const Candidate &b) {
  return a.weight < b.weight || (a.weight == b.weight && a.id > b.id);
}

std::optional<int32_t> Sampler::sample(std::span<const float> logits, const SamplingParams &params,
                                       std::span<const int32_t> history, uint64_t number) {
  if (!allFinite(logits))
    return std::nullopt;
  bool penalized = params.repetitionPenalty != 1;
  if (params.temperature == 0 && !penalized)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  if (penalized)
    penalize(history, params.repetitionPenalty);
  if (params.temperature == 0)
    return std::max_element(candidates_.begin(), candidates_.end(), ranksBelow)->id;
  return draw(params, uniformDraw(params.seed, number));
}

void Sampler::penalize(std::span<const int32_t> history, double penalty) {
  if (++round_ == 0) { // wrapped: old marks would look new
    std::fill(seen_.begin(), seen_.end(), 0);
    round_ = 1;
  }
  for (int32_t id : history) {
    auto i = static_cast<size_t>(id);
    if (seen_[i] == round_)
      continue;
    seen_[i] = round_;
    double &logit = candidates_[i].weight;
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

// Candidates stay in id order until a limit ranks them: sums are taken in an order that every standard library agrees
// on.
int32_t Sampler::draw(const SamplingParams &params, double uniform) {
  std::span<Candidate> kept(candidates_);
  double largest = std::max_element(kept.begin(), kept.end(), ranksBelow)->weight;
  for (Candidate &candidate : kept) // subtracted before the division: the exponent is never positive
    candidate.weight = std::exp((candidate.weight - largest) / params.temperature);
  auto ranksAbove = [](const Candidate &a, const Candidate &b) { return ranksBelow(b, a); };
  bool ranked = false;
  if (params.topK > 0 && static_cast<size_t>(params.topK) < kept.size()) {
    std::nth_element(kept.begin(), kept.begin() + params.topK, kept.end(), ranksAbove);
    kept = kept.first(static_cast<size_t>(params.topK));
    std::sort(kept.begin(), kept.end(), ranksAbove);
    ranked = true;
  }
  if (params.topP < 1) {
    kept = keepTopP(kept, params.topP, ranked);
    ranked = true;
  }
  if (params.minP > 0) { // the largest weight is 1
    auto end = std::partition(kept.begin(), kept.end(), [&](const Candidate &c) { return c.weight >= params.minP; });
    kept = kept.first(static_cast<size_t>(end - kept.begin()));
    std::sort(kept.begin(), kept.end(), ranksAbove);
  }
  return pick(kept, uniform);
}

// The shortest front of the ranking whose weight reaches topP of the total. A heap ranks no more than it needs.
std::span<Sampler::Candidate> Sampler::keepTopP(std::span<Candidate> from, double topP, bool ranked) {
  double wanted = topP * totalWeight(from);
  double weight = 0;
  size_t count = 0;
  if (ranked) {
    while (count < from.size() && (count == 0 || weight < wanted))
      weight += from[count++].weight;
    return from.first(count);
  }
  std::make_heap(from.begin(), from.end(), ranksBelow);
  while (count < from.size() && (count == 0 || weight < wanted)) {
    std::pop_heap(from.begin(), from.end() - static_cast<std::ptrdiff_t>(count), ranksBelow);
    weight += from[from.size() - ++count].weight;
  }
  std::span<Candidate> kept = from.last(count);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

double Sampler::totalWeight(std::span<const Candidate> candidates) {
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  return total;
}

int32_t Sampler::pick(std::span<const Candidate> candidates, double uniform) {
  double target = uniform * totalWeight(candidates);
  double weight = 0;
  for (const Candidate &candidate : candidates) {
    weight += candidate.weight;
    if (weight > target)
      return candidate.id;
  }
  return candidates.back().id; // rounding: the target was the total
}

} // namespace llmc
