// How much memory this process may hope for.
#pragma once
#include <cstdint>
#include <string>

namespace llmc {

struct MachineMemory {
  uint64_t totalBytes = 0, availableBytes = 0;
};
// Of /proc/meminfo, narrowed to the limits of the cgroups (v1 or v2) that this process is in, however deep; zeros where
// unknown. What a cgroup keeps of files counts as available: the kernel gives it back. `root` is in front of every
// path, for tests.
MachineMemory machineMemory(const std::string &root = "");

} // namespace llmc
