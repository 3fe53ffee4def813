// From emitted units, as text, to objects: each different one once, in parallel, and none that the cache has.
#pragma once
#include "lib/codegen/cpu/KernelCache.h"
#include "lib/target/CpuTarget.h"
#include <vector>

namespace llmc::cpu {

// A module of emitted MLIR. Its object is a function of the text and the target alone: that is what makes it shareable.
struct UnitText {
  std::string name; // for dumps
  std::string text;
};

struct UnitOptions {
  bool emulate = false;
  std::string dumpDir = {};     // "" or a folder for the LLVM IR and assembly; then nothing is taken from the cache
  unsigned numThreads = 0;      // 0: as many as the machine has
  std::string cacheFolder = {}; // "" or where objects are kept
};

struct UnitObjects {
  std::vector<std::string> objects; // of the different units, in the order of their first appearance
  std::vector<std::string> symbols; // per unit: what its kernel is called there; "" where it has none
  int64_t compiled = 0, fromCache = 0;
  Status cacheFault; // the cache could not be written: everything else holds nevertheless
};

// A unit's kernel is the function of this name; in the object it is called after the unit's content.
inline constexpr char kernelSymbol[] = "llmc_kernel";

StatusOr<UnitObjects> compileUnits(const std::vector<UnitText> &units, const CpuTarget &target,
                                   const UnitOptions &options);

} // namespace llmc::cpu
