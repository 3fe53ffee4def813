// What a published model says about generating with it: stop ids, sampling settings, chat template, special tokens.
#pragma once
#include "lib/importer/ConfigSource.h"
#include "lib/importer/ModelSpec.h"

namespace llmc {

struct GenerationFacts {
  std::vector<int64_t> eosIds; // any of them ends a text
  std::optional<int64_t> bosId, padId;
  std::optional<bool> sample;
  std::optional<double> temperature, topP, minP, repetitionPenalty;
  std::optional<int64_t> topK;
  std::optional<bool> addBos, addEos;                              // whether the tokenizer adds them by itself
  std::string chatTemplate;                                        // empty: none
  std::vector<std::pair<std::string, std::string>> otherTemplates; // name ("tool_use") and source
  std::vector<std::pair<std::string, std::string>> specialTokens;  // "bos_token" and "<s>"
  std::vector<Fact> facts;
};

// For config.json, the files beside it in `folder` are read: generation_config.json, tokenizer_config.json,
// special_tokens_map.json, chat_template.jinja, chat_template.json, additional_chat_templates/*.jinja. All are
// optional. GGUF metadata states everything itself; `folder` is not used.
StatusOr<GenerationFacts> readGenerationFacts(const ConfigSource &config, const std::string &folder);

} // namespace llmc
