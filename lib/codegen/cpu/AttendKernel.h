// Attention of a block of rows of one sequence over its pages, for the query heads of one key-value head.
#pragma once
#include "lib/codegen/cpu/AttendProducts.h"
#include "lib/codegen/cpu/RowProgram.h"

namespace llmc::cpu {

// One work item: rows `firstRow` .. `firstRow + rows - 1` of the batch, all of sequence `sequence`.
struct AttendItem {
  mlir::Value sequence, firstRow, rows, head;
};

// Maximum, sixteen sums and result of one query row over some positions, in memory.
struct AttendState {
  mlir::Value maximum, sums, result;
};

class AttendKernel {
public:
  AttendKernel(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule);

  // Where the queries of row i of the item go, and where its results lie: G * D elements.
  mlir::Value queryOf(mlir::Value i) { return products->queryOf(k.mul(i, group)); }
  mlir::Value resultOf(mlir::Value i) { return totalOf(k.mul(i, group)).result; }
  mlir::Type queryElement() { return products->queryElement(); }
  int64_t groupSize() const { return group; }

  // Spans that hold positions which rows at `first` .. `last` see, [from, to).
  std::pair<mlir::Value, mlir::Value> spansOf(mlir::Value first, mlir::Value last);
  mlir::Value positionOf(mlir::Value row);

  // Computes one span of an item whose queries are in place, the state of query row r at partialOf(r).
  void emitSpan(const AttendItem &item, mlir::Value span);
  AttendState partialOf(mlir::Value queryRow) { return stateAt(partials, queryRow, products->resultOf(queryRow)); }
  // Results of `queryRows` rows from the states of their spans, which are given in ascending order.
  void beginTotals(mlir::Value queryRows);
  void addToTotal(mlir::Value queryRow, const AttendState &state);
  void finishTotals(mlir::Value queryRows);
  void endTask() { products->endTask(); }

private:
  AttendPage pageAt(const AttendItem &item, mlir::Value index, mlir::Value lastPosition);
  AttendState totalOf(mlir::Value row) { return stateAt(totals, row, k.at(totalResults, k.mul(row, depth * 4))); }
  AttendState stateAt(mlir::Value base, mlir::Value row, mlir::Value result);
  void clear(const AttendState &state);
  void emitSoftmax(mlir::Value queryRows, mlir::Value firstPosition, mlir::Value lastPosition, const AttendPage &page);
  void emitSoftmaxRow(mlir::Value row, mlir::Value firstPosition, const AttendPage &page, bool masked);
  mlir::Value scaled(mlir::Value score);
  mlir::Value visibleLanes(mlir::Value high, int64_t v);

  KernelBuilder &k;
  TaskContext &task;
  tile::AttendOp op;
  llm::KvType kv;
  int64_t group, depth, page, span; // query heads per key-value head, D, P, positions (0: all)
  std::unique_ptr<AttendProducts> products;
  mlir::Value partials, totals, totalResults;
};

} // namespace llmc::cpu
