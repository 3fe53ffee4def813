#include "tools/llmc/ModelText.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/GgufVocabulary.h"
#include <algorithm>

namespace llmc {
namespace {

constexpr char vocabularyFile[] = "vocabulary.json";
// In the order of preference.
constexpr const char *tokenizerFileNames[] = {"tokenizer.json", "tokenizer.model", "tiktoken.model"};

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
  for (const char *name : tokenizerFileNames)
    if (fileExists(folder + "/" + name))
      return folder + "/" + name;
  std::string names;
  for (const char *name : tokenizerFileNames)
    names += std::string(names.empty() ? "" : ", ") + name;
  return Status::error(folder + ": has no tokenizer (looked for " + names + ")");
}

// What tokenizer_config.json says of added tokens: {"added_tokens_decoder": {"1500": {"content": "[BOS]", ...}}}.
Status readAddedTokens(TiktokenOptions &options, const Json &config, const std::string &file) {
  const Json none = Json::object();
  const Json *added = find(config, "added_tokens_decoder");
  for (const auto &[key, token] : (added && added->is_object() ? *added : none).items()) {
    std::string where = file + ": /added_tokens_decoder/" + key;
    const Json *content = find(token, "content"), *special = find(token, "special");
    int64_t id =
        key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos ? -1 : std::stol(key);
    if (id < 0 || !content)
      return Status::error(where + " is " + brief(token) + ", expected a token with content under its id");
    TiktokenOptions::Special out;
    out.id = static_cast<int32_t>(id);
    LLMC_ASSIGN_OR_RETURN(out.content, asString(*content, where + "/content"));
    if (special) {
      LLMC_ASSIGN_OR_RETURN(out.special, asBool(*special, where + "/special"));
    }
    for (auto [name, place] : {std::pair("bos_token", &options.bosId), std::pair("eos_token", &options.eosId)})
      if (const Json *named = find(config, name); named && named->is_string() && *named == out.content)
        *place = out.id;
    options.specials.push_back(std::move(out));
  }
  return {};
}

// What about.json says: {"special": {"[BOS]": 1500}}, where tokenizer_config.json has not said more.
Status readSpecialIds(TiktokenOptions &options, const Json &about, const std::string &file) {
  const Json none = Json::object();
  const Json *special = find(about, "special");
  for (const auto &[content, value] : (special && special->is_object() ? *special : none).items()) {
    LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(value, file + ": /special/" + content, 0, INT32_MAX));
    bool known =
        std::any_of(options.specials.begin(), options.specials.end(), [&](const auto &s) { return s.id == id; });
    if (!known)
      options.specials.push_back({content, static_cast<int32_t>(id)});
  }
  return {};
}

// A tiktoken file holds ranks only; the rest is in files beside it, or given.
StatusOr<TiktokenOptions> tiktokenOptionsFor(const std::string &path, const std::string &pattern) {
  TiktokenOptions options;
  options.pattern = pattern;
  std::string folder = path.substr(0, path.find_last_of('/') + 1);
  for (const char *name : {"tokenizer_config.json", "about.json"}) {
    std::string file = folder + name;
    if (!fileExists(file))
      continue;
    LLMC_ASSIGN_OR_RETURN(Json config, readJsonFile(file, limits::configBytes));
    if (const Json *stated = find(config, "pattern"); stated && options.pattern.empty()) {
      LLMC_ASSIGN_OR_RETURN(options.pattern, asString(*stated, file + ": /pattern"));
    }
    LLMC_RETURN_IF_ERROR(readAddedTokens(options, config, file));
    LLMC_RETURN_IF_ERROR(readSpecialIds(options, config, file));
  }
  if (options.pattern.empty())
    return Status::error(path + ": a tiktoken file does not hold the regular expression that cuts text, and no "
                                "tokenizer_config.json or about.json beside it states a \"pattern\"; give --pattern");
  return options;
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
  for (auto [kind, name] :
       {std::pair(tokenizerJsonKind, "tokenizer.json"), std::pair(sentencePieceKind, "tokenizer.model")}) {
    std::string path = files.sideFile(name);
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

Status requireTokenizer(const ModelFiles &files, const std::string &instead) {
  LLMC_ASSIGN_OR_RETURN(TokenizerFiles tokenizer, tokenizerFilesOf(files));
  if (tokenizer.files.empty())
    return Status::error(files.path() + ": has no tokenizer; " + instead);
  return tokenizerOf(tokenizer, files.path()).status();
}

bool isTiktokenFile(const std::string &path) { return path.ends_with("tiktoken.model") || path.ends_with(".tiktoken"); }

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
  if (!isTiktokenFile(path))
    return Tokenizer::fromSentencePiece(bytes, path);
  LLMC_ASSIGN_OR_RETURN(TiktokenOptions options, tiktokenOptionsFor(path, pattern));
  return Tokenizer::fromTiktoken(bytes, std::move(options), path);
}

} // namespace llmc
