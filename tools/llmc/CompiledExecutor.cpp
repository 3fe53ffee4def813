#include "dialects/llm/LlmDialect.h"
#include "lib/reference/TileInterpreter.h"
#include "runtime/engine/RankEngines.h"
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

// What one rank cannot say for all of them.
Status checkWhole(const Manifest &manifest, const ExecutorOptions &options) {
  if (options.states && manifest.grid().size() > 1)
    return Status::error("what is kept of a sequence lies on " + std::to_string(manifest.grid().size()) +
                         " ranks; compile for one to see it");
  if (options.records && manifest.grid().stages > 1)
    return Status::error("the hidden states are those of " + std::to_string(manifest.grid().stages) +
                         " stages; compile for one to see them");
  return {};
}

Status forward(Engine &engine, const Sequences &sequences, const ExecutorOptions &options,
               std::vector<SequenceLogits> &results) {
  const Manifest &manifest = engine.manifest();
  LLMC_RETURN_IF_ERROR(checkWhole(manifest, options));
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
    LLMC_ASSIGN_OR_RETURN(states, statesOf(engine.artifact(), context));
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
  return engine.forward(sequences, {options.chunk, options.together}, take);
}

} // namespace

StatusOr<std::vector<SequenceLogits>> compiledLogits(const std::string &path, const Sequences &sequences,
                                                     const ExecutorOptions &options) {
  EngineOptions engineOptions;
  engineOptions.threads = options.threads;
  engineOptions.recordHidden = options.records;
  std::vector<SequenceLogits> results;
  LLMC_RETURN_IF_ERROR(withEngines(path, engineOptions, [&](Engine &engine) {
    // Every rank has all logits.
    std::vector<SequenceLogits> own;
    LLMC_RETURN_IF_ERROR(forward(engine, sequences, options, own));
    if (engine.isFirstRank())
      results = std::move(own);
    return Status();
  }));
  return results;
}

} // namespace llmc
