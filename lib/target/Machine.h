// Machines that a plan may be made for: what a device holds, how fast it reads, multiplies and talks to others. The one
// place for such figures; a machine is a row of the table in Machines.cpp.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

// From one device to another of the same kind of place.
struct Link {
  double bytesPerSecond = 0; // out of a device, and into it at the same time
  double seconds = 0;        // until the first byte of a message is there
};

struct Machine {
  std::string name;   // "h200", as --machine takes it
  std::string title;  // for people
  std::string source; // of its figures
  bool isCpu = false;

  uint64_t memoryBytes = 0; // of a device, as its driver reports it
  double usable = 1;        // what driver, communication and captured graphs leave of it
  double memoryBytesPerSecond = 0;
  // Of products, by the bits of a weight: 16, 8 and 4. Where codes cannot be multiplied they are widened first, so that
  // fewer bits are no faster than more.
  double flops16 = 0, flops8 = 0, flops4 = 0;
  // What good kernels reach of either.
  double reachedMemory = 1, reachedFlops = 1;
  double launchSeconds = 0; // from one kernel to the next that reads its result

  int64_t devicesPerNode = 1;
  Link inside, between; // of nodes

  uint64_t usableBytes() const { return static_cast<uint64_t>(static_cast<double>(memoryBytes) * usable); }
};

// Pointers live as long as the program.
const std::vector<Machine> &knownMachines();
const Machine *findMachine(const std::string &name);
// "h100, h200, ...", for messages.
std::string machineNames();
// Whose nodes stand in for a CPU target that several ranks share.
const Machine &cpuClusterMachine();

} // namespace llmc
