// Reads sentencepiece's tokenizer.model: the subset of its protocol buffer that encoding and decoding need. The
// normalizer below follows sentencepiece's own, which differs from tokenizer.json's.
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/CharacterMap.h"
#include "runtime/tokenizer/ProtobufReader.h"
#include "runtime/tokenizer/ScoredBpe.h"
#include "runtime/tokenizer/TokenizerParts.h"
#include "runtime/tokenizer/Unicode.h"
#include "runtime/tokenizer/UnigramModel.h"
#include <algorithm>
#include <cfloat>
#include <cmath>

namespace llmc {
namespace {

constexpr std::string_view spaceMark = "\xE2\x96\x81";

// The message fields, with the defaults of sentencepiece_model.proto.
struct Model {
  std::vector<std::string_view> pieces;
  std::vector<float> scores;
  std::vector<PieceType> types;
  enum class Kind : int64_t { Unigram = 1, Bpe = 2, Word = 3, Char = 4 } kind = Kind::Unigram;
  bool spaceAsSuffix = false, byteFallback = false;
  std::string_view unknownSurface = " \xE2\x81\x87 ";
  int64_t bosId = 1, eosId = 2;
  std::string_view characterMap;
  bool addDummyPrefix = true, removeExtraBlanks = true, escapeBlanks = true;
};

Status readPiece(const ProtobufReader::Field &message, Model &out) {
  ProtobufReader reader(message.bytes, message.offset);
  ProtobufReader::Field field;
  std::string_view text;
  float score = 0;
  uint64_t type = 1;
  while (true) {
    LLMC_ASSIGN_OR_RETURN(bool more, reader.next(field));
    if (!more)
      break;
    if (field.number == 1)
      text = field.bytes;
    if (field.number == 2)
      score = field.asFloat();
    if (field.number == 3)
      type = field.integer;
  }
  std::string where = "piece " + std::to_string(out.pieces.size());
  if (type < 1 || type > 6)
    return Status::error(where + " has the type " + std::to_string(type) + ", expected 1 to 6");
  if (text.empty())
    return Status::error(where + " is empty");
  if (!unicode::isValidUtf8(text))
    return Status::error(where + " is not valid UTF-8");
  out.pieces.push_back(text);
  out.scores.push_back(score);
  out.types.push_back(static_cast<PieceType>(type));
  return {};
}

Status readTrainer(const ProtobufReader::Field &message, Model &out) {
  ProtobufReader reader(message.bytes, message.offset);
  ProtobufReader::Field field;
  while (true) {
    LLMC_ASSIGN_OR_RETURN(bool more, reader.next(field));
    if (!more)
      return {};
    switch (field.number) {
    case 3:
      if (field.integer != 1 && field.integer != 2)
        return Status::error("trainer_spec/model_type is " + std::to_string(field.integer) +
                             ", supported are 1 (unigram) and 2 (bpe)");
      out.kind = static_cast<Model::Kind>(field.integer);
      break;
    case 24:
      out.spaceAsSuffix = field.integer != 0;
      break;
    case 35:
      out.byteFallback = field.integer != 0;
      break;
    case 41:
      out.bosId = static_cast<int64_t>(field.integer);
      break;
    case 42:
      out.eosId = static_cast<int64_t>(field.integer);
      break;
    case 44:
      if (!unicode::isValidUtf8(field.bytes))
        return Status::error("trainer_spec/unk_surface is not valid UTF-8");
      out.unknownSurface = field.bytes;
      break;
    default:
      break;
    }
  }
}

Status readNormalizerSpec(const ProtobufReader::Field &message, Model &out) {
  ProtobufReader reader(message.bytes, message.offset);
  ProtobufReader::Field field;
  while (true) {
    LLMC_ASSIGN_OR_RETURN(bool more, reader.next(field));
    if (!more)
      return {};
    if (field.number == 2)
      out.characterMap = field.bytes;
    if (field.number == 3)
      out.addDummyPrefix = field.integer != 0;
    if (field.number == 4)
      out.removeExtraBlanks = field.integer != 0;
    if (field.number == 5)
      out.escapeBlanks = field.integer != 0;
  }
}

StatusOr<Model> readModel(std::string_view bytes) {
  Model out;
  ProtobufReader reader(bytes);
  ProtobufReader::Field field;
  while (true) {
    LLMC_ASSIGN_OR_RETURN(bool more, reader.next(field));
    if (!more)
      break;
    if (field.number <= 3 && field.kind != ProtobufReader::Field::Kind::Bytes)
      return Status::error("field " + std::to_string(field.number) + " is no message; this is no sentencepiece model");
    if (field.number == 1)
      LLMC_RETURN_IF_ERROR(readPiece(field, out));
    if (field.number == 2)
      LLMC_RETURN_IF_ERROR(readTrainer(field, out));
    if (field.number == 3)
      LLMC_RETURN_IF_ERROR(readNormalizerSpec(field, out));
  }
  if (out.pieces.empty())
    return Status::error("the file has no pieces; this is no sentencepiece model");
  return out;
}

class SentencePieceNormalizer : public Normalizer {
public:
  CharacterMap map;
  ByteTrie userDefined; // texts that the character map does not touch
  bool addDummyPrefix, spaceAsSuffix, removeExtraBlanks;
  std::string_view blank; // what a blank is written as

  StatusOr<std::string> apply(std::string text, RegexBudget &) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    std::string_view rest = text;
    std::string_view part;
    while (removeExtraBlanks && !rest.empty()) {
      size_t size = nextPart(rest, part);
      if (part != " ")
        break;
      rest.remove_prefix(size);
    }
    if (rest.empty())
      return out;
    if (addDummyPrefix && !spaceAsSuffix)
      out += blank;
    bool afterBlank = removeExtraBlanks;
    while (!rest.empty()) {
      rest.remove_prefix(nextPart(rest, part));
      while (afterBlank && part.starts_with(' '))
        part.remove_prefix(1);
      if (part.empty())
        continue;
      for (char c : part) {
        if (c == ' ')
          out += blank;
        else
          out += c;
      }
      afterBlank = removeExtraBlanks && part.ends_with(' ');
    }
    while (removeExtraBlanks && out.ends_with(blank))
      out.resize(out.size() - blank.size());
    if (addDummyPrefix && spaceAsSuffix)
      out += blank;
    return out;
  }

private:
  // What the beginning of `text` becomes; returns how many bytes of `text` it took.
  size_t nextPart(std::string_view text, std::string_view &part) const {
    size_t size = 0;
    if (userDefined.startsWith(text[0]))
      userDefined.forEachAt(text, 0, [&](size_t end, int32_t) { size = end; });
    if (size == 0 && map.longestPrefix(text, size, part))
      return size;
    if (size == 0)
      size = unicode::decode(text, 0).size;
    part = text.substr(0, size);
    return size;
  }
};

Status addTokens(const Model &model, Tokenizer::Parts &parts) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(model.pieces.size(), model.pieces.size() * 8);
  std::vector<AddedToken> added;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    auto id = static_cast<int32_t>(i);
    LLMC_RETURN_IF_ERROR(vocabulary->add(model.pieces[i], id, "pieces"));
    AddedToken token{std::string(model.pieces[i]), id};
    token.normalized = true;
    if (model.types[i] == PieceType::Control) {
      token.special = true;
      token.searched = false;
      added.push_back(token);
      parts.decodedAs[id] = "";
    } else if (model.types[i] == PieceType::Unknown) {
      parts.decodedAs[id] = model.unknownSurface;
    } else if (model.types[i] == PieceType::UserDefined) {
      // The lattice of a unigram model holds the user-defined pieces itself.
      token.searched = model.kind == Model::Kind::Bpe;
      added.push_back(token);
    }
  }
  parts.vocabulary = vocabulary;
  auto asIs = [](std::string_view text) -> StatusOr<std::string> { return std::string(text); };
  LLMC_ASSIGN_OR_RETURN(parts.added, AddedTokens::build(std::move(added), asIs, "user-defined pieces"));
  return {};
}

Status addUnigram(const Model &model, const BpeOptions &shared, Tokenizer::Parts &parts) {
  UnigramOptions options;
  options.sentencePiece = true;
  options.unknown = shared.unknown;
  options.byteFallback = shared.byteFallback && model.byteFallback;
  options.byteIds = shared.byteIds;
  float best = FLT_MIN, worst = FLT_MAX;
  for (size_t i = 0; i < model.scores.size(); ++i) {
    if (!std::isfinite(model.scores[i]) || std::fabs(model.scores[i]) > 1e9f)
      return Status::error("piece " + std::to_string(i) + " has a score that is not finite or beyond 1e9");
    if (model.types[i] != PieceType::Normal)
      continue;
    best = std::max(best, model.scores[i]);
    worst = std::min(worst, model.scores[i]);
  }
  options.worstScore = worst == FLT_MAX ? 0 : worst;
  options.skipped.resize(model.types.size());
  std::vector<bool> userDefined(model.types.size());
  for (size_t i = 0; i < model.types.size(); ++i) {
    userDefined[i] = model.types[i] == PieceType::UserDefined;
    options.skipped[i] = !userDefined[i] && model.types[i] != PieceType::Normal;
    // Better than any way to cut it: sentencepiece's own number.
    float length = static_cast<float>(model.pieces[i].size());
    options.scores.push_back(userDefined[i] ? length * best - 0.1f : model.scores[i]);
  }
  LLMC_ASSIGN_OR_RETURN(parts.model, makeUnigramModel(parts.vocabulary, options));
  for (size_t i = 0; i < userDefined.size(); ++i)
    options.skipped[i] = options.skipped[i] || userDefined[i];
  LLMC_ASSIGN_OR_RETURN(parts.untrustedModel, makeUnigramModel(parts.vocabulary, std::move(options)));
  return {};
}

std::optional<int32_t> controlId(const Model &model, int64_t id) {
  bool given = id >= 0 && id < static_cast<int64_t>(model.types.size()) &&
               model.types[static_cast<size_t>(id)] == PieceType::Control;
  return given ? std::optional(static_cast<int32_t>(id)) : std::nullopt;
}

StatusOr<std::shared_ptr<Tokenizer::Parts>> build(const Model &model, const SentencePieceOptions &options) {
  auto parts = std::make_shared<Tokenizer::Parts>();
  LLMC_RETURN_IF_ERROR(addTokens(model, *parts));
  LLMC_ASSIGN_OR_RETURN(BpeOptions bpe, scoredBpeOptions(*parts->vocabulary, model.scores, model.types, "piece"));
  if (!bpe.unknown)
    return Status::error("the file has no unknown piece (type 2)");
  bpe.byteFallback = bpe.byteFallback && model.byteFallback;
  if (model.kind == Model::Kind::Bpe)
    parts->model = makeBpeModel(parts->vocabulary, std::move(bpe));
  else
    LLMC_RETURN_IF_ERROR(addUnigram(model, bpe, *parts));
  auto normalizer = std::make_unique<SentencePieceNormalizer>();
  LLMC_ASSIGN_OR_RETURN(normalizer->map,
                        CharacterMap::read(model.characterMap, "normalizer_spec/precompiled_charsmap"));
  for (size_t i = 0; i < model.pieces.size(); ++i)
    if (model.types[i] == PieceType::UserDefined)
      normalizer->userDefined.insert(model.pieces[i], static_cast<int32_t>(i));
  normalizer->addDummyPrefix = model.addDummyPrefix;
  normalizer->spaceAsSuffix = model.spaceAsSuffix;
  normalizer->removeExtraBlanks = model.removeExtraBlanks;
  normalizer->blank = model.escapeBlanks ? spaceMark : std::string_view(" ");
  parts->normalizer = std::move(normalizer);
  parts->decoder = makeSentencePieceDecoder(model.removeExtraBlanks ? FirstBlank::DropAll
                                            : model.addDummyPrefix  ? FirstBlank::Drop
                                                                    : FirstBlank::Keep);
  parts->bos = controlId(model, model.bosId);
  parts->eos = controlId(model, model.eosId);
  if (options.addBos && parts->bos)
    parts->prefix = {*parts->bos};
  if (options.addEos && parts->eos)
    parts->suffix = {*parts->eos};
  return parts;
}

} // namespace

StatusOr<Tokenizer> Tokenizer::fromSentencePiece(std::string_view bytes, const std::string &file,
                                                 SentencePieceOptions options) {
  if (bytes.size() > limits::tokenizerBytes)
    return Status::error(file + ": has " + std::to_string(bytes.size()) + " bytes, limit " +
                         std::to_string(limits::tokenizerBytes));
  StatusOr<Model> model = readModel(bytes);
  if (!model.ok())
    return model.status().inside(file);
  StatusOr<std::shared_ptr<Parts>> parts = build(*model, options);
  if (!parts.ok())
    return parts.status().inside(file);
  return Tokenizer(std::move(*parts));
}

} // namespace llmc
