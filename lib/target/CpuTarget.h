// What code generation may know of a CPU: the one place for instruction-set facts and cache sizes. A target is one file
// here and one row of the table in CpuTargets.cpp.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct CpuTarget {
  std::string name; // "x86-64-v4"

  // What LLVM is told. `llvmFeatures` spells out everything that `llvmCpu` does not contain.
  std::string llvmTriple = "x86_64-unknown-linux-gnu";
  std::string llvmCpu;
  std::string llvmFeatures;

  // Features that a host must have, by the names of /proc/cpuinfo: whatever LLVM may use of what the runtime can check.
  // Written into the artifact and checked at load.
  std::vector<std::string> requiredFeatures;

  int64_t vectorBits = 0;
  int64_t vectorRegisters = 0;
  bool hasBf16Dot = false;   // vdpbf16ps, and it is worth using
  bool hasVnni = false;      // vpdpbusd
  bool hasInt8Tiles = false; // tdpbssd
  bool hasBf16Tiles = false; // tdpbf16ps
  // Whether bf16 caches hold pairs side by side, and attention rounds and adds as a product of such pairs does; and how
  // many elements such a product adds up apart, 0 where it adds pair after pair.
  bool cachePairs = false;
  int64_t cacheBlock = 0;

  // Per core; the schedule's row blocks come from them.
  int64_t l1Bytes = 0;
  int64_t l2Bytes = 0;

  // Bytes ahead of a weight stream that one-row kernels prefetch; 0 where the hardware does better alone.
  int64_t prefetchBytes = 0;

  // The same for matrix tiles of few rows.
  int64_t tilePrefetchBytes = 0;

  // The same for kernels of many rows, whose weights come from the second-level cache.
  int64_t cachePrefetchBytes = 0;

  int64_t lanes() const { return vectorBits / 32; }
  bool needs(const std::string &feature) const;
};

// The targets that code can be generated for, best last. Pointers live as long as the program.
const std::vector<CpuTarget> &knownCpuTargets();

// A target by name; "host" is the best known one whose features this machine has.
StatusOr<CpuTarget> findCpuTarget(const std::string &name);

CpuTarget makeX86_64V3();
CpuTarget makeX86_64V4Vnni();
CpuTarget makeX86_64V4();
CpuTarget makeX86_64V4Amx();

} // namespace llmc
