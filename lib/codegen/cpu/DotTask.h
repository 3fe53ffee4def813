// Tasks around a dot: one product of every row with all column tiles of a weight, or, where the weight is a stack of
// matrices, products of rows with the matrices that they name.
#pragma once
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/codegen/cpu/Schedule.h"

namespace llmc::cpu {

// Workers of the step, as far as a task shares its work over them.
struct WorkShare {
  mlir::Value rowCount, worker, workers;

  // This worker's part of 0 .. count - 1, in whole units.
  std::pair<mlir::Value, mlir::Value> of(KernelBuilder &kernel, mlir::Value count, int64_t unit) const;
};

mlir::LogicalResult emitDotTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule,
                                const WorkShare &share);

} // namespace llmc::cpu
