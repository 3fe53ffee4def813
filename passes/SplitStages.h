// Pipeline stages: which layers a group of ranks runs, and what it hands on.
#pragma once
#include "dialects/llm/LlmDialect.h"

namespace llmc {

/// Leaves the layers of one of `stages` in @step, which receives what earlier stages computed, and returns the logits
/// on every stage.
mlir::LogicalResult splitStages(mlir::ModuleOp module, int64_t stages, int64_t stage);

} // namespace llmc
