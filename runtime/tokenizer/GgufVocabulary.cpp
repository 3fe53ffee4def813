// Makes a tokenizer from a GGUF vocabulary, and writes and reads that vocabulary as JSON.
#include "runtime/tokenizer/GgufVocabulary.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/BpeModel.h"
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/GgufRecipes.h"
#include "runtime/tokenizer/ScoredBpe.h"
#include "runtime/tokenizer/TokenizerParts.h"
#include "runtime/tokenizer/Unicode.h"
#include <cmath>

namespace llmc {
namespace {

using Parts = Tokenizer::Parts;

Status checkSizes(const GgufVocabulary &in) {
  if (in.tokens.empty())
    return Status::error("tokenizer.ggml.tokens is empty");
  if (!in.tokenTypes.empty() && in.tokenTypes.size() != in.tokens.size())
    return Status::error("tokenizer.ggml.token_type has " + std::to_string(in.tokenTypes.size()) +
                         " entries, tokenizer.ggml.tokens " + std::to_string(in.tokens.size()));
  for (size_t i = 0; i < in.tokenTypes.size(); ++i)
    if (in.tokenTypes[i] < 1 || in.tokenTypes[i] > 6)
      return Status::error("tokenizer.ggml.token_type/" + std::to_string(i) + " is " +
                           std::to_string(in.tokenTypes[i]) + ", expected 1 to 6");
  for (auto [name, id] : {std::pair("bos", in.bosId), std::pair("eos", in.eosId), std::pair("unknown", in.unknownId)})
    if (id && (*id < 0 || static_cast<size_t>(*id) >= in.tokens.size()))
      return Status::error("tokenizer.ggml." + std::string(name) + "_token_id is " + std::to_string(*id) +
                           ", the vocabulary has " + std::to_string(in.tokens.size()) + " tokens");
  return {};
}

PieceType typeOf(const GgufVocabulary &in, size_t id) {
  return in.tokenTypes.empty() ? PieceType::Normal : static_cast<PieceType>(in.tokenTypes[id]);
}

// Control and user-defined tokens are found in a text; the first kind is special.
Status addTokens(const GgufVocabulary &in, Parts &parts) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(in.tokens.size(), in.tokens.size() * 8);
  std::vector<AddedToken> added;
  for (size_t i = 0; i < in.tokens.size(); ++i) {
    const std::string &text = in.tokens[i];
    auto id = static_cast<int32_t>(i);
    if (!unicode::isValidUtf8(text))
      return Status::error("tokenizer.ggml.tokens/" + std::to_string(i) + " is not valid UTF-8");
    PieceType type = typeOf(in, i);
    bool found = type == PieceType::Control || type == PieceType::UserDefined;
    // Fillers repeat a name, or have none; they must decode, and encoding never gives them.
    bool hidden = found || text.empty() || (type == PieceType::Unused && vocabulary->id(text));
    LLMC_RETURN_IF_ERROR(hidden ? vocabulary->addHidden(text, id, "tokenizer.ggml.tokens")
                                : vocabulary->add(text, id, "tokenizer.ggml.tokens"));
    if (found && !text.empty())
      added.push_back({text, id, /*special=*/type == PieceType::Control});
  }
  parts.vocabulary = vocabulary;
  auto asIs = [](std::string_view t) -> StatusOr<std::string> { return std::string(t); };
  LLMC_ASSIGN_OR_RETURN(parts.added, AddedTokens::build(std::move(added), asIs, "added tokens"));
  return {};
}

// A part of a merge may be an added token's text: runs of blanks are such in some vocabularies.
StatusOr<int32_t> mergePart(const Parts &parts, std::string_view text, size_t index) {
  std::optional<int32_t> id = parts.vocabulary->id(text);
  if (!id)
    id = parts.added.id(text);
  if (!id)
    return Status::error("tokenizer.ggml.merges/" + std::to_string(index) + ": '" + std::string(text) +
                         "' is not in the vocabulary");
  return *id;
}

Status readMerges(const GgufVocabulary &in, const Parts &parts, BpeOptions &options) {
  options.merges.reserve(in.merges.size());
  for (size_t i = 0; i < in.merges.size(); ++i) {
    std::string_view merge = in.merges[i];
    // A byte letter is never a blank: the first blank beyond the first character parts the two.
    size_t blank = merge.find(' ', 1);
    if (blank == merge.npos || blank + 1 == merge.size())
      return Status::error("tokenizer.ggml.merges/" + std::to_string(i) + " is '" + std::string(merge.substr(0, 60)) +
                           "', expected two tokens with a blank between");
    std::string_view left = merge.substr(0, blank), right = merge.substr(blank + 1);
    LLMC_ASSIGN_OR_RETURN(int32_t leftId, mergePart(parts, left, i));
    LLMC_ASSIGN_OR_RETURN(int32_t rightId, mergePart(parts, right, i));
    LLMC_ASSIGN_OR_RETURN(int32_t id, mergePart(parts, std::string(left) + std::string(right), i));
    options.merges.set(leftId, rightId, {static_cast<int32_t>(i), id});
  }
  return {};
}

Status buildByteLevel(const GgufVocabulary &in, Parts &parts) {
  const GgufRecipe *recipe = findGgufRecipe(in.pre);
  if (!recipe)
    return Status::error("tokenizer.ggml.pre '" + in.pre + "' is unknown (known = " + knownGgufRecipes() + ")");
  if (in.merges.empty())
    return Status::error("tokenizer.ggml.merges is missing");
  LLMC_RETURN_IF_ERROR(addTokens(in, parts));
  LLMC_ASSIGN_OR_RETURN(Json description, parseJson(recipe->preTokenizer, "recipe " + in.pre));
  LLMC_ASSIGN_OR_RETURN(parts.preTokenizer, PreTokenizer::read(description, "recipe " + in.pre));
  if (recipe->normalizeNfc) {
    LLMC_ASSIGN_OR_RETURN(parts.normalizer, readNormalizer(Json{{"type", "NFC"}}, "recipe " + in.pre));
  }
  BpeOptions options;
  // A recipe with a step after the byte letters has written them out already.
  bool onBytes = parts.preTokenizer.endsInByteLetters;
  options.start = onBytes ? BpeOptions::Start::ByteLetters : BpeOptions::Start::Characters;
  options.unknown = in.unknownId;
  options.ignoreMerges = recipe->ignoreMerges;
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string letter(bytelevel::letter(static_cast<uint8_t>(byte)));
    std::optional<int32_t> id = parts.vocabulary->id(letter);
    // Vocabularies trained without a byte exist; a text with it gives the unknown token.
    options.byteIds[byte] = id ? *id : in.unknownId.value_or(-1);
    if (options.byteIds[byte] < 0)
      return Status::error("tokenizer.ggml.tokens lacks the byte letter '" + letter + "' of byte " +
                           std::to_string(byte) + ", and there is no unknown token");
  }
  LLMC_RETURN_IF_ERROR(readMerges(in, parts, options));
  parts.model = makeBpeModel(parts.vocabulary, std::move(options));
  parts.decoder = makeByteLetterDecoder();
  return {};
}

Status buildScored(const GgufVocabulary &in, Parts &parts) {
  if (in.scores.size() != in.tokens.size())
    return Status::error("tokenizer.ggml.scores has " + std::to_string(in.scores.size()) +
                         " entries, tokenizer.ggml.tokens " + std::to_string(in.tokens.size()));
  LLMC_RETURN_IF_ERROR(addTokens(in, parts));
  std::vector<PieceType> types;
  for (size_t i = 0; i < in.tokens.size(); ++i)
    types.push_back(typeOf(in, i));
  LLMC_ASSIGN_OR_RETURN(BpeOptions options,
                        scoredBpeOptions(*parts.vocabulary, in.scores, types, "tokenizer.ggml.tokens"));
  if (in.unknownId)
    options.unknown = in.unknownId;
  if (!options.unknown && !options.byteFallback)
    return Status::error("tokenizer.ggml.tokens has neither byte pieces nor an unknown token");
  parts.model = makeBpeModel(parts.vocabulary, std::move(options));
  bool prefix = in.addSpacePrefix.value_or(true);
  parts.normalizer = makeSpaceMarker(prefix);
  parts.decoder = makeSentencePieceDecoder(prefix ? FirstBlank::Drop : FirstBlank::Keep);
  return {};
}

StatusOr<std::shared_ptr<Parts>> build(const GgufVocabulary &in) {
  auto parts = std::make_shared<Parts>();
  LLMC_RETURN_IF_ERROR(checkSizes(in));
  std::optional<GgufModelKind> kind = findGgufModelKind(in.model);
  if (!kind)
    return Status::error("tokenizer.ggml.model '" + in.model + "' is not supported (known = " + knownGgufModelKinds() +
                         ")");
  bool byteLevel = *kind == GgufModelKind::ByteLevelBpe;
  LLMC_RETURN_IF_ERROR(byteLevel ? buildByteLevel(in, *parts) : buildScored(in, *parts));
  parts->bos = in.bosId;
  parts->eos = in.eosId;
  const GgufRecipe *recipe = byteLevel ? findGgufRecipe(in.pre) : nullptr;
  if (in.bosId && in.addBos.value_or(recipe ? recipe->addBos : true))
    parts->prefix = {*in.bosId};
  if (in.eosId && in.addEos.value_or(false))
    parts->suffix = {*in.eosId};
  return parts;
}

Json optionalJson(const auto &value) { return value ? Json(*value) : Json(nullptr); }

StatusOr<std::vector<std::string>> readStrings(const Json &root, const char *key) {
  std::vector<std::string> out;
  const Json *list = find(root, key);
  if (!list || !list->is_array())
    return Status::error("/" + std::string(key) + " is missing or no list");
  out.reserve(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(std::string text, asString((*list)[i], "/" + std::string(key) + "/" + std::to_string(i)));
    out.push_back(std::move(text));
  }
  return out;
}

StatusOr<std::optional<int32_t>> readId(const Json &root, const char *key) {
  const Json *value = find(root, key);
  if (!value || value->is_null())
    return std::optional<int32_t>();
  LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(*value, "/" + std::string(key), 0, Vocabulary::maxId));
  return std::optional(static_cast<int32_t>(id));
}

StatusOr<std::optional<bool>> readFlag(const Json &root, const char *key) {
  const Json *value = find(root, key);
  if (!value || value->is_null())
    return std::optional<bool>();
  LLMC_ASSIGN_OR_RETURN(bool flag, asBool(*value, "/" + std::string(key)));
  return std::optional(flag);
}

Status readNumbers(const Json &root, GgufVocabulary &out) {
  const Json *scores = find(root, "scores"), *types = find(root, "token_types");
  for (size_t i = 0; scores && scores->is_array() && i < scores->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(double score, asNumber((*scores)[i], "/scores/" + std::to_string(i)));
    out.scores.push_back(static_cast<float>(score));
  }
  for (size_t i = 0; types && types->is_array() && i < types->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(int64_t type, asInteger((*types)[i], "/token_types/" + std::to_string(i), 1, 6));
    out.tokenTypes.push_back(static_cast<int32_t>(type));
  }
  return {};
}

StatusOr<GgufVocabulary> readVocabulary(const Json &root) {
  GgufVocabulary out;
  const Json *model = find(root, "model"), *pre = find(root, "pre");
  if (!model || !pre)
    return Status::error(std::string(model ? "/pre" : "/model") + " is missing");
  LLMC_ASSIGN_OR_RETURN(out.model, asString(*model, "/model"));
  LLMC_ASSIGN_OR_RETURN(out.pre, asString(*pre, "/pre"));
  LLMC_ASSIGN_OR_RETURN(out.tokens, readStrings(root, "tokens"));
  LLMC_ASSIGN_OR_RETURN(out.merges, readStrings(root, "merges"));
  LLMC_RETURN_IF_ERROR(readNumbers(root, out));
  LLMC_ASSIGN_OR_RETURN(out.bosId, readId(root, "bos_id"));
  LLMC_ASSIGN_OR_RETURN(out.eosId, readId(root, "eos_id"));
  LLMC_ASSIGN_OR_RETURN(out.unknownId, readId(root, "unknown_id"));
  LLMC_ASSIGN_OR_RETURN(out.addBos, readFlag(root, "add_bos"));
  LLMC_ASSIGN_OR_RETURN(out.addEos, readFlag(root, "add_eos"));
  LLMC_ASSIGN_OR_RETURN(out.addSpacePrefix, readFlag(root, "add_space_prefix"));
  return out;
}

} // namespace

StatusOr<Tokenizer> Tokenizer::fromGguf(const GgufVocabulary &vocabulary, const std::string &file) {
  StatusOr<std::shared_ptr<Parts>> parts = build(vocabulary);
  if (!parts.ok())
    return parts.status().inside(file);
  return Tokenizer(std::move(*parts));
}

std::string ggufVocabularyToJson(const GgufVocabulary &in) {
  Json root = {{"model", in.model},
               {"pre", in.pre},
               {"bos_id", optionalJson(in.bosId)},
               {"eos_id", optionalJson(in.eosId)},
               {"unknown_id", optionalJson(in.unknownId)},
               {"add_bos", optionalJson(in.addBos)},
               {"add_eos", optionalJson(in.addEos)},
               {"add_space_prefix", optionalJson(in.addSpacePrefix)},
               {"tokens", in.tokens},
               {"token_types", in.tokenTypes},
               {"scores", in.scores},
               {"merges", in.merges}};
  return root.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

StatusOr<GgufVocabulary> ggufVocabularyFromJson(std::string_view json, const std::string &file) {
  if (json.size() > limits::tokenizerBytes)
    return Status::error(file + ": has " + std::to_string(json.size()) + " bytes, limit " +
                         std::to_string(limits::tokenizerBytes));
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(json, file));
  StatusOr<GgufVocabulary> vocabulary = readVocabulary(root);
  return vocabulary.ok() ? std::move(vocabulary) : StatusOr<GgufVocabulary>(vocabulary.status().inside(file));
}

} // namespace llmc
