// Pipeline stages: which layers a group of ranks runs, and what it hands on.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc {

/// Leaves the layers of one of `stages` in @step, which receives what earlier stages computed, and returns the logits
/// on every stage.
mlir::LogicalResult splitStages(mlir::ModuleOp module, int64_t stages, int64_t stage);

/// The stage of every operation of @step, without changing it; -1 for what every stage computes for itself.
mlir::FailureOr<llvm::DenseMap<mlir::Operation *, int64_t>> stagesOf(mlir::func::FuncOp step, int64_t stages);

} // namespace llmc
