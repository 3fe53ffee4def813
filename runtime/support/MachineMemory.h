// How much memory this process may hope for.
#pragma once
#include <cstdint>

namespace llmc {

struct MachineMemory {
  uint64_t totalBytes = 0, availableBytes = 0;
};
// Of /proc/meminfo, narrowed to the limit of the cgroup; zeros where unknown.
MachineMemory machineMemory();

} // namespace llmc
