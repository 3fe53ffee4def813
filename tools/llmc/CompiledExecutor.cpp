#include "dialects/llm/LlmDialect.h"
#include "lib/reference/TileInterpreter.h"
#include "runtime/engine/Engine.h"
#include "tools/llmc/Executors.h"
#include "tools/llmc/MemoryReport.h"
#include <algorithm>

namespace llmc {
namespace {

StatusOr<std::vector<PlacedState>> statesOf(const LoadedArtifact &artifact, mlir::MLIRContext &context) {
  LLMC_ASSIGN_OR_RETURN(std::string text, artifact.readSection(memoryFile));
  LLMC_ASSIGN_OR_RETURN(Json memory, parseJson(text, memoryFile));
  return placedStates(memory, artifact.manifest().stateBytes, context, memoryFile);
}

} // namespace

StatusOr<std::vector<SequenceLogits>> compiledLogits(const std::string &path, const Sequences &sequences,
                                                     const ExecutorOptions &options) {
  EngineOptions engineOptions;
  engineOptions.threads = options.threads;
  engineOptions.recordHidden = options.records;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(path, engineOptions));
  const Manifest &manifest = engine->manifest();
  std::vector<SequenceLogits> results;
  for (const std::vector<int32_t> &ids : sequences) {
    auto rows = static_cast<int64_t>(ids.size());
    SequenceLogits &result = results.emplace_back();
    result.logits = reference::Matrix(rows, manifest.vocabulary);
    if (options.records) {
      result.records.assign(static_cast<size_t>(manifest.numLayers) + 1,
                            reference::Matrix(rows, manifest.recordChannels));
      result.records.emplace_back(rows, manifest.hidden);
    }
  }
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  std::vector<PlacedState> states;
  if (options.states) {
    LLMC_ASSIGN_OR_RETURN(states, statesOf(engine->artifact(), context));
  }
  auto take = [&](const ForwardRows &rows) -> Status {
    SequenceLogits &result = results[rows.sequence];
    std::copy(rows.logits.begin(), rows.logits.end(), result.logits.row(rows.firstPosition).begin());
    for (size_t index = 0; index < result.records.size(); ++index) {
      const int64_t channels = manifest.recordChannels;
      const float *first = rows.record + static_cast<int64_t>(index) * rows.recordRows * channels;
      for (int32_t t = 0; t < rows.count; ++t)
        std::copy_n(first + t * channels, result.records[index].columns,
                    result.records[index].row(rows.firstPosition + t).begin());
    }
    // Those after the last rows stay.
    for (const PlacedState &state : states)
      result.states[state.name] = reference::plainState(state.type, rows.state.data() + state.offset);
    return {};
  };
  LLMC_RETURN_IF_ERROR(engine->forward(sequences, {options.chunk, options.together}, take));
  return results;
}

} // namespace llmc
