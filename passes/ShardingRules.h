// The sharding rule of every operator: which dimensions of its operands and results are cut alike, which it needs
// whole.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/sharding/Dimensions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace llmc {

/// Dimensions of every value of one function. Rows `tensor<?xC>` have one (C), with heads two (H, D); a weight those of
/// its shape; a cache one (its heads); a recurrent state three (heads, keys, values).
class FunctionDimensions {
public:
  /// Rows that come into and leave a layer are whole; logits may be cut.
  explicit FunctionDimensions(mlir::func::FuncOp function);

  sharding::Dimensions &axes() { return axes_; }
  llvm::ArrayRef<sharding::Dimension> of(mlir::Value value);
  /// Of the dimensions of all elements of a row, where heads lie one behind the other.
  sharding::Dimension rowOf(mlir::Value value);
  bool isCut(mlir::Value value);
  /// `value` has these dimensions from now on.
  void set(mlir::Value value, llvm::ArrayRef<sharding::Dimension> dimensions) {
    llvm::SmallVector<sharding::Dimension> copy(dimensions);
    dimensions_[value] = std::move(copy);
  }
  /// `to` is cut as `from` is.
  void copy(mlir::Value from, mlir::Value to) {
    llvm::SmallVector<sharding::Dimension> dimensions(of(from));
    dimensions_[to] = std::move(dimensions);
  }
  /// Whether `op` computes from whole rows only, though its result may be cut: what it reads is gathered, what it makes
  /// is sliced.
  bool needsWholeRows(mlir::Operation *op) const { return wholeRows_.contains(op); }

  /// Operands that an operation reads whole though a rank may have a part of them only; `resultIsCut`: its first
  /// result.
  bool wantsWhole(mlir::OpOperand &operand, bool resultIsCut) const;

private:
  void addRule(mlir::Operation *op);
  void linkWholeRows();

  sharding::Dimensions axes_;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<sharding::Dimension>> dimensions_;
  llvm::SetVector<mlir::Operation *> wholeRows_;
};

/// Whether an operation is linear in its rows, so that it may run before terms of ranks are added up; `isSum` tells its
/// operands that are such terms.
bool takesSums(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> isSum);

} // namespace llmc
