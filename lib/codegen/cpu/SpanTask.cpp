#include "lib/codegen/cpu/SpanTask.h"
#include "lib/codegen/cpu/ProgramEmitter.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {
// Fewer units than this for each worker are shared unevenly; they are split where positions allow it.
constexpr int64_t kUnitsPerWorker = 8;
} // namespace

SpanTask::SpanTask(KernelBuilder &kernel, TaskContext &task, int64_t rowBlock, bool mayBeSplit)
    : k(kernel), task(task), rowBlock(rowBlock), columns(static_cast<int64_t>(task.task.getColumns())),
      mayBeSplit(mayBeSplit) {
  worker = k.loadInt(task.context, offsetof(llmc_step_context, worker));
  workers = k.loadInt(task.context, offsetof(llmc_step_context, num_workers));
  sequenceCount = k.loadInt(task.batch, offsetof(llmc_batch, num_sequences));
}

SpanTask::SequenceRows SpanTask::rowsOf(Value sequence) {
  Value starts = k.load(k.pointerType, task.batch, offsetof(llmc_batch, query_start));
  Value lengths = k.load(k.pointerType, task.batch, offsetof(llmc_batch, length));
  SequenceRows rows;
  rows.sequence = sequence;
  Value at = k.mul(sequence, 4);
  rows.start = k.loadInt(k.at(starts, at));
  rows.rows = k.sub(k.loadInt(k.at(starts, at), 4), rows.start);
  rows.blocks = k.ceilDiv(rows.rows, rowBlock);
  Value length = k.loadInt(k.at(lengths, at));
  auto [from, to] = spansOf(k.sub(length, rows.rows), k.add(length, -1));
  rows.fromSpan = from;
  rows.spans = k.sub(to, from);
  return rows;
}

void SpanTask::forSequences(llvm::function_ref<Value(const SequenceRows &, Value)> body) {
  Value none = k.i64(0);
  k.loop(none, sequenceCount, 1, ValueRange{none, none}, [&](Value sequence, ValueRange before) -> SmallVector<Value> {
    SequenceRows rows = rowsOf(sequence);
    rows.slot = before[1];
    Value units = body(rows, before[0]);
    return {k.rem(k.add(before[0], units), workers), k.add(before[1], k.mul(rows.rows, rows.spans))};
  });
}

void SpanTask::forUnits(Value units, Value dealt, llvm::function_ref<void(Value)> body) {
  Value first = k.rem(k.sub(k.add(worker, k.mul(workers, dealt)), dealt), workers);
  auto loop = scf::ForOp::create(k.b, first, units, workers);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

// The same for all workers. Bits do not depend on it.
Value SpanTask::shouldSplit() {
  Value none = k.i64(0);
  SmallVector<Value> found =
      k.loop(none, sequenceCount, 1, ValueRange{none, none, none},
             [&](Value sequence, ValueRange before) -> SmallVector<Value> {
               SequenceRows rows = rowsOf(sequence);
               return {k.add(before[0], k.mul(rows.blocks, columns)), k.add(before[1], k.mul(rows.rows, rows.spans)),
                       k.max(before[2], rows.spans)};
             });
  Value few = k.less(found[0], k.mul(workers, kUnitsPerWorker));
  Value fits = k.less(found[1], k.i64(task.plan.maxTokens + 1));
  Value useful = arith::AndIOp::create(k.b, k.less(k.i64(1), found[2]), k.less(k.i64(1), workers));
  return arith::AndIOp::create(k.b, useful, arith::AndIOp::create(k.b, few, fits).getResult());
}

void SpanTask::dealUnit(const SequenceRows &rows, Value index) {
  // Spans outermost: what is left of a short last span is spread over all workers.
  Value perSpan = k.mul(rows.blocks, columns), inSpan = k.rem(index, perSpan);
  Value firstRow = k.add(rows.start, k.mul(k.div(inSpan, columns), rowBlock));
  Value count = k.min(k.sub(k.add(rows.start, rows.rows), firstRow), k.i64(rowBlock));
  Value first = positionOf(firstRow);
  auto [from, to] = spansOf(first, k.add(k.add(first, count), -1));
  if (mayBeSplit) {
    Value span = k.add(rows.fromSpan, k.div(index, perSpan));
    from = k.select(isSplit, k.max(from, span), from);
    to = k.select(isSplit, k.min(to, k.add(span, 1)), to);
  }
  emitUnit({rows, firstRow, count, k.rem(inSpan, columns), from, to});
}

void SpanTask::emit() {
  if (mayBeSplit)
    isSplit = shouldSplit();
  forSequences([&](const SequenceRows &rows, Value dealt) {
    Value units = k.mul(rows.blocks, columns);
    if (mayBeSplit)
      units = k.mul(units, k.select(isSplit, rows.spans, k.i64(1)));
    forUnits(units, dealt, [&](Value index) { dealUnit(rows, index); });
    return units;
  });
  endUnits();
  if (!mayBeSplit)
    return;
  k.when(isSplit, [&] {
    emitBarrier(k, task.context);
    forSequences([&](const SequenceRows &rows, Value dealt) {
      Value units = k.mul(rows.rows, columns);
      forUnits(units, dealt, [&](Value index) {
        Value row = k.add(rows.start, k.div(index, columns)), position = positionOf(row);
        auto [from, to] = spansOf(position, position);
        combine({rows, row, k.i64(1), k.rem(index, columns), from, to});
      });
      return units;
    });
  });
}
