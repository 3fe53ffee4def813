// The calls of layer functions and the symbols behind their operands: what passes over outlined layers share.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "llvm/ADT/MapVector.h"

namespace llmc {

/// Calls of every function of a module, in order.
class LayerCalls {
public:
  explicit LayerCalls(mlir::ModuleOp module);
  mlir::ArrayRef<mlir::func::CallOp> callsOf(mlir::func::FuncOp function) const;

private:
  llvm::MapVector<mlir::StringAttr, llvm::SmallVector<mlir::func::CallOp>> calls_;
};

/// Makes the function type of `function` agree with its block arguments and return operands.
void updateFunctionType(mlir::func::FuncOp function);

/// Gives every use of a weight in @step a user of its own: a tied embedding is cut in two ways.
void separateWeightUses(mlir::func::FuncOp step);

/// Erases weights and states that nothing reads, and the ops that would.
void eraseUnusedSymbols(mlir::ModuleOp module);

} // namespace llmc
