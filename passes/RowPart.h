// The part of a value's row that one tile of a task holds, and where it lies.
#pragma once
#include "dialects/llm/LlmShapes.h"
#include "passes/TaskBuilder.h"
#include "passes/TaskGrouping.h"

namespace llmc {

/// Whole heads of a row, or a column tile of a product: a head, or channels of one. Rows without heads have one.
class RowPart {
public:
  /// Of row `row` of a value of type `type`.
  static RowPart wholeRow(mlir::Type type, mlir::Value row) {
    return RowPart(type, row, llm::elementsPerRow(type) / llm::channelsOf(type), llm::channelsOf(type));
  }
  static RowPart column(mlir::Type type, mlir::Value row, const ColumnRange &range) {
    RowPart part(type, row, 1, range.width);
    part.range_ = range;
    return part;
  }
  /// Head `index` of a whole row.
  RowPart head(int64_t index) const {
    RowPart part(type_, row_, 1, width_);
    part.head_ = index;
    return part;
  }

  mlir::Value row() const { return row_; }
  bool isColumn() const { return range_.has_value(); }
  int64_t heads() const { return heads_; }
  /// Elements of each head.
  int64_t width() const { return width_; }
  int64_t size() const { return heads_ * width_; }

  /// The part of a stored vector that has an element for every element of a row, for every channel, or one.
  mlir::Value vector(TaskBuilder &task, mlir::Value weight) const;
  /// The part of a stored vector that has an element for every head, or one.
  mlir::Value vectorOfHeads(TaskBuilder &task, mlir::Value weight) const;
  /// The index of its first head, and of its first element in that head.
  mlir::Value firstHead(TaskBuilder &task) const;
  mlir::Value firstChannel(TaskBuilder &task) const;

private:
  RowPart(mlir::Type type, mlir::Value row, int64_t heads, int64_t width)
      : type_(type), row_(row), heads_(heads), width_(width) {}
  int64_t tilesOfHead() const { return llm::channelsOf(type_) / width_; }

  mlir::Type type_;
  mlir::Value row_;
  int64_t heads_, width_;
  std::optional<ColumnRange> range_;
  int64_t head_ = 0;
};

} // namespace llmc
