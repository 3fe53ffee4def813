// Which ops of a function share a task: the decisions of task formation, without building anything.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/MapVector.h"

namespace llmc {

/// A value inside a product's task: it fills column tiles first .. first + tiles - 1, `width` channels in each.
struct ColumnRange {
  int64_t first = 0, tiles = 0, width = 0;
};

/// One matrix product with what is inlined behind it.
struct ProductTask {
  mlir::Operation *anchor = nullptr; // a linear, fused linear, expert linear or head linear
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

  /// Whether `op` is a product with a stack of matrices, of which every slot or head of a row takes one.
  static bool hasStack(mlir::Operation *op) { return mlir::isa<llm::ExpertLinearOp, llm::HeadLinearOp>(op); }
  /// Whether `op` exchanges rows with other ranks, from buffer to buffer.
  static bool isCollective(mlir::Operation *op) {
    return mlir::isa<mlir::shard::AllReduceOp, llm::AllGatherOp, llm::SendOp, llm::ReceiveOp>(op);
  }

  /// Splitting and merging heads moves nothing: the value behind such aliases.
  static mlir::Value root(mlir::Value value);
  /// Who reads `value` or an alias of it.
  static llvm::SmallVector<mlir::OpOperand *> usesOf(mlir::Value value);

private:
  void group(mlir::Operation *anchor);
  bool absorb(mlir::Operation *op, ProductTask &task);
  const ColumnRange *rangeBehind(mlir::Operation *op, const ProductTask &task) const;
  bool isAvailable(mlir::Value value, const ProductTask &task) const;

  /// Who reads a row: whether it must be a buffer for them, else the one op in whose task it is computed, if any.
  struct Reading {
    bool needsBuffer;
    mlir::Operation *reader;
  };
  static bool readsMemory(mlir::Operation *op);
  const Reading &readingOf(mlir::Value value) const;
  Reading read(mlir::Value value) const;
  mlir::Operation *readerOf(mlir::OpOperand *use) const;

  mutable llvm::DenseMap<mlir::Value, std::unique_ptr<Reading>> readings_;
  llvm::SmallVector<ProductTask> products_;
  llvm::DenseMap<mlir::Operation *, size_t> taskOf_; // anchors and absorbed ops
};

} // namespace llmc
