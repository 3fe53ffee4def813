// What a task costs, from its body: the counts that the dispatch manifest carries, so that tools without MLIR can set a
// measured time against what the machine could do.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/artifact/Dispatch.h"

namespace llmc::cpu {

// Of one launch. Padding counts nothing: what is counted is what the task must do, not what its kernel does.
KernelCost costOf(tile::TaskOp task);

// For every task that @step launches, itself or through the layer functions it calls: the layer of each launch in order
// of the step, -1 outside of them. Launches that only record are left out, and those of all blocks of rows but the first.
llvm::DenseMap<mlir::Operation *, std::vector<int32_t>> layersOfLaunches(mlir::ModuleOp program);

} // namespace llmc::cpu
