#include "runtime/engine/Engine.h"
#include "tools/llmc/Executors.h"
#include <algorithm>

namespace llmc {

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
    if (options.records)
      result.records.assign(static_cast<size_t>(manifest.numLayers) + 2, reference::Matrix(rows, manifest.hidden));
  }
  auto take = [&](const ForwardRows &rows) -> Status {
    SequenceLogits &result = results[rows.sequence];
    std::copy(rows.logits.begin(), rows.logits.end(), result.logits.row(rows.firstPosition).begin());
    for (size_t index = 0; index < result.records.size(); ++index) {
      const float *first = rows.record + static_cast<int64_t>(index) * rows.recordRows * manifest.hidden;
      std::copy_n(first, int64_t(rows.count) * manifest.hidden, result.records[index].row(rows.firstPosition).begin());
    }
    return {};
  };
  LLMC_RETURN_IF_ERROR(engine->forward(sequences, {options.chunk, options.together}, take));
  return results;
}

} // namespace llmc
