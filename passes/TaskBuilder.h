// Builds one tile.task and its launch: arguments appear when they are first asked for, arithmetic is spelled out here.
#pragma once
#include "dialects/tile/TileDialect.h"

namespace llmc {

class TaskBuilder {
public:
  /// The task goes in front of `function`, its launch to the insertion point of `launches`.
  TaskBuilder(mlir::func::FuncOp function, mlir::OpBuilder &launches, mlir::StringRef name, tile::Space space,
              mlir::Location location);

  /// The task's argument for a value of the launching function: rows, weight, cache or batch.
  mlir::Value argument(mlir::Value outer);
  mlir::Value row() { return task_.getRow(); }
  mlir::Value column() { return task_.getColumn(); }
  /// Where the body grows; restore the insertion point after working inside a tile.when.
  mlir::OpBuilder &body() { return body_; }
  mlir::Location location() { return location_; }

  mlir::Value index(int64_t value);
  /// column * width - first * width: where column tile `column` of a value that starts at tile `first` begins.
  mlir::Value columnStart(int64_t width, int64_t first);
  /// Of indices, by a constant.
  mlir::Value multiply(mlir::Value index, int64_t by);
  mlir::Value divide(mlir::Value index, int64_t by);
  mlir::Value load(mlir::Value outerRows, mlir::Value row, mlir::Value at, int64_t size);
  void store(mlir::Value value, mlir::Value outerRows, mlir::Value at);
  mlir::Value loadVector(mlir::Value outerWeight, mlir::Value at, int64_t size);
  mlir::Value slice(mlir::Value input, int64_t offset, int64_t size);
  mlir::Value concat(mlir::ValueRange inputs);

  mlir::Value constant(double value, int64_t size);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value multiply(mlir::Value a, mlir::Value b);
  mlir::Value scale(mlir::Value a, double factor);
  mlir::Value rmsNorm(mlir::Value input, mlir::Value gain, double eps);
  mlir::Value rope(mlir::Value head, mlir::Value table);
  mlir::Value softcap(mlir::Value input, double cap);
  mlir::Value gatedActivation(llm::Activation activation, mlir::Value gate, mlir::Value up);
  mlir::Value ropeTable(mlir::Value position, mlir::ArrayRef<float> frequencies, double magnitude);
  /// The product of a whole row with this column's tile of `outerWeight`; rounds the input as the form asks.
  mlir::Value dot(mlir::Value input, mlir::Value outerWeight);

  /// Sets the grid, makes the launch.
  void finish(int64_t columns, bool recording = false);

private:
  int64_t sizeOf(mlir::Value tile) { return mlir::cast<mlir::RankedTensorType>(tile.getType()).getDimSize(0); }
  mlir::RankedTensorType tileType(int64_t size, mlir::Type element = {});

  mlir::Location location_;
  mlir::OpBuilder &launches_;
  mlir::OpBuilder body_;
  tile::TaskOp task_;
  llvm::SmallVector<mlir::Value> operands_;
};

} // namespace llmc
