#include "runtime/support/MachineMemory.h"
#include <algorithm>
#include <fstream>
#include <string>

namespace llmc {
namespace {

uint64_t readNumber(const std::string &path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : 0; // "max" is no number
}

} // namespace

MachineMemory machineMemory() {
  MachineMemory memory;
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    uint64_t kilobytes = 0;
    file >> kilobytes;
    std::getline(file, unit);
    if (name == "MemTotal:")
      memory.totalBytes = kilobytes << 10;
    if (name == "MemAvailable:")
      memory.availableBytes = kilobytes << 10;
  }
  if (uint64_t limit = readNumber("/sys/fs/cgroup/memory.max")) {
    uint64_t used = std::min(limit, readNumber("/sys/fs/cgroup/memory.current"));
    memory.totalBytes = std::min(memory.totalBytes, limit);
    memory.availableBytes = std::min(memory.availableBytes, limit - used);
  }
  return memory;
}

} // namespace llmc
