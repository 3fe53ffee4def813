// What task formation cannot lower yet, said before it starts.
#pragma once
#include "dialects/llm/LlmDialect.h"

namespace llmc {

/// Fails, with an error at each op or state that no kernel computes yet.
mlir::LogicalResult checkTileForms(mlir::ModuleOp module);

} // namespace llmc
