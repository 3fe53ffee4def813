// From emitted MLIR (scf, arith, math, vector, llvm) to an object file, in process.
#pragma once
#include "lib/target/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace llmc::cpu {

struct LowerOptions {
  bool emulate = false; // compile for the plainest target: the expansions run anywhere
  std::string dumpPath; // "" or the stem of the .ll and .s files to leave behind
};

// The bytes of an ELF object. Consumes the module.
mlir::FailureOr<std::string> lowerToObject(mlir::ModuleOp module, const CpuTarget &target, const LowerOptions &options);

} // namespace llmc::cpu
