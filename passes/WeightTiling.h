// Which column tiles a packed weight gets: what its product wants, agreed on by symbols, uses and functions.
#pragma once
#include "passes/LayerCalls.h"
#include "passes/TaskGrouping.h"

namespace llmc {

/// Gives every packed weight its tiles, in symbols, uses and functions.
class WeightTiling {
public:
  WeightTiling(mlir::ModuleOp module, const llvm::MapVector<mlir::func::FuncOp, TaskGrouping> &groupings);
  mlir::LogicalResult apply();

private:
  mlir::LogicalResult require(mlir::Value weight, int64_t tile, int64_t interleave);
  mlir::LogicalResult requireSymbol(llm::UseWeightOp use, int64_t tile, int64_t interleave);

  mlir::ModuleOp module_;
  const llvm::MapVector<mlir::func::FuncOp, TaskGrouping> &groupings_;
  LayerCalls calls_;
  mlir::SymbolTable symbols_;
};

} // namespace llmc
