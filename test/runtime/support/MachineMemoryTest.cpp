// What the machine has is its business; that it is known, and narrowed to every cgroup around us, is ours.
#include "runtime/support/MachineMemory.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace llmc {
namespace {

TEST(MachineMemory, IsKnown) {
  MachineMemory memory = machineMemory();
  EXPECT_GT(memory.totalBytes, uint64_t(1) << 28);
  EXPECT_GT(memory.availableBytes, 0u);
  EXPECT_LE(memory.availableBytes, memory.totalBytes);
}

// A machine of 1000 KiB with 800 KiB available, and the files that a test adds.
class FakeMachine : public ::testing::Test {
protected:
  void SetUp() override { write("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 800 kB\n"); }
  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  void expect(uint64_t total, uint64_t available) {
    MachineMemory memory = machineMemory(root);
    EXPECT_EQ(memory.totalBytes, total);
    EXPECT_EQ(memory.availableBytes, available);
  }
  test::TemporaryFolder temporary;
  std::string root = temporary.path();
};

TEST_F(FakeMachine, WithoutCgroups) { expect(1000 << 10, 800 << 10); }

TEST_F(FakeMachine, Version2) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  expect(1000 << 10, 800 << 10);
  // The limit of the group around; of 300000 that are used the kernel gives 120000 back.
  write("/sys/fs/cgroup/a/memory.max", "500000\n");
  write("/sys/fs/cgroup/a/memory.current", "300000\n");
  write("/sys/fs/cgroup/a/memory.stat", "anon 1\nfile 130000\ninactive_file 100000\nactive_file 20000\n");
  expect(500000, 320000);
  write("/sys/fs/cgroup/a/b/memory.max", "200000\n");
  write("/sys/fs/cgroup/a/b/memory.current", "250000\n");
  expect(200000, 0);
}

TEST_F(FakeMachine, Version1BesideAnEmptyVersion2) {
  write("/proc/self/cgroup", "5:cpu,memory:/jobs/7\n2:cpuset:/\n0::/\n");
  write("/proc/self/mountinfo", "35 31 0:32 / /cg/memory rw,relatime - cgroup cgroup rw,cpu,memory\n"
                                "36 31 0:33 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
                                "41 31 0:38 / /cg/unified rw,relatime - cgroup2 cgroup2 rw\n");
  write("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/cg/memory/jobs/7/memory.limit_in_bytes", "400000\n");
  write("/cg/memory/jobs/7/memory.usage_in_bytes", "100000\n");
  write("/cg/memory/jobs/7/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\ntotal_active_file 10000\n");
  expect(400000, 330000);
}

// A container sees its own group as the root of the mount, under a path that it cannot see.
TEST_F(FakeMachine, MountedGroupOfAContainer) {
  write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  write("/proc/self/mountinfo", "35 31 0:32 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n");
  write("/cg/memory/memory.limit_in_bytes", "600000\n");
  expect(600000, 600000);
}

} // namespace
} // namespace llmc
