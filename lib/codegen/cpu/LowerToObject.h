// From emitted MLIR (scf, arith, math, vector, llvm) to an object file, in process.
#pragma once
#include "lib/target/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>

namespace llmc::cpu {

struct LowerOptions {
  bool emulate = false; // compile for the plainest target: the expansions run anywhere
  std::string dumpPath; // "" or the stem of the .ll and .s files to leave behind
};

// The target whose instructions objects hold: emulated kernels use nothing beyond the plainest one, whatever they were
// scheduled for.
const CpuTarget &machineTarget(const CpuTarget &target, bool emulate);

// A unit between MLIR and machine code: an LLVM module in a context of its own.
class LlvmUnit;
struct LlvmUnitDeleter {
  void operator()(LlvmUnit *unit) const;
};
using OwnedLlvmUnit = std::unique_ptr<LlvmUnit, LlvmUnitDeleter>;

// Consumes the module. Not to be called from two threads at a time on one context: running passes may load dialects.
mlir::FailureOr<OwnedLlvmUnit> lowerToLlvm(mlir::ModuleOp module);

// The bytes of an ELF object. Units are independent of each other: any threads will do.
StatusOr<std::string> emitObject(LlvmUnit &unit, const CpuTarget &target, const LowerOptions &options);

} // namespace llmc::cpu
