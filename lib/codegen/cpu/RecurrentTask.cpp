// A unit of work is one column tile of one sequence: a worker takes all its rows in order, with the state in cache.
#include "lib/codegen/cpu/RecurrentTask.h"
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/RecurrentKernels.h"
#include "runtime/llmc_abi.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }
int64_t wholeVectors(int64_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

class RecurrentTask {
public:
  RecurrentTask(KernelBuilder &kernel, TaskContext &task, Operation *op, Value state)
      : k(kernel), task(task), op(op), state(state), columns(static_cast<int64_t>(task.task.getColumns())),
        tileBytes(cast<llm::RecurrentType>(state.getType()).bytes() / columns) {}
  LogicalResult emit();

private:
  void emitUnit(Value sequence, Value column);
  void clear(Value pointer);
  void emitRow(Value row, Value column, Value pointer);
  // The tile in memory, padded with zeros; null for an operand that the op lacks.
  Value inMemory(RowProgram &program, Value tile);
  Value arrayOf(int64_t field, Value index) {
    return k.loadInt(k.at(k.load(k.pointerType, task.batch, field), k.mul(index, 4)));
  }

  KernelBuilder &k;
  TaskContext &task;
  Operation *op;
  Value state;
  int64_t columns, tileBytes; // of the state, per column tile
  bool ok = true;
};

// Units are dealt out in turn, over the bounds of sequences: no worker has two more than another.
LogicalResult RecurrentTask::emit() {
  Value worker = k.loadInt(task.context, offsetof(llmc_step_context, worker));
  Value workers = k.loadInt(task.context, offsetof(llmc_step_context, num_workers));
  Value sequences = k.loadInt(task.batch, offsetof(llmc_batch, num_sequences));
  k.loop(k.i64(0), sequences, 1, ValueRange{worker}, [&](Value sequence, ValueRange first) {
    auto loop = scf::ForOp::create(k.b, first[0], k.i64(columns), workers);
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPoint(loop.getBody()->getTerminator());
      emitUnit(sequence, loop.getInductionVar());
    }
    // first - columns modulo workers, from 0.
    Value past = k.rem(k.i64(columns), workers);
    return SmallVector<Value>{k.rem(k.add(k.sub(first[0], past), workers), workers)};
  });
  return success(ok);
}

void RecurrentTask::clear(Value pointer) {
  k.loop(k.i64(0), k.i64(tileBytes), 64, [&](Value at) { k.store(k.splat(0.0f), k.at(pointer, at)); });
}

void RecurrentTask::emitUnit(Value sequence, Value column) {
  Value slot = arrayOf(offsetof(llmc_batch, state_slots), sequence);
  Value from = arrayOf(offsetof(llmc_batch, query_start), sequence);
  Value to = arrayOf(offsetof(llmc_batch, query_start), k.add(sequence, 1));
  Value pointer = k.at(task.operands.lookup(state), k.add(k.mul(slot, task.plan.stateBytes), k.mul(column, tileBytes)));
  Value length = arrayOf(offsetof(llmc_batch, length), sequence);
  k.when(k.equal(length, k.sub(to, from)), [&] { clear(pointer); });
  k.loop(from, to, 1, [&](Value row) { emitRow(row, column, pointer); });
}

Value RecurrentTask::inMemory(RowProgram &program, Value tile) {
  if (!tile)
    return {};
  Value buffer = k.allocate(4 * (wholeVectors(sizeOf(tile)) + kLanes));
  program.evaluateInto(tile, buffer, k.f32Type, wholeVectors(sizeOf(tile)));
  return buffer;
}

void RecurrentTask::emitRow(Value row, Value column, Value pointer) {
  RowProgram program(k, task, row, column);
  Value result = k.allocate(4 * wholeVectors(sizeOf(op->getResult(0))));
  if (auto recur = dyn_cast<tile::RecurOp>(op)) {
    RecurOperands operands;
    operands.query = inMemory(program, recur.getQuery());
    operands.key = inMemory(program, recur.getKey());
    operands.value = inMemory(program, recur.getValue());
    operands.decay = inMemory(program, recur.getDecay());
    operands.beta = inMemory(program, recur.getBeta());
    operands.result = result;
    emitRecurRow(k, recur, operands, pointer);
  } else if (auto pool = dyn_cast<tile::PoolOp>(op)) {
    Value begins =
        k.equal(k.rem(arrayOf(offsetof(llmc_batch, positions), row), static_cast<int64_t>(pool.getWindow())), k.i64(0));
    Value value = inMemory(program, pool.getValue()), gate = inMemory(program, pool.getGate());
    emitPoolRow(k, pool, value, gate, begins, pointer, result);
  } else {
    auto convolve = cast<tile::ConvolveOp>(op);
    StatusOr<PackedLayout> layout = layoutOf(convolve.getWeight().getType());
    Value weight = k.at(task.operands.lookup(convolve.getWeight()), k.mul(column, tileBytesOf(*layout)));
    emitConvolveRow(k, convolve, inMemory(program, convolve.getInput()), weight, pointer, result);
  }
  program.bindMemory(op->getResult(0), result);
  ok &= !program.failed() && succeeded(program.emitBlock(task.task.getBody().front()));
}

} // namespace

LogicalResult llmc::cpu::emitRecurrentTask(KernelBuilder &kernel, TaskContext &task) {
  SmallVector<Operation *> ops;
  task.task.walk([&](Operation *op) {
    if (isa<tile::RecurOp, tile::ConvolveOp, tile::PoolOp>(op))
      ops.push_back(op);
  });
  Operation *op = ops.front();
  auto recur = dyn_cast<tile::RecurOp>(op);
  Value column, row, state;
  llvm::TypeSwitch<Operation *>(op).Case<tile::RecurOp, tile::ConvolveOp, tile::PoolOp>([&](auto known) {
    column = known.getColumn();
    row = known.getRow();
    state = known.getState();
  });
  auto type = cast<llm::RecurrentType>(state.getType());
  if (ops.size() != 1 || op->getParentOp() != task.task.getOperation() || task.task.getSpace() != tile::Space::Rows ||
      column != task.task.getColumn() || row != task.task.getRow())
    return task.task.emitOpError() << "holds " << ops.size()
                                   << " ops with a state, expected one, on the task's own row and column, over all "
                                      "rows and outside of tile.when";
  int64_t tiles = recur ? type.getHeads() * type.getValues() / sizeOf(recur.getValue()) : type.blocksPerHead();
  if (static_cast<int64_t>(task.task.getColumns()) != tiles)
    return task.task.emitOpError() << "has " << task.task.getColumns() << " column tiles, but " << type << " has "
                                   << tiles;
  if (task.plan.stateBytes < type.bytes())
    return op->emitOpError() << "works on " << type << ", which takes " << type.bytes() << " bytes, but a slot has "
                             << task.plan.stateBytes << " (llmc.state_bytes); run llmc-plan-memory first";
  if (auto convolve = dyn_cast<tile::ConvolveOp>(op))
    if (StatusOr<PackedLayout> layout = layoutOf(convolve.getWeight().getType()); !layout.ok())
      return op->emitOpError() << "reads a weight that cannot be addressed: " << layout.status().message();
  return RecurrentTask(kernel, task, op, state).emit();
}
