// What one rendering may still use. Work is counted in ticks, 16 to a step, so that small expressions cost less than a
// step and long texts more.
#pragma once
#include "runtime/support/Status.h"
#include "runtime/template/Template.h"
#include <string>

namespace llmc::jinja {

inline constexpr uint64_t ticksPerStep = 16;
// Lists in lists in lists, and expressions or blocks in each other: what our own recursion can follow.
inline constexpr int maxValueDepth = 100;
inline constexpr int maxSyntaxDepth = 100;
// Nested evaluations at any moment, over all macro calls.
inline constexpr int maxEvaluationDepth = 1500;

class Budget {
public:
  explicit Budget(const TemplateLimits &limits) : limits_(limits) {
    bool fits = limits.steps < UINT64_MAX / ticksPerStep;
    ticks_ = fits ? limits.steps * ticksPerStep : UINT64_MAX;
  }
  const TemplateLimits &limits() const { return limits_; }

  Status spend(uint64_t ticks) {
    if (ticks > ticks_)
      return Status::error("stopped after " + std::to_string(limits_.steps) + " steps");
    ticks_ -= ticks;
    return Status();
  }
  Status step() { return spend(ticksPerStep); }
  // Before a text of `bytes` is made or read through.
  Status spendBytes(uint64_t bytes) {
    if (bytes > limits_.outputBytes)
      return Status::error("text of " + std::to_string(bytes) + " bytes exceeds the limit " +
                           std::to_string(limits_.outputBytes));
    return spend(bytes / 16);
  }
  // Before a search, whose worst case is the product of the two lengths.
  Status spendSearch(uint64_t textBytes, uint64_t wantedBytes) {
    if (wantedBytes <= 256 || wantedBytes > textBytes)
      return Status();
    return spend(textBytes / 16 * (wantedBytes / 256));
  }
  // Before a list of `count` elements is made or read through.
  Status spendItems(uint64_t count) { return count > UINT64_MAX / 2 ? spend(UINT64_MAX) : spend(count * 2); }

private:
  TemplateLimits limits_;
  uint64_t ticks_;
};

} // namespace llmc::jinja
