// Builds one tile.task and its launch: arguments appear when they are first asked for. TaskFormulas.cpp spells the
// formulas out.
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
  /// The column, counted from tile `first`.
  mlir::Value columnFrom(int64_t first);
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
  mlir::Value constants(mlir::ArrayRef<float> values);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value multiply(mlir::Value a, mlir::Value b);
  mlir::Value scale(mlir::Value a, double factor);
  mlir::Value subtract(mlir::Value a, mlir::Value b);
  mlir::Value divide(mlir::Value a, mlir::Value b);
  mlir::Value maximum(mlir::Value a, mlir::Value b);
  mlir::Value minimum(mlir::Value a, mlir::Value b);
  /// Each element as often in a row as makes `size` elements.
  mlir::Value repeat(mlir::Value input, int64_t size);
  mlir::Value splat(mlir::Value number, int64_t size);
  mlir::Value number(double value);
  mlir::Value reduce(tile::Reduction reduction, mlir::Value input);

  /// A null gain is 1, a null offset 0.
  mlir::Value gainAndOffset(mlir::Value input, mlir::Value gain, mlir::Value offset);
  mlir::Value rmsNorm(mlir::Value input, mlir::Value gain, double eps);
  mlir::Value layerNorm(mlir::Value input, mlir::Value gain, mlir::Value offset, double eps);
  mlir::Value softmax(mlir::Value input);
  /// Turns the channels of a head that `op` says by the angles of `table`.
  mlir::Value rope(llm::RopeOp op, mlir::Value head, mlir::Value table);
  mlir::Value softcap(mlir::Value input, double cap);
  mlir::Value activation(llm::Activation activation, mlir::Value input);
  mlir::Value xielu(mlir::Value input, mlir::Value sides, double beta, double eps);
  mlir::Value ropeTable(mlir::Value position, mlir::ArrayRef<float> frequencies, double magnitude);
  /// 1 + scale * log(1 + (position + offset) / period), one element.
  mlir::Value positionScale(mlir::Value position, llm::PositionScaleOp op);
  /// The product of a whole row with tile `column` of `outerWeight`, of its matrix `matrix` where it is a stack; rounds
  /// the input as the form asks.
  mlir::Value dot(mlir::Value input, mlir::Value outerWeight, mlir::Value column, mlir::Value matrix = {});

  /// Sets the grid, makes the launch.
  void finish(int64_t columns, bool recording = false);

  int64_t sizeOf(mlir::Value tile) { return mlir::cast<mlir::RankedTensorType>(tile.getType()).getDimSize(0); }

private:
  mlir::Value meanOf(mlir::Value input);
  mlir::Value inverseRoot(mlir::Value square, double eps, int64_t size);
  mlir::Value softplus(mlir::Value input);
  mlir::Value sigmoidTimes(mlir::Value factor, mlir::Value input);
  mlir::Value numberOf(mlir::Value index);
  mlir::RankedTensorType tileType(int64_t size, mlir::Type element = {});

  mlir::Location location_;
  mlir::OpBuilder &launches_;
  mlir::OpBuilder body_;
  tile::TaskOp task_;
  llvm::SmallVector<mlir::Value> operands_;
};

} // namespace llmc
