// `llmc logits`: logits (and the residual stream) of every position, by any executor, as a safetensors file.
#include "lib/importer/files/Safetensors.h"
#include "runtime/support/AtomicOutput.h"
#include "tools/llmc-run/IdsFile.h"
#include "tools/llmc/Executors.h"
#include <cstdio>

namespace llmc {
namespace {

struct NamedMatrix {
  std::string name;
  const reference::Matrix *matrix;
};

std::vector<NamedMatrix> namedResults(const std::vector<SequenceLogits> &results) {
  std::vector<NamedMatrix> tensors;
  for (size_t s = 0; s < results.size(); ++s) {
    std::string suffix = "." + std::to_string(s);
    tensors.push_back({"logits" + suffix, &results[s].logits});
    for (size_t i = 0; i < results[s].records.size(); ++i) {
      bool isLast = i + 1 == results[s].records.size();
      tensors.push_back(
          {isLast ? "normed" + suffix : "hidden" + suffix + "." + std::to_string(i), &results[s].records[i]});
    }
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

StatusOr<std::vector<SequenceLogits>> compute(const LogitsCommand &command, const Sequences &sequences) {
  ExecutorOptions options{command.hidden, command.chunk, command.together, command.threads};
  if (command.executor == Executor::Compiled) {
    LLMC_ASSIGN_OR_RETURN(std::string artifact, artifactFor(command.model, command.compile));
    return compiledLogits(artifact, sequences, options);
  }
  LLMC_ASSIGN_OR_RETURN(Model model, openModel(command.model, command.compile.models));
  LLMC_RETURN_IF_ERROR(model.files.requireWeights());
  return command.executor == Executor::Reference ? referenceLogits(model, command.compile, sequences, options)
                                                 : tileLogits(model, command.compile, sequences, options);
}

} // namespace

int runLogits(const LogitsCommand &command) {
  StatusOr<Sequences> sequences = readIdsFile(command.ids);
  if (!sequences.ok())
    return reportFault(sequences.status());
  StatusOr<std::vector<SequenceLogits>> results = compute(command, *sequences);
  if (!results.ok())
    return reportFault(results.status());
  Status written = writeSafetensors(namedResults(*results), command.output);
  return written.ok() ? exitDone : reportFault(written);
}

} // namespace llmc
