// The program level: layer functions and `llmc_step`, which call tasks with pointers and meet at barriers.
#pragma once
#include "lib/codegen/cpu/TaskEmitter.h"
#include "runtime/artifact/Manifest.h"

namespace llmc::cpu {

// The call with which this worker meets the others of the step; `context` is the step's.
void emitBarrier(KernelBuilder &kernel, mlir::Value context);

// The facts that the memory plan left on the module (llmc.max_tokens, llmc.page_bytes and, where
// there is recurrent state, llmc.state_bytes).
mlir::FailureOr<PlanFacts> planFactsOf(mlir::ModuleOp program);

// For every task that is launched: which of its operands are the step's logits. A task must not be launched both ways.
mlir::FailureOr<llvm::DenseMap<mlir::Operation *, llvm::SmallVector<bool>>> findLogitsOperands(mlir::ModuleOp program);

// What a rank's manifest says of the exchanges of a step with so many rows; the rest is left as it is made.
mlir::FailureOr<RankFacts> exchangeFactsOf(mlir::ModuleOp program, int64_t maxTokens, int64_t maxLogitRows);

// The numbers of tasks, as the step program tells them to its trace hook.
using TaskNumbers = llvm::DenseMap<mlir::Operation *, int32_t>;

// Emits every function of `program` into `module`, and the ABI version. Every launched task has a number.
mlir::LogicalResult emitProgram(mlir::ModuleOp program, const PlanFacts &plan, const CpuTarget &target,
                                const TaskNumbers &numbers, mlir::ModuleOp module);

} // namespace llmc::cpu
