// The phases of a compilation, in order: what `--dump-phases` writes and `--stop-after` names.
#pragma once
#include "lib/sharding/Grid.h"
#include "lib/target/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <functional>
#include <string>
#include <vector>

namespace llmc {

struct PhaseOptions {
  std::string weights = "stored";    // stored, f32, bf16, int8, int4
  std::string activations = "int16"; // int16 or int8: codes of what multiplies quantised weights
  std::string kvElement = "bf16";    // f32, bf16, f16 or int8
  int64_t kvPage = 64;               // positions
  std::string target = "host";
  int64_t maxTokens = 512; // rows of the largest step
  sharding::Grid grid = {};
  int64_t rank = 0; // whose program it is
  int64_t rowsPerBlock = sharding::rowsPerBlock;
  // Names of phases that are optimisations and shall not run: "fuse", "overlap".
  std::vector<std::string> without;
};

/// Names in order: import, verify, shard, fuse, forms, pages, tasks, overlap, schedule, memory.
std::vector<std::string> phaseNames();

/// Runs the phases over a module as the importer made it. After each one (also after "import", which runs nothing)
/// calls `after(name, module)`; stops early when that fails or when the phase is `stopAfter`. The module verifies after
/// each.
mlir::LogicalResult runPhases(mlir::ModuleOp module, const PhaseOptions &options, const std::string &stopAfter,
                              const std::function<mlir::LogicalResult(const std::string &, mlir::ModuleOp)> &after);

/// The phase `shard` alone.
mlir::LogicalResult shardModel(mlir::ModuleOp module, const PhaseOptions &options);

} // namespace llmc
