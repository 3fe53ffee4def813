// Which ops of a function share a task: the decisions of task formation, without building anything.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "llvm/ADT/MapVector.h"

namespace llmc {

/// A value inside a product's task: it fills column tiles first .. first + tiles - 1, `width` channels in each.
struct ColumnRange {
  int64_t first = 0, tiles = 0, width = 0;
};

/// One matrix product with what is inlined behind it.
struct ProductTask {
  mlir::Operation *anchor = nullptr; // llm.linear or llm.fused_linear
  int64_t tile = 0, interleave = 0, columns = 0;
  llvm::MapVector<mlir::Value, ColumnRange> inside; // results of the anchor and of absorbed ops; no aliases
  llvm::SetVector<mlir::Operation *> absorbed;
};

class TaskGrouping {
public:
  explicit TaskGrouping(mlir::func::FuncOp function);

  mlir::ArrayRef<ProductTask> products() const { return products_; }
  /// The product that `op` anchors, or null.
  const ProductTask *productOf(mlir::Operation *op) const;
  bool isAbsorbed(mlir::Operation *op) const { return taskOf_.contains(op); }
  /// Whether `value` (no alias) must exist as a buffer between tasks.
  bool needsBuffer(mlir::Value value) const;

  /// Splitting and merging heads moves nothing: the value behind such aliases.
  static mlir::Value root(mlir::Value value);
  /// Who reads `value` or an alias of it.
  static llvm::SmallVector<mlir::OpOperand *> usesOf(mlir::Value value);

private:
  void group(mlir::Operation *anchor);
  bool absorb(mlir::Operation *op, ProductTask &task);
  bool isAvailable(mlir::Value value, const ProductTask &task) const;

  llvm::SmallVector<ProductTask> products_;
  llvm::DenseMap<mlir::Operation *, size_t> taskOf_; // anchors and absorbed ops
};

} // namespace llmc
