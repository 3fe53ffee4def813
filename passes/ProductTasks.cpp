// Matrix products, with the column tiles of what is inlined behind them.
#include "passes/FunctionTasks.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;

Value FunctionTasks::emitBias(TaskBuilder &task, const ProductTask &product, Value bias) {
  Value weight = others_.at(bias);
  if (!product.interleave)
    return task.loadVector(weight, task.columnStart(product.tile, 0), product.tile);
  // Gate's part, then up's, as the tile has them.
  int64_t half = cast<llm::WeightType>(weight.getType()).getShape()[0] / 2;
  Value at = task.columnStart(product.interleave, 0);
  Value upAt = arith::AddIOp::create(task.body(), task.location(), at, task.index(half));
  return task.concat(
      {task.loadVector(weight, at, product.interleave), task.loadVector(weight, upAt, product.interleave)});
}

Value FunctionTasks::emitTile(TaskBuilder &task, const ProductTask &product, Value value, Value dot,
                              DenseMap<Value, Value> &known) {
  value = TaskGrouping::root(value);
  if (Value tile = known.lookup(value))
    return tile;
  const ColumnRange &range = product.inside.find(value)->second;
  Value tile;
  if (value.getDefiningOp() == product.anchor) {
    int64_t place = product.interleave ? cast<OpResult>(value).getResultNumber() * product.interleave : 0;
    tile = task.slice(dot, place, range.width);
  } else {
    RowPart part = RowPart::column(value.getType(), task.row(), range);
    tile = emitPart(task, value.getDefiningOp(), part, [&](Value operand) -> Value {
      Value root = TaskGrouping::root(operand);
      if (product.inside.contains(root))
        return emitTile(task, product, root, dot, known);
      return task.load(buffers_.at(root), task.row(), task.columnStart(range.width, range.first), range.width);
    });
  }
  known[value] = tile;
  return tile;
}

// The product of one column tile, with its bias.
Value FunctionTasks::emitProduct(TaskBuilder &task, const ProductTask &product) {
  Operation *anchor = product.anchor;
  if (TaskGrouping::hasStack(anchor))
    return emitStackedProduct(task, product);
  Value row = emitRow(task, anchor->getOperand(0), task.row());
  Value dot = task.dot(row, others_.at(anchor->getOperand(1)), task.column());
  return anchor->getNumOperands() > 2 ? task.add(dot, emitBias(task, product, anchor->getOperand(2))) : dot;
}

LogicalResult FunctionTasks::convertProduct(const ProductTask &product) {
  TaskBuilder task = newTask(spaceOf(TaskGrouping::root(product.anchor->getOperand(0))), product.anchor->getLoc());
  Value dot = emitProduct(task, product);
  // One part per range of columns: what is stored or appended there.
  llvm::MapVector<int64_t, SmallVector<llvm::unique_function<void(DenseMap<Value, Value> &)>>> parts;
  llvm::DenseMap<int64_t, int64_t> ends;
  auto part = [&](Value value) -> auto & {
    const ColumnRange &range = product.inside.find(TaskGrouping::root(value))->second;
    ends[range.first] = range.first + range.tiles;
    return parts[range.first];
  };
  for (auto &entry : product.inside) {
    Value value = entry.first;
    const ColumnRange &range = entry.second;
    if (!grouping_.needsBuffer(value))
      continue;
    Value buffer = bufferFor(value);
    part(value).push_back([&, value, buffer](DenseMap<Value, Value> &known) {
      Value tile = emitTile(task, product, value, dot, known);
      task.store(tile, buffer, task.columnStart(range.width, range.first));
    });
  }
  for (Operation *op : product.absorbed)
    if (auto append = dyn_cast<llm::KvAppendOp>(op))
      for (auto [half, value] :
           {std::pair(tile::KvHalf::Key, append.getKey()), std::pair(tile::KvHalf::Value, append.getValue())}) {
        if (!value) // latent
          continue;
        part(value).push_back([&, append, half, value](DenseMap<Value, Value> &known) {
          Value tile = emitTile(task, product, value, dot, known);
          const ColumnRange &range = product.inside.find(TaskGrouping::root(value))->second;
          emitAppend(task, append, half, tile, task.columnStart(1, range.first));
        });
      }
  for (auto &[first, emitters] : parts) {
    OpBuilder::InsertionGuard guard(task.body());
    auto outside = rows_; // what is emitted under a condition is not known outside of it
    if (ends[first] - first != product.columns) {
      auto when = tile::WhenOp::create(task.body(), task.location(), task.column(), first, ends[first]);
      task.body().setInsertionPointToEnd(&when.getBody().emplaceBlock());
    }
    DenseMap<Value, Value> known;
    for (auto &emit : emitters)
      emit(known);
    rows_ = std::move(outside);
  }
  task.finish(product.columns);
  return success();
}
