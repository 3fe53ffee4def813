#include "tools/llmc/ModelText.h"
#include "lib/importer/TextDescription.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/GgufVocabulary.h"
#include "runtime/tokenizer/TiktokenOptions.h"
#include "tools/llmc/TiktokenFiles.h"

namespace llmc {
namespace {

constexpr char vocabularyFile[] = "vocabulary.json";
constexpr char tiktokenOptionsFile[] = "tiktoken.json";

StatusOr<GgufVocabulary> ggufVocabulary(const GgufMetadata &metadata) {
  const std::string prefix = "tokenizer.ggml.";
  GgufVocabulary vocabulary;
  LLMC_ASSIGN_OR_RETURN(vocabulary.model, metadata.string(prefix + "model"));
  if (metadata.has(prefix + "pre")) {
    LLMC_ASSIGN_OR_RETURN(vocabulary.pre, metadata.string(prefix + "pre"));
  }
  LLMC_ASSIGN_OR_RETURN(vocabulary.tokens, metadata.strings(prefix + "tokens"));
  if (metadata.has(prefix + "scores")) {
    LLMC_ASSIGN_OR_RETURN(std::vector<double> scores, metadata.numbers(prefix + "scores"));
    vocabulary.scores.assign(scores.begin(), scores.end());
  }
  if (metadata.has(prefix + "token_type")) {
    LLMC_ASSIGN_OR_RETURN(std::vector<int64_t> types, metadata.integers(prefix + "token_type", 0, 6));
    vocabulary.tokenTypes.assign(types.begin(), types.end());
  }
  if (metadata.has(prefix + "merges")) {
    LLMC_ASSIGN_OR_RETURN(vocabulary.merges, metadata.strings(prefix + "merges"));
  }
  for (auto [key, id] : {std::pair("bos_token_id", &vocabulary.bosId), std::pair("eos_token_id", &vocabulary.eosId),
                         std::pair("unknown_token_id", &vocabulary.unknownId)}) {
    if (!metadata.has(prefix + key))
      continue;
    LLMC_ASSIGN_OR_RETURN(int64_t value, metadata.integer(prefix + key, 0, INT32_MAX));
    *id = static_cast<int32_t>(value);
  }
  for (auto [key, flag] :
       {std::pair("add_bos_token", &vocabulary.addBos), std::pair("add_eos_token", &vocabulary.addEos),
        std::pair("add_space_prefix", &vocabulary.addSpacePrefix)}) {
    if (!metadata.has(prefix + key))
      continue;
    LLMC_ASSIGN_OR_RETURN(*flag, metadata.boolean(prefix + key));
  }
  return vocabulary;
}

StatusOr<std::string> tokenizerFileIn(const std::string &folder) {
  LLMC_ASSIGN_OR_RETURN(TextDescriptions texts, TextDescriptions::load());
  std::vector<std::string> names = {"tokenizer.json", "tokenizer.model"};
  for (std::string &name : texts.tiktokenFiles())
    names.push_back(std::move(name));
  std::string known;
  for (const std::string &name : names) {
    if (fileExists(folder + "/" + name))
      return folder + "/" + name;
    known += (known.empty() ? "" : ", ") + name;
  }
  return Status::error(folder + ": has no tokenizer (looked for " + known + ")");
}

// A file of ranks, and what it lacks.
StatusOr<TokenizerFiles> tiktokenFilesOf(const ModelFiles &files, const std::string &path, std::string ranks) {
  LLMC_ASSIGN_OR_RETURN(TiktokenOptions options, tiktokenOptionsFor(ranks, path, files.configPath()));
  return TokenizerFiles{tiktokenKind,
                        {{"tiktoken.model", std::move(ranks)}, {tiktokenOptionsFile, tiktokenOptionsToJson(options)}}};
}

} // namespace

StatusOr<TokenizerFiles> tokenizerFilesOf(const ModelFiles &files) {
  TokenizerFiles result;
  if (const GgufMetadata *metadata = files.gguf()) {
    if (!metadata->has("tokenizer.ggml.tokens"))
      return result;
    LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabulary(*metadata));
    return TokenizerFiles{ggufKind, {{vocabularyFile, ggufVocabularyToJson(vocabulary)}}};
  }
  if (std::string path = files.sideFile("tokenizer.json"); !path.empty()) {
    LLMC_ASSIGN_OR_RETURN(std::string bytes, readFile(path, limits::tokenizerBytes));
    return TokenizerFiles{tokenizerJsonKind, {{"tokenizer.json", std::move(bytes)}}};
  }
  if (std::string path = files.sideFile("tokenizer.model"); !path.empty()) {
    LLMC_ASSIGN_OR_RETURN(std::string bytes, readFile(path, limits::tokenizerBytes));
    if (looksLikeTiktoken(bytes))
      return tiktokenFilesOf(files, path, std::move(bytes));
    return TokenizerFiles{sentencePieceKind, {{"tokenizer.model", std::move(bytes)}}};
  }
  LLMC_ASSIGN_OR_RETURN(TextDescriptions texts, TextDescriptions::load());
  for (const std::string &name : texts.tiktokenFiles()) {
    std::string path = files.sideFile(name);
    if (path.empty())
      continue;
    LLMC_ASSIGN_OR_RETURN(std::string ranks, readFile(path, limits::tokenizerBytes));
    return tiktokenFilesOf(files, path, std::move(ranks));
  }
  return result;
}

StatusOr<Tokenizer> tokenizerOf(const TokenizerFiles &files, const std::string &where) {
  if (files.files.empty())
    return Status::error(where + ": has no tokenizer; give token ids instead of text");
  const auto &[name, bytes] = files.files.front();
  if (files.kind == tokenizerJsonKind)
    return Tokenizer::fromTokenizerJson(bytes, where + "/" + name);
  if (files.kind == sentencePieceKind)
    return Tokenizer::fromSentencePiece(bytes, where + "/" + name);
  if (files.kind == tiktokenKind) {
    LLMC_ASSIGN_OR_RETURN(TiktokenOptions options, tiktokenOptionsFromJson(files.files.back().second, where));
    return Tokenizer::fromTiktoken(bytes, std::move(options), where + "/" + name);
  }
  LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabularyFromJson(bytes, where));
  return Tokenizer::fromGguf(vocabulary, where);
}

Status requireTokenizer(const ModelFiles &files, const std::string &instead) {
  LLMC_ASSIGN_OR_RETURN(TokenizerFiles tokenizer, tokenizerFilesOf(files));
  if (tokenizer.files.empty())
    return Status::error(files.path() + ": has no tokenizer; " + instead);
  return tokenizerOf(tokenizer, files.path()).status();
}

StatusOr<Tokenizer> tokenizerFromFile(const std::string &path, const std::string &pattern) {
  if (isFolder(path)) {
    LLMC_ASSIGN_OR_RETURN(std::string file, tokenizerFileIn(path));
    return tokenizerFromFile(file, pattern);
  }
  if (path.ends_with(".gguf")) {
    LLMC_ASSIGN_OR_RETURN(GgufHeader header, readGgufHeader(path));
    LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabulary(header.metadata));
    return Tokenizer::fromGguf(vocabulary, path);
  }
  LLMC_ASSIGN_OR_RETURN(std::string bytes, readFile(path, limits::tokenizerBytes));
  if (path.ends_with(".json"))
    return Tokenizer::fromTokenizerJson(bytes, path);
  if (!looksLikeTiktoken(bytes))
    return Tokenizer::fromSentencePiece(bytes, path);
  std::string config = path.substr(0, path.find_last_of('/') + 1) + "config.json";
  LLMC_ASSIGN_OR_RETURN(TiktokenOptions options, tiktokenOptionsFor(bytes, path, config, pattern));
  return Tokenizer::fromTiktoken(bytes, std::move(options), path);
}

} // namespace llmc
