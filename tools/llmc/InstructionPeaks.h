// How fast this machine multiplies with one instruction: the ceilings of kernels.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

// By the names of dispatch manifests: "fma", "vdpbf16ps", "vpdpbusd", "vpmaddubsw", "vpsignb+vpmaddubsw", "tdpbssd",
// "tdpbf16ps".
struct MeasurableInstruction {
  std::string name;
  int vectorBits; // of its operands; a tile counts 1024 bytes
  std::vector<std::string> features;
};
const std::vector<MeasurableInstruction> &measurableInstructions();

// Operations per second (a multiply and an add are two) of `threads` threads that do nothing but `instruction` on
// registers, best of a few. `vectorBits` chooses among the widths of "fma" and means nothing to the others. An error
// says why there is none: the name is unknown, a feature is missing, the kernel refuses tiles, or the instruction
// faults. Measured in a child process.
StatusOr<double> measurePeak(const std::string &instruction, int vectorBits, int32_t threads);

} // namespace llmc
