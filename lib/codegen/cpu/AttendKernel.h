// Attention of a block of rows of one sequence over its pages, for the query heads of one key-value head.
#pragma once
#include "lib/codegen/cpu/AttendRows.h"
#include "lib/codegen/cpu/RowProgram.h"

namespace llmc::cpu {

// One work item: rows `firstRow` .. `firstRow + rows - 1` of the batch, all of sequence `sequence`; the query heads of
// column `column` of the task.
struct AttendItem {
  mlir::Value sequence, firstRow, rows, head, column;
};

// Maximum, sixteen sums and result of one query row over some positions, in memory.
struct AttendState {
  mlir::Value maximum, sums, result;
};

class AttendKernel {
public:
  AttendKernel(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule);

  // Where the queries of row i of the item go, and where its results lie: of all its heads.
  mlir::Value queryOf(mlir::Value i) { return products->queryOf(k.mul(i, group)); }
  mlir::Value resultOf(mlir::Value i) { return k.at(totalResults, k.mul(k.mul(i, group), kv.getValueDim() * 4)); }
  mlir::Value logsumsOf(mlir::Value i) { return k.at(logsums, k.mul(i, sinkFloats() * 4)); }
  // Where the sinks of row i go, and the positions that the item's one row selects: f32.
  mlir::Value sinksOf(mlir::Value i) { return k.at(sinks, k.mul(i, sinkFloats() * 4)); }
  mlir::Value selected;
  mlir::Type queryElement() { return products->queryElement(); }
  int64_t groupSize() const { return group; }
  // Elements of the state of one query head in memory: its result in whole vectors, sixteen sums, the maximum's line.
  int64_t stateFloats() const { return (vectors + 2) * kLanes; }
  void copyState(const AttendState &from, const AttendState &to);

  // Spans that hold positions which rows at `first` .. `last` see, [from, to).
  std::pair<mlir::Value, mlir::Value> spansOf(mlir::Value first, mlir::Value last);
  mlir::Value positionOf(mlir::Value row) { return pages.positionOf(row); }

  // Computes one span of an item whose queries are in place, the state of query row r at partialOf(r).
  void emitSpan(const AttendItem &item, mlir::Value span);
  AttendState partialOf(mlir::Value queryRow) { return stateAt(partials, queryRow, products->resultOf(queryRow)); }
  // Results of `queryRows` rows from the states of their spans, which are given in ascending order.
  void beginTotals(mlir::Value queryRows);
  void addToTotal(mlir::Value queryRow, const AttendState &state);
  void finishTotals(mlir::Value queryRows);
  void endTask() { products->endTask(); }

private:
  // The oldest position that a row at `position` sees; null when all rows see all before them.
  mlir::Value oldestSeen(mlir::Value position);
  AttendPage selectedPage(const AttendItem &item, mlir::Value index, mlir::Value position);
  void emitPage(const AttendItem &item, const AttendPage &page, mlir::Value firstPosition, mlir::Value lastPosition);
  AttendState totalOf(mlir::Value row) { return stateAt(totals, row, k.at(totalResults, k.mul(row, vectors * 64))); }
  AttendState stateAt(mlir::Value base, mlir::Value row, mlir::Value result);
  void clear(const AttendState &state);
  void emitSoftmax(const AttendItem &item, mlir::Value firstPosition, mlir::Value lastPosition, const AttendPage &page);
  // One query row at `position`; some of the page's positions may be `masked`.
  struct SoftmaxRow {
    mlir::Value row, position, slope;
    const AttendPage &page;
    bool masked;
  };
  void emitSoftmaxRow(const SoftmaxRow &row);
  mlir::Value scaled(mlir::Value score);
  mlir::Value visibleLanes(const SoftmaxRow &row, int64_t v);
  mlir::Value distances(const SoftmaxRow &row, int64_t v);
  int64_t sinkFloats() const { return (group + kLanes - 1) / kLanes * kLanes; }
  void addSink(mlir::Value row, mlir::Value &maximum, mlir::Value &sum, mlir::Value &kept);

  KernelBuilder &k;
  tile::AttendOp op;
  CachePages pages;
  const llm::KvType kv;
  int64_t group, page, span;      // query heads per column, P, positions or entries (0: all)
  int64_t vectors;                // of a value
  int64_t window, chunk, entries; // 0: none; of the list of selected positions
  std::unique_ptr<AttendProducts> products;
  RowProducts *rows = nullptr; // the same, when positions are selected, or not all are kept
  mlir::Value partials, totals, totalResults, slopes, sinks, logsums;
};

} // namespace llmc::cpu
