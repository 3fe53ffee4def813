// Rules of the tile ops that carry a recurrent state from row to row.
#include "lib/reference/TaskCompiler.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

namespace {

bool isInside(Operation *op, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  if (row >= 0 && row < rows && column >= 0 && column < columns)
    return true;
  op->emitOpError() << "works on row " << row << " of " << rows << " and column tile " << column << " of " << columns;
  return false;
}

} // namespace

std::function<StateView(int64_t)> TaskCompiler::recurrentState(Value value) {
  TaskArgument *argument = this->argument(value);
  StepMemory *memory = &task.memory;
  return [=, type = cast<llm::RecurrentType>(value.getType())](int64_t row) {
    const llmc_batch &batch = *memory->batch;
    const int64_t slot = batch.state_slots[batch.token_sequence[row]];
    uint8_t *start = memory->state + slot * memory->stateBytes + argument->stateOffset;
    return StateView{type, reinterpret_cast<float *>(start)};
  };
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::ConvolveOp op) {
  TaskArgument *weight = argument(op.getWeight());
  FailureOr<PackedLayout> packed = layout(op, op.getWeight().getType());
  if (failed(packed))
    return failure();
  Slot in = slot(op.getInput()), column = slot(op.getColumn()), row = slot(op.getRow()), out = slot(op);
  StepMemory *memory = &task.memory;
  return Instruction([=, packed = *packed, state = recurrentState(op.getState())] {
    const int64_t tiles = packed.numTiles(), tileBytes = static_cast<int64_t>(*packed.tileBytes().value());
    if (!isInside(op, *row.integers, memory->batch->num_tokens, *column.integers, tiles))
      return false;
    StateView view = state(*row.integers);
    if (memory->batch->positions[*row.integers] == 0)
      view.clear(*column.integers, tiles);
    convolve(in.f(), weight->weight + *column.integers * tileBytes, packed, *column.integers, view, out.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::RecurOp op) {
  Slot query = slot(op.getQuery()), key = slot(op.getKey()), value = slot(op.getValue());
  Slot decay = op.getDecay() ? slot(op.getDecay()) : Slot(), beta = op.getBeta() ? slot(op.getBeta()) : Slot();
  Slot column = slot(op.getColumn()), row = slot(op.getRow()), out = slot(op);
  StepMemory *memory = &task.memory;
  llm::RecurrentType type = op.getState().getType();
  return Instruction(
      [=, tiles = type.getHeads() * type.getValues() / value.size, state = recurrentState(op.getState())] {
        if (!isInside(op, *row.integers, memory->batch->num_tokens, *column.integers, tiles))
          return false;
        StateView view = state(*row.integers);
        if (memory->batch->positions[*row.integers] == 0)
          view.clear(*column.integers, tiles);
        recur({query.f(), key.f(), value.f(), decay.f(), beta.f()}, *column.integers, view, out.f());
        return true;
      });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::PoolOp op) {
  Slot value = slot(op.getValue()), gate = slot(op.getGate());
  Slot column = slot(op.getColumn()), row = slot(op.getRow()), out = slot(op);
  StepMemory *memory = &task.memory;
  return Instruction([=, tiles = op.getState().getType().blocksPerHead(), window = static_cast<int64_t>(op.getWindow()),
                      state = recurrentState(op.getState())] {
    if (!isInside(op, *row.integers, memory->batch->num_tokens, *column.integers, tiles))
      return false;
    StateView view = state(*row.integers);
    const int64_t position = memory->batch->positions[*row.integers];
    if (position == 0)
      view.clear(*column.integers, tiles);
    pool(value.f(), gate.f(), position % window == 0, *column.integers, view, out.f());
    return true;
  });
}
