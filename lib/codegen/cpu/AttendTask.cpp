// Units of attention: a block of rows with one key-value head over all it sees, or, where those are too few for the
// workers, over one span of positions; then a second round puts the spans of every row together.
#include "lib/codegen/cpu/AttendTask.h"
#include "lib/codegen/cpu/AttendKernel.h"
#include "lib/codegen/cpu/ProgramEmitter.h"
#include "runtime/llmc_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// Fewer units than this for each worker are shared unevenly; they are split where positions allow it.
constexpr int64_t kUnitsPerWorker = 8;

// The rows of one sequence in this step.
struct SequenceRows {
  Value start, rows, blocks;
  Value fromSpan, spans; // that its rows see
};

class AttendTask {
public:
  AttendTask(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule)
      : k(kernel), task(task), op(op), schedule(schedule), kernel(kernel, task, op, schedule),
        columns(static_cast<int64_t>(task.task.getColumns())),
        mayBeSplit(op.getPartials() && static_cast<int64_t>(op.getSpan()) > 0),
        stateFloats(op.getKv().getType().getHeadDim() + 2 * kLanes) {
    worker = k.loadInt(task.context, offsetof(llmc_step_context, worker));
    workers = k.loadInt(task.context, offsetof(llmc_step_context, num_workers));
  }
  LogicalResult emit();

private:
  // Calls `body(rows, dealt, slot)` for every sequence, where `dealt` units and `slot` slots of partials came before;
  // it returns how many units the sequence has.
  void forSequences(llvm::function_ref<Value(const SequenceRows &, Value, Value)> body);
  // Calls `body(index)` for this worker's of `units` units: they are dealt out in turn, since late rows see more.
  void forUnits(Value units, Value dealt, llvm::function_ref<void(Value)> body);
  Value shouldSplit();
  void emitUnit(const SequenceRows &rows, Value index, Value slot);
  void emitQueries(const AttendItem &item, Value column);
  void emitResults(Value row, Value column, Value result);
  void storePartials(const AttendItem &item, Value slot, const SequenceRows &rows, Value span);
  void combine(const SequenceRows &rows, Value index, Value slot);
  AttendState stateAt(Value slot, Value head);
  Value sequenceCount() { return k.loadInt(task.batch, offsetof(llmc_batch, num_sequences)); }
  Value inverted(Value flag) {
    return arith::XOrIOp::create(k.b, flag, arith::ConstantOp::create(k.b, k.b.getBoolAttr(true)));
  }

  KernelBuilder &k;
  TaskContext &task;
  tile::AttendOp op;
  const Schedule &schedule;
  AttendKernel kernel;
  int64_t columns;
  bool mayBeSplit;
  int64_t stateFloats; // of a query row in the partials: result, sixteen sums, maximum
  Value worker, workers, isSplit;
  Value sequence; // that forSequences is at
  bool ok = true;
};

void AttendTask::forSequences(llvm::function_ref<Value(const SequenceRows &, Value, Value)> body) {
  Value starts = k.load(k.pointerType, task.batch, offsetof(llmc_batch, query_start));
  Value lengths = k.load(k.pointerType, task.batch, offsetof(llmc_batch, length));
  Value none = k.i64(0);
  k.loop(none, sequenceCount(), 1, ValueRange{none, none}, [&](Value index, ValueRange before) -> SmallVector<Value> {
    sequence = index;
    SequenceRows rows;
    Value at = k.mul(index, 4);
    rows.start = k.loadInt(k.at(starts, at));
    rows.rows = k.sub(k.loadInt(k.at(starts, at), 4), rows.start);
    rows.blocks = k.ceilDiv(rows.rows, schedule.rowBlock);
    Value length = k.loadInt(k.at(lengths, at));
    auto [from, to] = kernel.spansOf(k.sub(length, rows.rows), k.add(length, -1));
    rows.fromSpan = from;
    rows.spans = k.sub(to, from);
    Value units = body(rows, before[0], before[1]);
    return {k.rem(k.add(before[0], units), workers), k.add(before[1], k.mul(rows.rows, rows.spans))};
  });
}

void AttendTask::forUnits(Value units, Value dealt, llvm::function_ref<void(Value)> body) {
  Value first = k.rem(k.sub(k.add(worker, k.mul(workers, dealt)), dealt), workers);
  auto loop = scf::ForOp::create(k.b, first, units, workers);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

// The same for all workers. Bits do not depend on it.
Value AttendTask::shouldSplit() {
  Value none = k.i64(0);
  Value starts = k.load(k.pointerType, task.batch, offsetof(llmc_batch, query_start));
  Value lengths = k.load(k.pointerType, task.batch, offsetof(llmc_batch, length));
  SmallVector<Value> found = k.loop(none, sequenceCount(), 1, ValueRange{none, none, none},
                                    [&](Value index, ValueRange before) -> SmallVector<Value> {
                                      Value at = k.mul(index, 4), start = k.loadInt(k.at(starts, at));
                                      Value rows = k.sub(k.loadInt(k.at(starts, at), 4), start),
                                            length = k.loadInt(k.at(lengths, at));
                                      auto [from, to] = kernel.spansOf(k.sub(length, rows), k.add(length, -1));
                                      Value spans = k.sub(to, from);
                                      return {k.add(before[0], k.mul(k.ceilDiv(rows, schedule.rowBlock), columns)),
                                              k.add(before[1], k.mul(rows, spans)), k.max(before[2], spans)};
                                    });
  Value few = k.less(found[0], k.mul(workers, kUnitsPerWorker));
  Value fits = k.less(found[1], k.i64(task.plan.maxTokens + 1));
  Value useful = arith::AndIOp::create(k.b, k.less(k.i64(1), found[2]), k.less(k.i64(1), workers));
  return arith::AndIOp::create(k.b, useful, arith::AndIOp::create(k.b, few, fits).getResult());
}

AttendState AttendTask::stateAt(Value slot, Value head) {
  Value row = k.mul(slot, 4 * task.rowStride.lookup(op.getPartials()));
  Value result = k.at(k.at(task.operands.lookup(op.getPartials()), row), k.mul(head, 4 * stateFloats));
  Value sums = k.at(result, 4 * (stateFloats - 2 * kLanes));
  return {k.at(sums, 64), sums, result};
}

void AttendTask::emitQueries(const AttendItem &item, Value column) {
  k.loop(k.i64(0), item.rows, 1, [&](Value i) {
    RowProgram program(k, task, k.add(item.firstRow, i), column);
    program.evaluateInto(op.getQuery(), kernel.queryOf(i), kernel.queryElement(), /*paddedSize=*/0);
    ok &= !program.failed();
  });
}

void AttendTask::emitResults(Value row, Value column, Value result) {
  RowProgram program(k, task, row, column);
  program.bindMemory(op.getResult(), result);
  ok &= succeeded(program.emitBlock(task.task.getBody().front()));
}

void AttendTask::storePartials(const AttendItem &item, Value slot, const SequenceRows &rows, Value span) {
  int64_t group = kernel.groupSize(), depth = stateFloats - 2 * kLanes;
  k.loop(k.i64(0), k.mul(item.rows, group), 1, [&](Value queryRow) {
    Value row = k.add(k.sub(item.firstRow, rows.start), k.div(queryRow, group));
    Value place = k.add(slot, k.add(k.mul(row, rows.spans), k.sub(span, rows.fromSpan)));
    AttendState from = kernel.partialOf(queryRow);
    AttendState to = stateAt(place, k.add(k.mul(item.head, group), k.rem(queryRow, group)));
    k.store(k.load(k.f32Type, from.maximum), to.maximum);
    k.store(k.load(k.vf, from.sums), to.sums);
    for (int64_t v = 0; v < depth / kLanes; ++v)
      k.store(k.load(k.vf, from.result, v * 64), to.result, v * 64);
  });
}

void AttendTask::emitUnit(const SequenceRows &rows, Value index, Value slot) {
  // Spans outermost: what is left of a short last span is spread over all workers.
  Value perSpan = k.mul(rows.blocks, columns), inSpan = k.rem(index, perSpan), column = k.rem(inSpan, columns);
  AttendItem item;
  item.sequence = sequence;
  item.firstRow = k.add(rows.start, k.mul(k.div(inSpan, columns), schedule.rowBlock));
  item.rows = k.min(k.sub(k.add(rows.start, rows.rows), item.firstRow), k.i64(schedule.rowBlock));
  item.head = RowProgram(k, task, item.firstRow, column).scalar(op.getHead());
  Value first = kernel.positionOf(item.firstRow);
  auto [from, to] = kernel.spansOf(first, k.add(k.add(first, item.rows), -1));
  if (mayBeSplit) {
    Value span = k.add(rows.fromSpan, k.div(index, perSpan));
    from = k.select(isSplit, k.max(from, span), from);
    to = k.select(isSplit, k.min(to, k.add(span, 1)), to);
  }
  emitQueries(item, column);
  Value queryRows = k.mul(item.rows, kernel.groupSize());
  kernel.beginTotals(queryRows);
  k.loop(from, to, 1, [&](Value span) {
    kernel.emitSpan(item, span);
    if (mayBeSplit)
      k.when(isSplit, [&] { storePartials(item, slot, rows, span); });
    k.loop(k.i64(0), queryRows, 1, [&](Value row) { kernel.addToTotal(row, kernel.partialOf(row)); });
  });
  auto finish = [&] {
    kernel.finishTotals(queryRows);
    k.loop(k.i64(0), item.rows, 1, [&](Value i) { emitResults(k.add(item.firstRow, i), column, kernel.resultOf(i)); });
  };
  if (mayBeSplit)
    k.when(inverted(isSplit), finish);
  else
    finish();
}

void AttendTask::combine(const SequenceRows &rows, Value index, Value slot) {
  Value column = k.rem(index, columns), inSequence = k.div(index, columns), row = k.add(rows.start, inSequence);
  Value head = RowProgram(k, task, row, column).scalar(op.getHead()), position = kernel.positionOf(row);
  int64_t group = kernel.groupSize();
  kernel.beginTotals(k.i64(group));
  auto [from, to] = kernel.spansOf(position, position);
  k.loop(from, to, 1, [&](Value span) {
    Value place = k.add(slot, k.add(k.mul(inSequence, rows.spans), k.sub(span, rows.fromSpan)));
    k.loop(k.i64(0), k.i64(group), 1,
           [&](Value g) { kernel.addToTotal(g, stateAt(place, k.add(k.mul(head, group), g))); });
  });
  kernel.finishTotals(k.i64(group));
  emitResults(row, column, kernel.resultOf(k.i64(0)));
}

LogicalResult AttendTask::emit() {
  if (mayBeSplit)
    isSplit = shouldSplit();
  forSequences([&](const SequenceRows &rows, Value dealt, Value slot) {
    Value units = k.mul(rows.blocks, columns);
    if (mayBeSplit)
      units = k.mul(units, k.select(isSplit, rows.spans, k.i64(1)));
    forUnits(units, dealt, [&](Value index) { emitUnit(rows, index, slot); });
    return units;
  });
  kernel.endTask();
  if (!mayBeSplit)
    return success(ok);
  k.when(isSplit, [&] {
    emitBarrier(k, task.context);
    forSequences([&](const SequenceRows &rows, Value dealt, Value slot) {
      Value units = k.mul(rows.rows, columns);
      forUnits(units, dealt, [&](Value index) { combine(rows, index, slot); });
      return units;
    });
  });
  return success(ok);
}

} // namespace

LogicalResult llmc::cpu::emitAttendTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule) {
  SmallVector<tile::AttendOp> ops;
  task.task.walk([&](tile::AttendOp op) { ops.push_back(op); });
  tile::AttendOp op = ops.front();
  llm::KvType kv = op.getKv().getType();
  if (ops.size() != 1 || op->getParentOp() != task.task.getOperation() || task.task.getSpace() != tile::Space::Rows)
    return task.task.emitOpError() << "holds " << ops.size()
                                   << " attends, expected one, over all rows and outside of tile.when";
  if (kv.getHeadDim() % kLanes != 0 || kv.getPanel() != kLanes)
    return op.emitOpError() << "has heads of " << kv.getHeadDim() << " channels and key panels of " << kv.getPanel()
                            << ", but the CPU kernel takes multiples of 16 and panels of 16";
  return AttendTask(kernel, task, op, schedule).emit();
}
