// One tile.task as one machine function `void task(context, operands...)`, called by every worker for its share. One
// that records takes the index of its first record besides.
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

// What the step calls the task's function.
std::string taskSymbol(llvm::StringRef task);

// Emits the task into `module` as a function `kernelSymbol`: nothing there depends on what the task is called. The
// result is the bytes of worker scratch that it needs.
mlir::FailureOr<int64_t> emitTask(tile::TaskOp task, const Schedule &schedule, const TaskOptions &options,
                                  mlir::ModuleOp module);

} // namespace llmc::cpu
