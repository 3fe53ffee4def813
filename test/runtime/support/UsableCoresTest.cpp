// UsableCores: the quota texts of cgroups, and an answer a thread pool can use.
#include "runtime/support/UsableCores.h"
#include "runtime/support/Progress.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

TEST(UsableCores, Quota) {
  EXPECT_EQ(coresOfQuota("max 100000"), 0);
  EXPECT_EQ(coresOfQuota(""), 0);
  EXPECT_EQ(coresOfQuota("100000 100000"), 1);
  EXPECT_EQ(coresOfQuota("150000 100000"), 2); // 1.5 cores rounded up
  EXPECT_EQ(coresOfQuota("1000 100000"), 1);
  EXPECT_EQ(coresOfQuota("-1 100000"), 0);
}

TEST(UsableCores, AtLeastOne) { EXPECT_GE(usableCores(), 1); }

TEST(Progress, Line) {
  EXPECT_EQ(progressLine("prefill", "tokens", 256, 1024, 2),
            "prefill [#######.......................] 256 / 1024 tokens, 128/s, 6 s left");
  EXPECT_EQ(progressLine("pack", "bytes", 3u << 20, 5u << 20, 2, 1u << 20),
            "pack [##################............] 3 / 5 MiB, 1 MiB/s, 2 s left");
  EXPECT_EQ(progressLine("prefill", "tokens", 0, 0, 0),
            "prefill [##############################] 0 / 0 tokens, 0/s, 0 s left");
}

} // namespace
} // namespace llmc
