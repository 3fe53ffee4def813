// Tasks that walk what a row sees of its sequence: how rows, columns and spans of positions are dealt out to the
// workers. A unit is a block of rows with one column over all it sees, or, where those are too few for the workers,
// over one span of positions; then a second round puts the spans of every row together.
#pragma once
#include "lib/codegen/cpu/CachePages.h"

namespace llmc::cpu {

class SpanTask {
public:
  virtual ~SpanTask() = default;
  void emit();

protected:
  SpanTask(KernelBuilder &kernel, TaskContext &task, int64_t rowBlock, bool mayBeSplit);

  // The rows of one sequence in this step.
  struct SequenceRows {
    mlir::Value sequence, start, rows, blocks;
    mlir::Value fromSpan, spans; // that its rows see
    mlir::Value slot;            // of partials, the first one
  };
  // Rows `firstRow` .. `firstRow + rows - 1` with one column over spans `from` .. `to` - 1.
  struct Unit {
    const SequenceRows &of;
    mlir::Value firstRow, rows, column, from, to;
  };
  // Spans that hold positions which rows at `first` .. `last` see, [from, to).
  virtual std::pair<mlir::Value, mlir::Value> spansOf(mlir::Value first, mlir::Value last) = 0;
  virtual void emitUnit(const Unit &unit) = 0;
  // Puts spans `from` .. `to` - 1 of one row and column together.
  virtual void combine(const Unit &row) = 0;
  virtual void endUnits() {}
  virtual mlir::Value positionOf(mlir::Value row) = 0;

  // Where in partials the state of a row and span lies.
  mlir::Value slotOf(const Unit &unit, mlir::Value row, mlir::Value span) {
    mlir::Value inSequence = k.sub(row, unit.of.start);
    return k.add(unit.of.slot, k.add(k.mul(inSequence, unit.of.spans), k.sub(span, unit.of.fromSpan)));
  }

  KernelBuilder &k;
  TaskContext &task;
  const int64_t rowBlock, columns;
  const bool mayBeSplit;
  mlir::Value isSplit; // null where it never is

private:
  // Calls `body(rows, dealt)` for every sequence, where `dealt` units came before; it returns how many the sequence
  // has.
  void forSequences(llvm::function_ref<mlir::Value(const SequenceRows &, mlir::Value)> body);
  // Calls `body(index)` for this worker's of `units` units: they are dealt out in turn, since late rows see more.
  void forUnits(mlir::Value units, mlir::Value dealt, llvm::function_ref<void(mlir::Value)> body);
  SequenceRows rowsOf(mlir::Value sequence);
  mlir::Value shouldSplit();
  void dealUnit(const SequenceRows &rows, mlir::Value index);

  mlir::Value worker, workers, sequenceCount;
};

} // namespace llmc::cpu
