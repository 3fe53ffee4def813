// What task formation cannot lower yet, said before it starts.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include <string>

namespace llmc {

/// How task formation lowers an op of the llm dialect; checkTileForms refuses what is missing here.
struct TileForm {
  enum class Status { Native, Composed, Missing };
  Status status;
  std::string kernel; // the shape of the task; "" when missing
  std::string reason; // "" when native
};
TileForm tileFormOf(mlir::Operation *op);

/// Fails, with an error at each op or state that no kernel computes yet.
mlir::LogicalResult checkTileForms(mlir::ModuleOp module);

} // namespace llmc
