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

// tokenizer.json, else tokenizer.model, else a file of ranks (tiktoken.model and the like) with what it lacks; GGUF's
// vocabulary; kind "none" when the model has none of them.
StatusOr<TokenizerFiles> tokenizerFilesOf(const ModelFiles &files);
StatusOr<Tokenizer> tokenizerOf(const TokenizerFiles &files, const std::string &where);
// An error where text cannot become token ids of the model, before anything is compiled for that; `instead` is what to
// do then.
Status requireTokenizer(const ModelFiles &files, const std::string &instead);
// A tokenizer.json or .gguf file by its name, a tokenizer.model or file of ranks by its content, or a folder that has
// one of them. `pattern`, where not empty, is the regular expression of a file of ranks.
StatusOr<Tokenizer> tokenizerFromFile(const std::string &path, const std::string &pattern = "");

} // namespace llmc
