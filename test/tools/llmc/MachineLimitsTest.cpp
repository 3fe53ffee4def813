// What is measured depends on the machine and its load; what can be said is what cannot be.
#include "tools/llmc/MachineLimits.h"
#include "runtime/support/CpuFeatures.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

TEST(MachineLimits, MemoryIsKnown) {
  MachineMemory memory = machineMemory();
  EXPECT_GT(memory.totalBytes, uint64_t(1) << 28);
  EXPECT_LE(memory.availableBytes, memory.totalBytes);
}

TEST(MachineLimits, ReadsAtLeastAsFastAsADisk) { EXPECT_GT(measureReadBandwidth(2), 1e8); }

TEST(MachineLimits, EveryInstructionOfThisMachineHasAPeak) {
  auto has = [](const std::string &feature) { return checkCpuFeatures({feature}, hostCpuFeatures()).ok(); };
  for (const std::string &name : measurableInstructions()) {
    SCOPED_TRACE(name);
    std::optional<double> peak = measurePeak(name, /*vectorBits=*/256, /*threads=*/1);
    bool expected = has(name == "vdpbf16ps" ? "avx512_bf16" : name == "vpdpbusd" ? "avx512_vnni" : "avx2");
    ASSERT_EQ(peak.has_value(), expected);
    if (peak) {
      EXPECT_GT(*peak, 1e8);
      EXPECT_LT(*peak, 1e13); // of one core
    }
  }
}

// The width decides which of two is meant.
TEST(MachineLimits, FmaComesInTwoWidths) {
  EXPECT_EQ(measurePeak("fma", 512, 1).has_value(), checkCpuFeatures({"avx512f"}, hostCpuFeatures()).ok());
  EXPECT_FALSE(measurePeak("fma", 128, 1).has_value());
}

TEST(MachineLimits, AnUnknownInstructionHasNoPeak) { EXPECT_FALSE(measurePeak("vector", 512, 1).has_value()); }

} // namespace
} // namespace llmc
