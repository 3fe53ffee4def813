// The vocabulary of a GGUF file as plain data: what its reader fills and an artifact stores.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// Fields are the metadata keys tokenizer.ggml.*, of the same meaning.
struct GgufVocabulary {
  std::string model; // "gpt2": byte-level BPE with merges; "llama": BPE by scores
  std::string pre;   // names the pre-tokenizer of a "gpt2" vocabulary
  std::vector<std::string> tokens;
  std::vector<float> scores;       // by id; "llama" needs them
  std::vector<int32_t> tokenTypes; // by id, 1 normal to 6 byte; empty: all normal
  std::vector<std::string> merges; // "left right", best first; "gpt2" needs them
  std::optional<int32_t> bosId, eosId, unknownId;
  // Absent: the default of the kind of vocabulary.
  std::optional<bool> addBos, addEos, addSpacePrefix;
};

std::string ggufVocabularyToJson(const GgufVocabulary &vocabulary);
// `file` names the source in messages. The sizes of the lists are checked by Tokenizer::fromGguf, not here.
StatusOr<GgufVocabulary> ggufVocabularyFromJson(std::string_view json, const std::string &file);

} // namespace llmc
