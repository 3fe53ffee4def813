// The task that carries a state along the rows of a sequence: how sequences and column tiles are dealt out.
#pragma once
#include "lib/codegen/cpu/RowProgram.h"

namespace llmc::cpu {

mlir::LogicalResult emitRecurrentTask(KernelBuilder &kernel, TaskContext &task);

} // namespace llmc::cpu
