// The task that attends: how its rows, heads and spans are dealt out to the workers.
#pragma once
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/codegen/cpu/Schedule.h"

namespace llmc::cpu {

mlir::LogicalResult emitAttendTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule);

} // namespace llmc::cpu
