// What this machine can do at most, measured in the same run as what it is compared with: reading memory, and
// multiplying with one instruction.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct MachineMemory {
  uint64_t totalBytes = 0, availableBytes = 0;
};
// Of /proc/meminfo, narrowed to the limit of the cgroup; zeros where unknown.
MachineMemory machineMemory();

// Bytes per second that `threads` threads read from memory together, each a part of its own; best of a few passes over
// more memory than the caches hold. 0 when the memory for it cannot be had.
double measureReadBandwidth(int threads);

// The instructions that measurePeak knows, by the names of dispatch manifests: "fma", "vdpbf16ps", "vpdpbusd",
// "vpmaddubsw", "vpsignb+vpmaddubsw".
std::vector<std::string> measurableInstructions();
// Operations per second (a multiply and an add are two) of `threads` threads that do nothing but `instruction` on
// registers, best of a few. Nothing when this machine lacks the instruction or the name is unknown. `vectorBits` is the
// width for "fma", which exists in several.
std::optional<double> measurePeak(const std::string &instruction, int vectorBits, int threads);

} // namespace llmc
