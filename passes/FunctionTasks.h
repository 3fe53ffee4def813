// One function of the llm module as launches of tile tasks. TaskGrouping decides what shares a task, TaskBuilder spells
// the arithmetic; here values become buffers, and functions get their results as operands. A file per group of ops:
// RowTasks.cpp, ProductTasks.cpp, ExpertTasks.cpp, AttentionTasks.cpp, RecurrentTasks.cpp, CollectiveTasks.cpp; what belongs
// to no group is in FunctionTasks.cpp.
#pragma once
#include "dialects/llm/LlmShapes.h"
#include "passes/RowPart.h"

namespace llmc {

/// Turns one function into its tile form.
class FunctionTasks {
public:
  FunctionTasks(mlir::func::FuncOp function, const TaskGrouping &grouping, bool isStep)
      : old_(function), grouping_(grouping), isStep_(isStep), launches_(function.getContext()) {}
  mlir::LogicalResult convert();

private:
  mlir::LogicalResult convertOp(mlir::Operation &op);
  mlir::LogicalResult convertProduct(const ProductTask &task);
  mlir::LogicalResult convertAttention(llm::AttentionOp op);
  mlir::LogicalResult convertSelectPositions(llm::SelectPositionsOp op);
  mlir::LogicalResult convertAppend(llm::KvAppendOp op);
  mlir::LogicalResult convertLinearAttention(llm::LinearAttentionOp op);
  mlir::LogicalResult convertShortConv(llm::ShortConvOp op);
  mlir::LogicalResult convertWindowPool(llm::WindowPoolOp op);
  mlir::LogicalResult convertRouter(llm::RouterOp op);
  mlir::LogicalResult convertRecord(llm::RecordOp op);
  mlir::LogicalResult convertCollective(mlir::Operation &op);
  mlir::LogicalResult convertCall(mlir::func::CallOp op);
  void convertUse(mlir::Operation *use);
  mlir::LogicalResult convertRowOp(mlir::Operation &op);
  mlir::LogicalResult convertReturn(mlir::func::ReturnOp op);

  // Column tiles of values inside a product's task.
  mlir::Value emitTile(TaskBuilder &task, const ProductTask &product, mlir::Value value, mlir::Value dot,
                       llvm::DenseMap<mlir::Value, mlir::Value> &known);
  mlir::Value emitProduct(TaskBuilder &task, const ProductTask &product);
  mlir::Value emitStackedProduct(TaskBuilder &task, const ProductTask &product);
  mlir::Value emitExpert(TaskBuilder &task, llm::ExpertLinearOp op, mlir::Value slot);
  mlir::Value emitBias(TaskBuilder &task, const ProductTask &product, mlir::Value bias);
  void emitAppend(TaskBuilder &task, llm::KvAppendOp op, tile::KvHalf half, mlir::Value tile, mlir::Value head);
  // A buffer for what parts of a row find, as an argument of the task.
  mlir::Value partialsFor(TaskBuilder &task, int64_t channels);
  // Whole rows, heads side by side.
  mlir::Value emitRow(TaskBuilder &task, mlir::Value value, mlir::Value row);
  // The groups of ops that rows consist of; null where `op` is of another group.
  mlir::Value emitMoved(TaskBuilder &task, mlir::Operation *op, mlir::Value row);
  mlir::Value emitSource(TaskBuilder &task, mlir::Operation *op, mlir::Value row);
  // An op that can be computed for a part of a row from the same part of its operands.
  mlir::Value emitPart(TaskBuilder &task, mlir::Operation *op, const RowPart &part,
                       llvm::function_ref<mlir::Value(mlir::Value)> operand);
  mlir::Value emitFactors(TaskBuilder &task, mlir::Value factors, const RowPart &part);
  mlir::Value emitBatchFact(TaskBuilder &task, tile::BatchFact fact, mlir::Value batch, mlir::Value row);

  tile::Space spaceOf(mlir::Value value);
  // What an op says of its results, and users of a value that says nothing.
  std::optional<tile::Space> spaceFromOperands(mlir::Value value);
  std::optional<tile::Space> spaceFromUsers(mlir::Value value);
  mlir::Value bufferFor(mlir::Value value);
  TaskBuilder newTask(tile::Space space, mlir::Location location) {
    rows_.clear();
    return TaskBuilder(old_, launches_, (old_.getSymName() + "." + llvm::Twine(numTasks_++)).str(), space, location);
  }
  tile::RowsType rowsType(mlir::Type tensor) {
    return tile::RowsType::get(old_.getContext(), llm::elementsPerRow(tensor));
  }

  mlir::func::FuncOp old_, new_;
  const TaskGrouping &grouping_;
  bool isStep_;
  mlir::OpBuilder launches_;
  int numTasks_ = 0;
  // Of the task that is being made: (value, row) -> its whole row.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, mlir::Value> rows_;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers_; // root value -> !tile.rows
  llvm::DenseMap<mlir::Value, mlir::Value> others_;  // weights, states, the batch
};

} // namespace llmc
