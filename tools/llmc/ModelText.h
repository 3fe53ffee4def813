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
StatusOr<TokenizerFiles> tokenizerFilesOf(const ModelFiles &files);
StatusOr<Tokenizer> tokenizerOf(const TokenizerFiles &files, const std::string &where);
// An error where text cannot become token ids of the model, before anything is compiled for that; `instead` is what to
// do then.
Status requireTokenizer(const ModelFiles &files, const std::string &instead);
bool isTiktokenFile(const std::string &path);
// A tokenizer.json, tokenizer.model, tiktoken.model or .gguf file by its name, or a folder that has one of them. The
// regular expression of a tiktoken file is `pattern` or, where that is empty, the one that about.json or
// tokenizer_config.json beside it states.
StatusOr<Tokenizer> tokenizerFromFile(const std::string &path, const std::string &pattern = "");

} // namespace llmc
