// The task that attends. SpanTask deals it out, AttendKernel computes a block of rows over spans of positions.
#include "lib/codegen/cpu/AttendTask.h"
#include "lib/codegen/cpu/AttendKernel.h"
#include "lib/codegen/cpu/SpanTask.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

class AttendTask : public SpanTask {
public:
  AttendTask(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule)
      : SpanTask(kernel, task, schedule.rowBlock, op.getPartials() && static_cast<int64_t>(op.getSpan()) > 0), op(op),
        kernel(kernel, task, op, schedule) {}
  bool hasFailed() const { return !ok; }

private:
  std::pair<Value, Value> spansOf(Value first, Value last) override { return kernel.spansOf(first, last); }
  Value positionOf(Value row) override { return kernel.positionOf(row); }
  void emitUnit(const Unit &unit) override;
  void combine(const Unit &row) override;
  void endUnits() override { kernel.endTask(); }
  void emitInputs(const AttendItem &item);
  void emitSinks(const Unit &unit);
  // Of row i of the item.
  void emitResults(Value row, Value column, Value i);
  void storePartials(const Unit &unit, Value span);
  AttendState stateAt(Value slot, Value column, Value inGroup);

  tile::AttendOp op;
  AttendKernel kernel;
  bool ok = true;
};

AttendState AttendTask::stateAt(Value slot, Value column, Value inGroup) {
  Value head = k.add(k.mul(column, kernel.groupSize()), inGroup);
  Value row = k.mul(slot, 4 * task.rowStride.lookup(op.getPartials()));
  Value result = k.at(k.at(task.operands.lookup(op.getPartials()), row), k.mul(head, 4 * kernel.stateFloats()));
  Value sums = k.at(result, 4 * (kernel.stateFloats() - 2 * kLanes));
  return {k.at(sums, 64), sums, result};
}

void AttendTask::emitInputs(const AttendItem &item) {
  k.loop(k.i64(0), item.rows, 1, [&](Value i) {
    RowProgram program(k, task, k.add(item.firstRow, i), item.column);
    program.evaluateInto(op.getQuery(), kernel.queryOf(i), kernel.queryElement(), /*paddedSize=*/0);
    ok &= !program.failed();
  });
  if (op.getSelected()) { // one row
    RowProgram program(k, task, item.firstRow, item.column);
    program.evaluateInto(op.getSelected(), kernel.selected, k.f32Type, /*paddedSize=*/0);
    ok &= !program.failed();
  }
}

void AttendTask::emitSinks(const Unit &unit) {
  if (!op.getSinks())
    return;
  k.loop(k.i64(0), unit.rows, 1, [&](Value i) {
    RowProgram program(k, task, k.add(unit.firstRow, i), unit.column);
    program.evaluateInto(op.getSinks(), kernel.sinksOf(i), k.f32Type, /*paddedSize=*/0);
    ok &= !program.failed();
  });
}

void AttendTask::emitResults(Value row, Value column, Value i) {
  RowProgram program(k, task, row, column);
  program.bindMemory(op.getResult(), kernel.resultOf(i));
  if (op.getLogsum())
    program.bindMemory(op.getLogsum(), kernel.logsumsOf(i));
  ok &= succeeded(program.emitBlock(task.task.getBody().front()));
}

void AttendTask::storePartials(const Unit &unit, Value span) {
  int64_t group = kernel.groupSize();
  k.loop(k.i64(0), k.mul(unit.rows, group), 1, [&](Value queryRow) {
    Value slot = slotOf(unit, k.add(unit.firstRow, k.div(queryRow, group)), span);
    kernel.copyState(kernel.partialOf(queryRow), stateAt(slot, unit.column, k.rem(queryRow, group)));
  });
}

void AttendTask::emitUnit(const Unit &unit) {
  Value head = RowProgram(k, task, unit.firstRow, unit.column).scalar(op.getHead());
  AttendItem item = {unit.of.sequence, unit.firstRow, unit.rows, head, unit.column};
  emitInputs(item);
  Value queryRows = k.mul(item.rows, kernel.groupSize());
  kernel.beginTotals(queryRows);
  k.loop(unit.from, unit.to, 1, [&](Value span) {
    kernel.emitSpan(item, span);
    if (mayBeSplit)
      k.when(isSplit, [&] { storePartials(unit, span); });
    k.loop(k.i64(0), queryRows, 1, [&](Value row) { kernel.addToTotal(row, kernel.partialOf(row)); });
  });
  auto finish = [&] {
    emitSinks(unit);
    kernel.finishTotals(queryRows);
    k.loop(k.i64(0), item.rows, 1, [&](Value i) { emitResults(k.add(item.firstRow, i), item.column, i); });
  };
  if (!mayBeSplit)
    return finish();
  k.when(k.inverted(isSplit), finish);
}

void AttendTask::combine(const Unit &row) {
  Value group = k.i64(kernel.groupSize());
  kernel.beginTotals(group);
  k.loop(row.from, row.to, 1, [&](Value span) {
    Value slot = slotOf(row, row.firstRow, span);
    k.loop(k.i64(0), group, 1, [&](Value g) { kernel.addToTotal(g, stateAt(slot, row.column, g)); });
  });
  emitSinks(row);
  kernel.finishTotals(group);
  emitResults(row.firstRow, row.column, k.i64(0));
}

} // namespace

LogicalResult llmc::cpu::emitAttendTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule) {
  SmallVector<tile::AttendOp> ops;
  task.task.walk([&](tile::AttendOp op) { ops.push_back(op); });
  tile::AttendOp op = ops.front();
  if (ops.size() != 1 || op->getParentOp() != task.task.getOperation() || task.task.getSpace() != tile::Space::Rows)
    return task.task.emitOpError() << "holds " << ops.size()
                                   << " attends, expected one, over all rows and outside of tile.when";
  if (failed(verifyPanels(op, op.getKv().getType())))
    return failure();
  if (op.getSelected() && schedule.rowBlock != 1)
    return op.emitOpError() << "has a schedule of " << schedule.rowBlock
                            << " rows at a time, but every row selects its own positions; expected 1";
  AttendTask attend(kernel, task, op, schedule);
  attend.emit();
  return failure(attend.hasFailed());
}
