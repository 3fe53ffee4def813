// Three ways to compute the logits of every position: the compiled program, the interpreter of the llm module, and the
// interpreter of the tile tasks. One interface, so that they can be compared.
#pragma once
#include "lib/reference/Matrix.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include <map>

namespace llmc {

struct SequenceLogits {
  reference::Matrix logits; // [T, V]
  // [T, C] each, when asked for: 0 embedding, i layer i, layers + 1 after the final norm, then what recordVariables added.
  std::vector<reference::Matrix> records;
  // When asked for, what is kept of the sequence after its last token: recurrent states by name; by the reference also
  // the keys and values of caches.
  std::map<std::string, reference::Matrix> states;
};

struct ExecutorOptions {
  bool records = false, states = false;
  int32_t chunk = 0; // rows per step of a sequence; 0: as many as a step holds
  bool together = true;
  int32_t threads = 0;
};

using Sequences = std::vector<std::vector<int32_t>>;

/// Of the artifact at `path`.
StatusOr<std::vector<SequenceLogits>> compiledLogits(const std::string &path, const Sequences &sequences,
                                                     const ExecutorOptions &options);
/// Of the llm module, in f32, whatever form the weights would be packed in.
StatusOr<std::vector<SequenceLogits>> referenceLogits(const Model &model, const CompileOptions &compile,
                                                      const Sequences &sequences, const ExecutorOptions &options);
/// Of the tile tasks on packed weights, with the arithmetic of the compiled program.
StatusOr<std::vector<SequenceLogits>> tileLogits(const Model &model, const CompileOptions &compile,
                                                 const Sequences &sequences, const ExecutorOptions &options);

} // namespace llmc
