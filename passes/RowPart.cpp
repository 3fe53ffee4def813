#include "passes/RowPart.h"

using namespace mlir;

namespace llmc {

Value RowPart::firstHead(TaskBuilder &task) const {
  if (!range_)
    return task.index(head_);
  if (cast<RankedTensorType>(type_).getRank() == 2)
    return task.index(0);
  Value column = task.columnFrom(range_->first);
  if (tilesOfHead() == 1)
    return column;
  return arith::DivUIOp::create(task.body(), task.location(), column, task.index(tilesOfHead()));
}

Value RowPart::firstChannel(TaskBuilder &task) const {
  if (!range_ || tilesOfHead() == 1)
    return task.index(0);
  if (cast<RankedTensorType>(type_).getRank() == 2)
    return task.columnStart(width_, range_->first);
  Value column = task.columnFrom(range_->first);
  Value inHead = arith::RemUIOp::create(task.body(), task.location(), column, task.index(tilesOfHead()));
  return arith::MulIOp::create(task.body(), task.location(), inHead, task.index(width_));
}

Value RowPart::vector(TaskBuilder &task, Value weight) const {
  int64_t elements = cast<llm::WeightType>(weight.getType()).getShape()[0];
  if (elements == 1)
    return task.repeat(task.loadVector(weight, task.index(0), 1), size());
  if (elements == llm::elementsPerRow(type_)) {
    Value at = range_ ? task.columnStart(width_, range_->first) : task.index(head_ * width_);
    return task.loadVector(weight, at, size());
  }
  return task.loadVector(weight, firstChannel(task), width_);
}

Value RowPart::vectorOfHeads(TaskBuilder &task, Value weight) const {
  int64_t elements = cast<llm::WeightType>(weight.getType()).getShape()[0];
  Value at = elements == 1 ? task.index(0) : firstHead(task);
  return task.repeat(task.loadVector(weight, at, elements == 1 ? 1 : heads_), size());
}

} // namespace llmc
