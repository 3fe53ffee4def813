// Attention of a block of rows of one sequence over its pages, for the query heads of one key-value head.
#pragma once
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/codegen/cpu/Schedule.h"

namespace llmc::cpu {

// One work item: rows `firstRow` .. `firstRow + rows - 1` of the batch, all of sequence `sequence`.
struct AttendItem {
  mlir::Value sequence, firstRow, rows, head;
};

class AttendKernel {
public:
  AttendKernel(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule);

  // Where the query of row i of the item goes, and where its result lies: G * D elements of f32.
  mlir::Value queryOf(mlir::Value i);
  mlir::Value resultOf(mlir::Value i);

  // Computes all results of an item whose queries are in place.
  void emit(const AttendItem &item);

private:
  struct Page {
    mlir::Value keys, values; // of this head
    mlir::Value base;         // position of its first key
    mlir::Value valid;        // positions that hold something by the end of this step
  };

  Page pageAt(const AttendItem &item, mlir::Value page, mlir::Value lastPosition);
  void emitScores(mlir::Value queryRows, const Page &page);
  void emitSoftmax(mlir::Value queryRows, mlir::Value firstPosition, const Page &page);
  void emitWeightedValues(mlir::Value queryRows, const Page &page);
  void emitFinish(mlir::Value queryRows);
  mlir::Value loadCache(mlir::Value pointer, int64_t bytes);
  mlir::Value rowAt(mlir::Value buffer, mlir::Value row, int64_t stride);

  KernelBuilder &k;
  TaskContext &task;
  tile::AttendOp op;
  llm::KvType kv;
  int64_t group, depth, page, elementBytes; // query heads per key-value head, D, P, bytes of a cached element
  int64_t kernelRows;
  // Per query row (row of the item times head of the group): its query, scores of a page, result, running maximum,
  // sixteen partial sums, and the factor that rescales them for the current page.
  mlir::Value queries, scores, results, maxima, sums, rescale;
};

} // namespace llmc::cpu
