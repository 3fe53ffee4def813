// Reads tokenizer.json. Every fault is one error with the JSON pointer of the value.
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/BpeModel.h"
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/PostProcessor.h"
#include "runtime/tokenizer/TokenizerParts.h"
#include "runtime/tokenizer/UnigramModel.h"
#include "runtime/tokenizer/WordPieceModel.h"
#include <cstdio>

namespace llmc {
namespace {

const Json null;

const Json &memberOrNull(const Json &value, std::string_view key) {
  const Json *member = find(value, key);
  return member ? *member : null;
}

StatusOr<bool> flag(const Json &value, std::string_view key, const std::string &pointer) {
  const Json &member = memberOrNull(value, key);
  if (member.is_null())
    return false;
  return asBool(member, pointer + "/" + std::string(key));
}

StatusOr<std::string> textOr(const Json &value, std::string_view key, const std::string &pointer,
                             const std::string &fallback) {
  const Json &member = memberOrNull(value, key);
  if (member.is_null())
    return fallback;
  return asString(member, pointer + "/" + std::string(key));
}

// The text of a string value in place: vocabularies are too large to copy.
const std::string *stringIn(const Json &value) { return value.get_ptr<const Json::string_t *>(); }

// Fills the vocabulary from an object {token: id}.
Status readVocabulary(const Json &model, Vocabulary &out) {
  const Json *vocab = find(model, "vocab");
  if (!vocab || !vocab->is_object())
    return Status::error("/model/vocab is missing or no object of tokens and ids");
  out.reserve(vocab->size(), vocab->size() * 8);
  for (auto entry = vocab->begin(); entry != vocab->end(); ++entry) {
    const auto *id = entry.value().get_ptr<const Json::number_unsigned_t *>();
    int64_t value = id && *id <= Vocabulary::maxId ? static_cast<int64_t>(*id) : -1;
    if (value < 0) {
      LLMC_ASSIGN_OR_RETURN(value, asInteger(entry.value(), "/model/vocab/" + entry.key(), 0, Vocabulary::maxId));
    }
    LLMC_RETURN_IF_ERROR(out.add(entry.key(), value, "/model/vocab"));
  }
  return {};
}

StatusOr<int32_t> idOf(const Vocabulary &vocabulary, std::string_view token, size_t merge) {
  if (std::optional<int32_t> id = vocabulary.id(token))
    return *id;
  return Status::error("/model/merges/" + std::to_string(merge) + ": '" + std::string(token) +
                       "' is not in the vocabulary");
}

// A merge is "left right" or ["left", "right"].
Status splitMerge(const Json &entry, size_t index, std::string_view &left, std::string_view &right) {
  if (const std::string *text = stringIn(entry)) {
    size_t blank = text->find(' ');
    if (blank != std::string::npos && text->find(' ', blank + 1) == std::string::npos) {
      left = std::string_view(*text).substr(0, blank);
      right = std::string_view(*text).substr(blank + 1);
      return {};
    }
  } else if (entry.is_array() && entry.size() == 2 && stringIn(entry[0]) && stringIn(entry[1])) {
    left = *stringIn(entry[0]);
    right = *stringIn(entry[1]);
    return {};
  }
  return Status::error("/model/merges/" + std::to_string(index) + " is " + brief(entry) +
                       ", expected two tokens: [\"a\", \"b\"] or \"a b\"");
}

Status readMerges(const Json &model, const Vocabulary &vocabulary, BpeOptions &options) {
  const Json *list = find(model, "merges");
  if (!list || !list->is_array())
    return Status::error("/model/merges is missing or no list");
  options.merges.reserve(list->size());
  std::string joined;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string_view left, right;
    LLMC_RETURN_IF_ERROR(splitMerge((*list)[i], i, left, right));
    LLMC_ASSIGN_OR_RETURN(int32_t leftId, idOf(vocabulary, left, i));
    LLMC_ASSIGN_OR_RETURN(int32_t rightId, idOf(vocabulary, right, i));
    // The right part carries the prefix of a word's continuation, the merged token does so only at its own start.
    if (right.size() < options.subwordPrefix.size())
      return Status::error("/model/merges/" + std::to_string(i) + ": '" + std::string(right) +
                           "' is shorter than continuing_subword_prefix");
    joined.assign(left).append(right.substr(options.subwordPrefix.size()));
    LLMC_ASSIGN_OR_RETURN(int32_t id, idOf(vocabulary, joined, i));
    options.merges.set(leftId, rightId, {static_cast<int32_t>(i), id});
  }
  return {};
}

void findBytePieces(const Vocabulary &vocabulary, std::array<int32_t, 256> &out) {
  for (int byte = 0; byte < 256; ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof piece, "<0x%02X>", byte);
    out[static_cast<size_t>(byte)] = vocabulary.id(piece).value_or(-1);
  }
}

// The ids of all byte letters; false when one is missing.
bool findByteLetters(const Vocabulary &vocabulary, std::array<int32_t, 256> &out) {
  for (size_t byte = 0; byte < 256; ++byte) {
    std::optional<int32_t> id = vocabulary.id(bytelevel::letter(static_cast<uint8_t>(byte)));
    if (!id)
      return false;
    out[byte] = *id;
  }
  return true;
}

StatusOr<std::optional<int32_t>> readUnknown(const Json &model, const Vocabulary &vocabulary,
                                             const AddedTokens &added) {
  const Json &name = memberOrNull(model, "unk_token");
  if (name.is_null())
    return std::optional<int32_t>();
  LLMC_ASSIGN_OR_RETURN(std::string token, asString(name, "/model/unk_token"));
  std::optional<int32_t> id = vocabulary.id(token);
  if (!id)
    id = added.id(token);
  if (!id)
    return Status::error("/model/unk_token '" + token + "' is not in the vocabulary");
  return id;
}

Status readBpe(const Json &model, Tokenizer::Parts &parts) {
  BpeOptions options;
  const Json &dropout = memberOrNull(model, "dropout");
  if (!dropout.is_null()) {
    LLMC_ASSIGN_OR_RETURN(double probability, asNumber(dropout, "/model/dropout"));
    if (probability != 0)
      return Status::error("/model/dropout is " + brief(dropout) + ", expected null or 0: ids must not be random");
  }
  LLMC_ASSIGN_OR_RETURN(options.unknown, readUnknown(model, *parts.vocabulary, parts.added));
  LLMC_ASSIGN_OR_RETURN(options.fuseUnknown, flag(model, "fuse_unk", "/model"));
  LLMC_ASSIGN_OR_RETURN(options.byteFallback, flag(model, "byte_fallback", "/model"));
  LLMC_ASSIGN_OR_RETURN(options.ignoreMerges, flag(model, "ignore_merges", "/model"));
  LLMC_ASSIGN_OR_RETURN(options.subwordPrefix, textOr(model, "continuing_subword_prefix", "/model", ""));
  LLMC_ASSIGN_OR_RETURN(options.wordSuffix, textOr(model, "end_of_word_suffix", "/model", ""));
  if (options.subwordPrefix.size() + options.wordSuffix.size() > 64)
    return Status::error("/model/continuing_subword_prefix and end_of_word_suffix have more than 64 bytes");
  LLMC_RETURN_IF_ERROR(readMerges(model, *parts.vocabulary, options));
  if (parts.preTokenizer.endsInByteLetters && options.subwordPrefix.empty() && options.wordSuffix.empty() &&
      findByteLetters(*parts.vocabulary, options.byteIds)) {
    options.start = BpeOptions::Start::ByteLetters;
  } else {
    if (parts.preTokenizer.endsInByteLetters)
      parts.preTokenizer.addLetterStep();
    findBytePieces(*parts.vocabulary, options.byteIds);
  }
  parts.model = makeBpeModel(parts.vocabulary, std::move(options));
  return {};
}

Status readWordPiece(const Json &model, Tokenizer::Parts &parts) {
  WordPieceOptions options;
  LLMC_ASSIGN_OR_RETURN(std::optional<int32_t> unknown, readUnknown(model, *parts.vocabulary, parts.added));
  if (!unknown)
    return Status::error("/model has no 'unk_token', WordPiece needs one");
  options.unknown = *unknown;
  LLMC_ASSIGN_OR_RETURN(options.prefix, textOr(model, "continuing_subword_prefix", "/model", "##"));
  if (const Json *most = find(model, "max_input_chars_per_word")) {
    LLMC_ASSIGN_OR_RETURN(options.maxCharacters, asInteger(*most, "/model/max_input_chars_per_word", 1, 1 << 12));
  }
  parts.model = makeWordPieceModel(parts.vocabulary, std::move(options));
  return {};
}

// Fills vocabulary and scores from a list [[token, score], ...]; the id is the place in the list.
Status readScored(const Json &model, Vocabulary &out, std::vector<double> &scores) {
  const Json *vocab = find(model, "vocab");
  if (!vocab || !vocab->is_array())
    return Status::error("/model/vocab is missing or no list of tokens and scores");
  out.reserve(vocab->size(), vocab->size() * 8);
  for (size_t i = 0; i < vocab->size(); ++i) {
    const Json &entry = (*vocab)[i];
    if (!entry.is_array() || entry.size() != 2 || !stringIn(entry[0]))
      return Status::error("/model/vocab/" + std::to_string(i) + " is " + brief(entry) +
                           ", expected [\"token\", score]");
    LLMC_ASSIGN_OR_RETURN(double score, asNumber(entry[1], "/model/vocab/" + std::to_string(i) + "/1"));
    if (!(score >= -1e9 && score <= 1e9))
      return Status::error("/model/vocab/" + std::to_string(i) + "/1 is " + brief(entry[1]) +
                           ", a score must be finite and below 1e9 in size");
    LLMC_RETURN_IF_ERROR(out.add(*stringIn(entry[0]), static_cast<int64_t>(i), "/model/vocab"));
    scores.push_back(score);
  }
  return {};
}

Status readUnigram(const Json &model, Tokenizer::Parts &parts, std::vector<double> scores) {
  UnigramOptions options;
  if (const Json &unknown = memberOrNull(model, "unk_id"); !unknown.is_null()) {
    LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(unknown, "/model/unk_id", 0, static_cast<int64_t>(scores.size()) - 1));
    options.unknown = static_cast<int32_t>(id);
  }
  LLMC_ASSIGN_OR_RETURN(options.byteFallback, flag(model, "byte_fallback", "/model"));
  findBytePieces(*parts.vocabulary, options.byteIds);
  options.scores = std::move(scores);
  LLMC_ASSIGN_OR_RETURN(parts.model, makeUnigramModel(parts.vocabulary, std::move(options)));
  return {};
}

StatusOr<AddedToken> readAddedToken(const Json &value, const std::string &pointer) {
  AddedToken token;
  const Json *id = find(value, "id"), *content = find(value, "content");
  if (!id || !content)
    return Status::error(pointer + " has no '" + (id ? "content" : "id") + "'");
  LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(*id, pointer + "/id", 0, Vocabulary::maxId));
  token.id = static_cast<int32_t>(number);
  LLMC_ASSIGN_OR_RETURN(token.content, asString(*content, pointer + "/content"));
  LLMC_ASSIGN_OR_RETURN(token.special, flag(value, "special", pointer));
  LLMC_ASSIGN_OR_RETURN(token.normalized, flag(value, "normalized", pointer));
  LLMC_ASSIGN_OR_RETURN(token.singleWord, flag(value, "single_word", pointer));
  LLMC_ASSIGN_OR_RETURN(token.stripLeft, flag(value, "lstrip", pointer));
  LLMC_ASSIGN_OR_RETURN(token.stripRight, flag(value, "rstrip", pointer));
  return token;
}

// Adds the tokens that the model's vocabulary lacks to `vocabulary`, hidden from its look-up.
StatusOr<AddedTokens> readAddedTokens(const Json &value, Vocabulary &vocabulary,
                                      const AddedTokens::Normalize &normalize) {
  std::vector<AddedToken> tokens;
  if (!value.is_null() && !value.is_array())
    return Status::error("/added_tokens is " + brief(value) + ", expected a list");
  for (size_t i = 0; i < value.size(); ++i) {
    std::string pointer = "/added_tokens/" + std::to_string(i);
    LLMC_ASSIGN_OR_RETURN(AddedToken token, readAddedToken(value[i], pointer));
    std::optional<int32_t> known = vocabulary.id(token.content);
    if (known && *known != token.id)
      return Status::error(pointer + "/id is " + std::to_string(token.id) + ", but /model/vocab gives '" +
                           token.content + "' the id " + std::to_string(*known));
    bool again = vocabulary.token(token.id) == std::string_view(token.content);
    if (!known && !again)
      LLMC_RETURN_IF_ERROR(vocabulary.addHidden(token.content, token.id, pointer));
    tokens.push_back(std::move(token));
  }
  return AddedTokens::build(std::move(tokens), normalize, "/added_tokens");
}

StatusOr<std::string> modelType(const Json &model) {
  if (const Json *type = find(model, "type"))
    return asString(*type, "/model/type");
  // Files of old versions do not say it.
  return std::string(find(model, "merges") ? "BPE" : find(model, "unk_id") ? "Unigram" : "WordPiece");
}

StatusOr<std::shared_ptr<Tokenizer::Parts>> readParts(const Json &root) {
  auto parts = std::make_shared<Tokenizer::Parts>();
  const Json *model = find(root, "model");
  if (!model || !model->is_object())
    return Status::error("/model is missing or no object");
  LLMC_ASSIGN_OR_RETURN(std::string type, modelType(*model));
  if (type != "BPE" && type != "WordPiece" && type != "Unigram")
    return Status::error("/model/type: tokenizer model '" + type +
                         "' is not supported (known = BPE, Unigram, WordPiece)");
  auto vocabulary = std::make_shared<Vocabulary>();
  std::vector<double> scores;
  LLMC_RETURN_IF_ERROR(type == "Unigram" ? readScored(*model, *vocabulary, scores)
                                         : readVocabulary(*model, *vocabulary));
  if (vocabulary->size() == 0)
    return Status::error("/model/vocab is empty");
  LLMC_ASSIGN_OR_RETURN(parts->normalizer, readNormalizer(memberOrNull(root, "normalizer"), "/normalizer"));
  auto normalize = [&](std::string_view text) -> StatusOr<std::string> {
    RegexBudget budget;
    std::string out(text);
    LLMC_RETURN_IF_ERROR(parts->normalize(out, budget));
    return out;
  };
  LLMC_ASSIGN_OR_RETURN(parts->added, readAddedTokens(memberOrNull(root, "added_tokens"), *vocabulary, normalize));
  parts->decodedAs = parts->added.decodedAs();
  parts->vocabulary = vocabulary;
  LLMC_ASSIGN_OR_RETURN(parts->preTokenizer, PreTokenizer::read(memberOrNull(root, "pre_tokenizer"), "/pre_tokenizer"));
  LLMC_ASSIGN_OR_RETURN(parts->decoder, Decoder::read(memberOrNull(root, "decoder"), "/decoder"));
  if (type != "BPE" && parts->preTokenizer.endsInByteLetters)
    parts->preTokenizer.addLetterStep();
  LLMC_RETURN_IF_ERROR(type == "BPE"         ? readBpe(*model, *parts)
                       : type == "WordPiece" ? readWordPiece(*model, *parts)
                                             : readUnigram(*model, *parts, std::move(scores)));
  LLMC_ASSIGN_OR_RETURN(PostProcessor post, PostProcessor::read(memberOrNull(root, "post_processor"), "/post_processor",
                                                                vocabulary->size()));
  parts->prefix = std::move(post.prefix);
  parts->suffix = std::move(post.suffix);
  if (parts->prefix.size() == 1)
    parts->bos = parts->prefix[0];
  if (parts->suffix.size() == 1)
    parts->eos = parts->suffix[0];
  return parts;
}

} // namespace

StatusOr<Tokenizer> Tokenizer::fromTokenizerJson(std::string_view json, const std::string &file) {
  if (json.size() > limits::tokenizerBytes)
    return Status::error(file + ": has " + std::to_string(json.size()) + " bytes, limit " +
                         std::to_string(limits::tokenizerBytes));
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(json, file));
  StatusOr<std::shared_ptr<Parts>> parts = readParts(root);
  if (!parts.ok())
    return parts.status().inside(file);
  return Tokenizer(std::move(*parts));
}

} // namespace llmc
