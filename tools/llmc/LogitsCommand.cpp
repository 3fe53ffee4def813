// `llmc logits`: logits (and on demand what is inside) of every position, by any executor, as a safetensors file.
#include "lib/importer/RecordVariables.h"
#include "lib/importer/files/Safetensors.h"
#include "runtime/support/AtomicOutput.h"
#include "tools/llmc-run/IdsFile.h"
#include "tools/llmc/Executors.h"
#include <algorithm>

namespace llmc {
namespace {

struct NamedMatrix {
  std::string name;
  const reference::Matrix *matrix;
};

// What asks for records records the stream as well; it is written only where it was asked for.
std::vector<NamedMatrix> namedResults(bool hidden, const std::vector<std::string> &recorded,
                                      const std::vector<SequenceLogits> &results) {
  std::vector<NamedMatrix> tensors;
  for (size_t s = 0; s < results.size(); ++s) {
    const std::string suffix = "." + std::to_string(s);
    const std::vector<reference::Matrix> &records = results[s].records;
    const size_t streams = records.size() - std::min(records.size(), recorded.size());
    tensors.push_back({"logits" + suffix, &results[s].logits});
    for (size_t i = 0; hidden && i < streams; ++i)
      tensors.push_back(
          {i + 1 == streams ? "normed" + suffix : "hidden" + suffix + "." + std::to_string(i), &records[i]});
    for (size_t i = streams; i < records.size(); ++i)
      tensors.push_back({"record" + suffix + "." + recorded[i - streams], &records[i]});
    for (const auto &[name, state] : results[s].states)
      tensors.push_back({"state" + suffix + "." + name, &state});
  }
  return tensors;
}

Status writeSafetensors(const std::vector<NamedMatrix> &tensors, const std::string &path) {
  std::vector<SafetensorsTensor> entries;
  for (const NamedMatrix &tensor : tensors) {
    std::vector<uint64_t> shape = {static_cast<uint64_t>(tensor.matrix->rows),
                                   static_cast<uint64_t>(tensor.matrix->columns)};
    entries.push_back({tensor.name, TensorType::F32, shape, 0, tensor.matrix->values.size() * sizeof(float)});
  }
  std::string file = safetensorsHead(entries);
  for (const NamedMatrix &tensor : tensors)
    file.append(reinterpret_cast<const char *>(tensor.matrix->values.data()),
                tensor.matrix->values.size() * sizeof(float));
  return writeFileAtomically(path, file);
}

// `recorded` becomes the names of the records behind those of the stream.
StatusOr<std::vector<SequenceLogits>> compute(const LogitsCommand &command, const Sequences &sequences,
                                              std::vector<std::string> &recorded) {
  ExecutorOptions options;
  options.records = command.hidden || !command.record.empty();
  options.states = command.state;
  options.chunk = command.chunk;
  options.together = command.together;
  options.threads = command.threads;
  if (command.executor == Executor::Compiled) {
    if (!command.record.empty())
      return Status::error("--record '" + command.record.front() +
                           "' is computed by --executor reference or tile: a compiled program keeps no other values "
                           "than those of --hidden");
    LLMC_ASSIGN_OR_RETURN(std::string artifact, artifactFor(command.model, command.compile));
    return compiledLogits(artifact, sequences, options);
  }
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(command.model, command.compile.models));
  LLMC_RETURN_IF_ERROR(model.files.requireWeights());
  StatusOr<std::vector<std::string>> names = recordVariables(model.spec, command.record);
  if (!names.ok())
    return names.status().inside("--record");
  recorded = std::move(*names);
  return command.executor == Executor::Reference ? referenceLogits(model, command.compile, sequences, options)
                                                 : tileLogits(model, command.compile, sequences, options);
}

} // namespace

int runLogits(const LogitsCommand &command) {
  StatusOr<Sequences> sequences = readIdsFile(command.ids);
  if (!sequences.ok())
    return reportFault(sequences.status());
  std::vector<std::string> recorded;
  StatusOr<std::vector<SequenceLogits>> results = compute(command, *sequences, recorded);
  if (!results.ok())
    return reportFault(results.status());
  // Of processes that share a model one writes.
  if (results->empty() && !sequences->empty())
    return exitDone;
  Status written = writeSafetensors(namedResults(command.hidden, recorded, *results), command.output);
  return written.ok() ? exitDone : reportFault(written);
}

} // namespace llmc
