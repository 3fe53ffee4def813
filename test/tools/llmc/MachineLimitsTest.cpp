// What is measured depends on the machine and its load; what can be said is what cannot be.
#include "tools/llmc/MachineLimits.h"
#include "runtime/support/CpuFeatures.h"
#include "tools/llmc/ChildProbe.h"
#include "tools/llmc/InstructionPeaks.h"
#include <csignal>
#include <gtest/gtest.h>
#include <unistd.h>

namespace llmc {
namespace {

TEST(MachineLimits, ReadsAtLeastAsFastAsADisk) {
  StatusOr<double> read = measureReadBandwidth(MemoryLevel::Memory, 2);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_GT(*read, 1e8);
}

TEST(MachineLimits, ACacheIsReadOrItsSizeIsUnknown) {
  for (MemoryLevel level : {MemoryLevel::L1, MemoryLevel::L2}) {
    StatusOr<double> read = measureReadBandwidth(level, 1);
    if (cacheBytes(level) > 0) {
      ASSERT_TRUE(read.ok()) << memoryLevelName(level) << ": " << read.status().message();
      EXPECT_GT(*read, 1e8);
    } else {
      EXPECT_FALSE(read.ok());
    }
  }
}

TEST(MachineLimits, ThreadsMeet) {
  StatusOr<double> seconds = measureBarrier(2);
  ASSERT_TRUE(seconds.ok()) << seconds.status().message();
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 0.1);
}

// A machine may advertise what it does not do; then the reason says how it ended.
TEST(InstructionPeaks, EveryInstructionOfThisMachineHasAPeak) {
  for (const MeasurableInstruction &instruction : measurableInstructions()) {
    SCOPED_TRACE(instruction.name);
    bool advertised = checkCpuFeatures(instruction.features, hostCpuFeatures()).ok();
    StatusOr<double> peak = measurePeak(instruction.name, instruction.vectorBits, /*threads=*/1);
    if (!advertised) {
      ASSERT_FALSE(peak.ok());
      EXPECT_NE(peak.status().message().find("lacks"), std::string::npos) << peak.status().message();
    } else if (peak.ok()) {
      EXPECT_GT(*peak, 1e8);
      EXPECT_LT(*peak, 1e14); // of one core
    } else {
      EXPECT_TRUE(instruction.name.starts_with("td")) << peak.status().message();
    }
  }
}

// The width decides which of two is meant.
TEST(InstructionPeaks, FmaComesInTwoWidths) {
  EXPECT_EQ(measurePeak("fma", 512, 1).ok(), checkCpuFeatures({"avx512f"}, hostCpuFeatures()).ok());
  EXPECT_FALSE(measurePeak("fma", 128, 1).ok());
}

TEST(InstructionPeaks, AnUnknownInstructionHasNoPeak) {
  StatusOr<double> peak = measurePeak("vector", 512, 1);
  ASSERT_FALSE(peak.ok());
  EXPECT_NE(peak.status().message().find("'vector'"), std::string::npos);
}

TEST(ChildProbe, HandsBackTheFigureOrTheReason) {
  StatusOr<double> value = measureInChild([]() -> StatusOr<double> { return 2.5; });
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 2.5);
  StatusOr<double> failure = measureInChild([]() -> StatusOr<double> { return Status::error("no tiles"); });
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.status().message(), "no tiles");
}

TEST(ChildProbe, AnIllegalInstructionEndsTheChildOnly) {
  StatusOr<double> value = measureInChild([]() -> StatusOr<double> {
    ::raise(SIGILL);
    return 1;
  });
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().message(), "stops with SIGILL");
}

TEST(ChildProbe, AChildThatHangsIsEnded) {
  StatusOr<double> value = measureInChild(
      []() -> StatusOr<double> {
        for (;;)
          ::pause();
      },
      /*seconds=*/1);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().message(), "took too long");
}

TEST(ChildProbe, AChildThatEndsEarlyHasNoAnswer) {
  StatusOr<double> value = measureInChild([]() -> StatusOr<double> { ::_exit(3); });
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().message(), "ended without an answer, exit code 3");
}

} // namespace
} // namespace llmc
