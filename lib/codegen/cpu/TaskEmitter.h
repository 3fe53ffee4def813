// One tile.task as one machine function `void task(context, operands...)`, called by every worker for its share.
#pragma once
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/codegen/cpu/Schedule.h"

namespace llmc::cpu {

struct TaskOptions {
  const CpuTarget &target;
  bool emulate = false;
  PlanFacts plan;
  // Per argument of the body: whether it is the step's logits, whose rows lie [R][vocabulary] without padding.
  llvm::SmallVector<bool> isLogits;
};

// The function's symbol.
std::string taskSymbol(tile::TaskOp task);

// Emits the task into `module`; the result is the bytes of worker scratch that it needs.
mlir::FailureOr<int64_t> emitTask(tile::TaskOp task, const Schedule &schedule, const TaskOptions &options,
                                  mlir::ModuleOp module);

} // namespace llmc::cpu
