// The tokenizer and chat template of a published model: as the artifact stores them, and ready to use.
#pragma once
#include "runtime/tokenizer/Tokenizer.h"
#include "tools/llmc/Model.h"
#include <optional>

namespace llmc {

// A tokenizer as files of an artifact: kind as in runtime/artifact/FORMAT.md, names and contents.
struct TokenizerFiles {
  std::string kind = "none";
  std::vector<std::pair<std::string, std::string>> files;
};

// tokenizer.json, else tokenizer.model, else GGUF's vocabulary; kind "none" when the model has none of them.
StatusOr<TokenizerFiles> tokenizerFilesOf(const Model &model);
StatusOr<Tokenizer> tokenizerOf(const TokenizerFiles &files, const std::string &where);
// A tokenizer.json, tokenizer.model or .gguf file by its name.
StatusOr<Tokenizer> tokenizerFromFile(const std::string &path);

} // namespace llmc
