// Collectives of tests, and their operands.
#pragma once
#include "runtime/collective/Collectives.h"
#include "runtime/collective/SimulatedRanks.h"
#include <cstring>

namespace llmc {

// An llmc_collective with what lies behind it.
class TestCollective {
public:
  explicit TestCollective(llmc_collective what, std::vector<int64_t> ranges = {})
      : words(sizeof what / sizeof(int64_t)) {
    std::memcpy(words.data(), &what, sizeof what);
    words.insert(words.end(), ranges.begin(), ranges.end());
  }
  const llmc_collective &operator*() const { return *reinterpret_cast<const llmc_collective *>(words.data()); }

private:
  std::vector<int64_t> words;
};

inline TestCollective sumOf(int64_t ranks, int64_t columns, int64_t stride) {
  return TestCollective({LLMC_ALL_REDUCE, 0, ranks, 0, columns, stride, columns, stride, 0, 0});
}

// Runs `what` with as much scratch as it says that it needs.
inline Status runCollective(Transport &transport, const TestCollective &what, int64_t rows, const float *input,
                            float *result) {
  std::vector<float> scratch(*collectiveScratchFloats(*what, rows).value());
  return Collectives(transport).run(*what, rows, input, result, scratch);
}

} // namespace llmc
