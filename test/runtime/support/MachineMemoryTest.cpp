// What the machine has is its business; that it is known, and consistent, is ours.
#include "runtime/support/MachineMemory.h"
#include <gtest/gtest.h>

TEST(MachineMemory, IsKnown) {
  llmc::MachineMemory memory = llmc::machineMemory();
  EXPECT_GT(memory.totalBytes, uint64_t(1) << 28);
  EXPECT_GT(memory.availableBytes, 0u);
  EXPECT_LE(memory.availableBytes, memory.totalBytes);
}
