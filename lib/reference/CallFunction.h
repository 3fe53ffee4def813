// Calls between functions of a step, which both interpreters make alike.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc::reference {

constexpr int maxCallDepth = 64;

/// Runs the body of `function`: `execute(op, frame)` for each of its operations, and appends what it returns to
/// `results`. `depth` is how many calls are open.
template <typename RuntimeValue, typename Execute>
mlir::LogicalResult callFunction(mlir::func::FuncOp function, llvm::ArrayRef<RuntimeValue> arguments, int &depth,
                                 Execute execute, llvm::SmallVectorImpl<RuntimeValue> &results) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError() << "@" << function.getSymName() << " has no body of one block to interpret";
  if (depth == maxCallDepth)
    return function.emitError() << "@" << function.getSymName() << " is called " << maxCallDepth
                                << " levels deep; layers do not recurse";
  ++depth;
  llvm::DenseMap<mlir::Value, RuntimeValue> frame;
  for (auto [argument, value] : llvm::zip(function.getArguments(), arguments))
    frame[argument] = value;
  for (mlir::Operation &op : function.getBody().front().without_terminator())
    if (failed(execute(op, frame)))
      return mlir::failure();
  --depth;
  for (mlir::Value value : function.getBody().front().getTerminator()->getOperands())
    results.push_back(frame.at(value));
  return mlir::success();
}

} // namespace llmc::reference
