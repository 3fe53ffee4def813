#include "tools/llmc/ModelText.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/GgufVocabulary.h"

namespace llmc {
namespace {

constexpr char vocabularyFile[] = "vocabulary.json";

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
  for (auto [key, flag] : {std::pair("add_bos_token", &vocabulary.addBos), std::pair("add_eos_token", &vocabulary.addEos),
                           std::pair("add_space_prefix", &vocabulary.addSpacePrefix)}) {
    if (!metadata.has(prefix + key))
      continue;
    LLMC_ASSIGN_OR_RETURN(*flag, metadata.boolean(prefix + key));
  }
  return vocabulary;
}

} // namespace

StatusOr<TokenizerFiles> tokenizerFilesOf(const Model &model) {
  TokenizerFiles result;
  if (const GgufMetadata *metadata = model.files.gguf()) {
    if (!metadata->has("tokenizer.ggml.tokens"))
      return result;
    LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabulary(*metadata));
    return TokenizerFiles{ggufKind, {{vocabularyFile, ggufVocabularyToJson(vocabulary)}}};
  }
  for (auto [kind, name] : {std::pair(tokenizerJsonKind, "tokenizer.json"), std::pair(sentencePieceKind, "tokenizer.model")}) {
    std::string path = model.files.sideFile(name);
    if (path.empty())
      continue;
    LLMC_ASSIGN_OR_RETURN(std::string bytes, readFile(path, limits::tokenizerBytes));
    return TokenizerFiles{kind, {{name, std::move(bytes)}}};
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
  LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabularyFromJson(bytes, where));
  return Tokenizer::fromGguf(vocabulary, where);
}

StatusOr<Tokenizer> tokenizerFromFile(const std::string &path) {
  if (path.ends_with(".gguf")) {
    LLMC_ASSIGN_OR_RETURN(GgufHeader header, readGgufHeader(path));
    LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabulary(header.metadata));
    return Tokenizer::fromGguf(vocabulary, path);
  }
  LLMC_ASSIGN_OR_RETURN(std::string bytes, readFile(path, limits::tokenizerBytes));
  return path.ends_with(".json") ? Tokenizer::fromTokenizerJson(bytes, path) : Tokenizer::fromSentencePiece(bytes, path);
}

} // namespace llmc
