// From a module of tile tasks to the shared object of a step program.
#pragma once
#include "lib/target/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "runtime/artifact/Dispatch.h"
#include <string>
#include <vector>

namespace llmc::cpu {

struct CompileOptions {
  bool emulate = false;    // portable expansions instead of the target's instructions
  std::string dumpDir;     // "" or an existing folder for the MLIR, LLVM IR and assembly of every unit
  unsigned numThreads = 0; // compiling threads; 0: as many as the machine has
  std::string linker;      // "" or another ld.lld
  std::string cacheFolder; // "" or where compiled units are kept (KernelCache.h)
};

// What was chosen for one task, for the dispatch manifest.
struct KernelChoice {
  std::string task;
  std::string shape;       // "rows", "dot", "quantized_dot", "attend", "recurrent", "select"
  std::string instruction; // "vdpbf16ps", "fma", ...
  std::string reason;
  int64_t rowBlock = 0, kernelRows = 0, tileRows = 0;
  KernelCost cost;
  std::vector<int32_t> layers; // of each launch, as layersOfLaunches says
};

struct CompiledProgram {
  std::string sharedObject; // exports llmc_step and llmc_abi_version
  int64_t scratchBytes = 0; // per worker
  std::vector<std::string> requiredFeatures;
  std::vector<KernelChoice> kernels; // in the order of the module
  // A unit is a task, or the step that calls them; equal ones are compiled once.
  int64_t numUnits = 0, unitsCompiled = 0, unitsFromCache = 0;
  Status cacheFault; // why units could not be kept; the program is whole nevertheless
};

// Dialects of emitted units.
void registerUnitDialects(mlir::DialectRegistry &registry);
// Dialects that a context must have loaded before it compiles; emission makes ops of all of them.
void registerCodegenDialects(mlir::DialectRegistry &registry);

// What compileProgram would choose and the scratch it would need, without compiling: there is no shared object.
mlir::FailureOr<CompiledProgram> planProgram(mlir::ModuleOp program, const CpuTarget &target,
                                             const CompileOptions &options);

mlir::FailureOr<CompiledProgram> compileProgram(mlir::ModuleOp program, const CpuTarget &target,
                                                const CompileOptions &options);

} // namespace llmc::cpu
