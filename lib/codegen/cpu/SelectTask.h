// The task that selects positions: scores of an indexer over all a row sees, and the largest of them.
#pragma once
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/codegen/cpu/Schedule.h"

namespace llmc::cpu {

mlir::LogicalResult emitSelectTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule);

} // namespace llmc::cpu
