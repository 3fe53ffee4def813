// Ops that treat every row alone: inlined where they are read, or a task of one column.
#include "passes/FunctionTasks.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;

Value FunctionTasks::emitPerHead(TaskBuilder &task, Type type, Value row, llvm::function_ref<Value(Value)> perHead) {
  SmallVector<Value> heads;
  int64_t size = llm::channelsOf(type);
  for (int64_t at = 0; at < llm::elementsPerRow(type); at += size)
    heads.push_back(perHead(task.slice(row, at, size)));
  return task.concat(heads);
}

Value FunctionTasks::emitRow(TaskBuilder &task, Value value, Value row) {
  value = TaskGrouping::root(value);
  int64_t size = llm::elementsPerRow(value.getType());
  if (Value buffer = buffers_.lookup(value))
    return task.load(buffer, row, task.index(0), size);
  auto batchFact = [&](tile::BatchFact fact, Value batch) -> Value {
    return tile::BatchOp::create(task.body(), task.location(), task.body().getIndexType(),
                                 tile::BatchFactAttr::get(old_.getContext(), fact), task.argument(others_.at(batch)),
                                 row);
  };
  return llvm::TypeSwitch<Operation *, Value>(value.getDefiningOp())
      .Case([&](llm::EmbeddingOp op) {
        Value token = batchFact(tile::BatchFact::Token, op.getBatch());
        Value gathered = tile::GatherOp::create(task.body(), task.location(),
                                                RankedTensorType::get({size}, task.body().getF32Type()),
                                                task.argument(others_.at(op.getWeight())), token);
        double scale = op.getScale().convertToFloat();
        return scale == 1.0 ? gathered : task.scale(gathered, scale);
      })
      .Case([&](llm::RopeTableOp op) {
        return task.ropeTable(batchFact(tile::BatchFact::Position, op.getBatch()), op.getFrequencies(),
                              op.getMagnitude().convertToFloat());
      })
      .Case([&](llm::SelectRowsOp op) {
        return emitRow(task, op.getInput(), batchFact(tile::BatchFact::LogitRow, op.getBatch()));
      })
      .Case([&](llm::RmsNormOp op) {
        int64_t channels = llm::channelsOf(op.getType());
        Value gain = task.loadVector(others_.at(op.getWeight()), task.index(0), channels);
        return emitPerHead(task, RankedTensorType::get({1, channels}, task.body().getF32Type()),
                           emitRow(task, op.getInput(), row),
                           [&](Value head) { return task.rmsNorm(head, gain, op.getEps().convertToFloat()); });
      })
      .Case([&](llm::RopeOp op) {
        Value table = emitRow(task, op.getTable(), row);
        return emitPerHead(task, op.getType(), emitRow(task, op.getInput(), row),
                           [&](Value head) { return task.rope(head, table); });
      })
      .Case([&](llm::AddOp op) { return task.add(emitRow(task, op.getLhs(), row), emitRow(task, op.getRhs(), row)); })
      .Case([&](llm::ScaleOp op) {
        return task.scale(emitRow(task, op.getInput(), row), op.getFactor().convertToFloat());
      })
      .Case([&](llm::SoftcapOp op) {
        return task.softcap(emitRow(task, op.getInput(), row), op.getCap().convertToFloat());
      })
      .Case([&](llm::GatedActivationOp op) {
        return task.gatedActivation(op.getActivation(), emitRow(task, op.getGate(), row),
                                    emitRow(task, op.getUp(), row));
      });
}

LogicalResult FunctionTasks::convertRowOp(Operation &op) {
  Value result = op.getResult(0);
  if (!grouping_.needsBuffer(result) && !buffers_.contains(result))
    return success(); // inlined where it is read
  TaskBuilder task = newTask(spaceOf(result), op.getLoc());
  // Computed before its buffer is known, or it would load itself.
  Value buffer = buffers_.lookup(result);
  buffers_.erase(result);
  Value row = emitRow(task, result, task.row());
  if (buffer)
    buffers_[result] = buffer;
  task.store(row, bufferFor(result), task.index(0));
  task.finish(1);
  return success();
}
