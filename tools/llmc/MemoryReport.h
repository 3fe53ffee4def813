// What lies where in memory during a step: the plan as JSON for the artifact, and as text for people.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/artifact/Loader.h"
#include "runtime/support/Json.h"

namespace llmc {

// memory.json of a module whose memory is planned (runtime/artifact/FORMAT.md).
StatusOr<Json> memoryJson(mlir::ModuleOp module);

// The lines of `llmc compile` and `llmc inspect ARTIFACT`: every byte that a run of the artifact at `path` will use,
// what ends an answer, and how well it predicts where that was measured ("" where not).
std::string planText(const Manifest &manifest, const std::string &path);
std::string stopText(const Manifest &manifest);
std::string perplexityText(const Manifest &manifest);
// What each sequence keeps in its slot of recurrent state; "" where no layer keeps any. `memory` as below.
StatusOr<std::string> stateText(const Json &memory, const std::string &file);
// Where each recurrent state lies in a slot.
struct PlacedState {
  std::string name;
  int64_t offset; // bytes
  llm::RecurrentType type;
};
StatusOr<std::vector<PlacedState>> placedStates(const Json &memory, uint64_t slotBytes, mlir::MLIRContext &context,
                                                const std::string &file);
// The buffers of the arena with their live ranges, and their sum against what no plan could do without. `memory` is
// what memoryJson gave; anything else is an error.
StatusOr<std::string> arenaText(const Json &memory, const std::string &file);

} // namespace llmc
