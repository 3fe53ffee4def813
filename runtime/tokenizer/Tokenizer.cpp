// Running a tokenizer: added tokens, normalizer, pre-tokenizer and model in turn; decoding at once and piece by piece.
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/TokenizerParts.h"
#include "runtime/tokenizer/Unicode.h"

namespace llmc {
namespace {

constexpr size_t maxTextBytes = 256u << 20;
// So many ids without a whole character at their end are no text any more: they are shown as they are, so that a stream
// of them takes linear time.
constexpr size_t maxHeldIds = 512;

// A workspace taken from the tokenizer for the time of one encoding.
class Borrowed {
public:
  explicit Borrowed(const Tokenizer::Parts &parts) : parts_(parts) {
    {
      std::lock_guard lock(parts.workspacesLock);
      if (!parts.workspaces.empty()) {
        workspace_ = std::move(parts.workspaces.back());
        parts.workspaces.pop_back();
      }
    }
    if (!workspace_)
      workspace_ = parts.model->makeWorkspace();
  }
  ~Borrowed() {
    std::lock_guard lock(parts_.workspacesLock);
    parts_.workspaces.push_back(std::move(workspace_));
  }
  Borrowed(const Borrowed &) = delete;
  Borrowed &operator=(const Borrowed &) = delete;
  Workspace &operator*() { return *workspace_; }

private:
  const Tokenizer::Parts &parts_;
  std::unique_ptr<Workspace> workspace_;
};

// One text on its way through the parts.
class Encoding {
public:
  Encoding(const Tokenizer::Parts &parts, SpecialText mode, std::vector<int32_t> &out)
      : parts_(parts), mode_(mode), workspace_(parts), out_(out) {}

  Status run(std::string_view text, bool atStart) {
    if (mode_ == SpecialText::AllAsText)
      return text.empty() ? Status() : normalized(text, atStart);
    for (const TextPart &part : split(text, AddedTokens::Pass::Raw)) {
      if (part.id >= 0)
        out_.push_back(part.id);
      else
        LLMC_RETURN_IF_ERROR(normalized(text.substr(part.begin, part.end - part.begin), atStart && part.begin == 0));
    }
    return {};
  }

private:
  std::vector<TextPart> split(std::string_view text, AddedTokens::Pass pass) const {
    return parts_.added.split(text, pass, mode_ == SpecialText::SpecialAsText);
  }

  Status normalized(std::string_view text, bool atStart) {
    std::string owned;
    if (parts_.normalizer) {
      owned = text;
      LLMC_RETURN_IF_ERROR(parts_.normalize(owned, budget_));
      text = owned;
    }
    if (mode_ == SpecialText::AllAsText)
      return text.empty() ? Status() : plain(text, atStart);
    for (const TextPart &part : split(text, AddedTokens::Pass::Normalized)) {
      if (part.id >= 0)
        out_.push_back(part.id);
      else
        LLMC_RETURN_IF_ERROR(plain(text.substr(part.begin, part.end - part.begin), atStart && part.begin == 0));
    }
    return {};
  }

  Status plain(std::string_view text, bool atStart) {
    PreTokenized pieces;
    pieces.text = text;
    pieces.pieces.push_back({0, static_cast<uint32_t>(text.size())});
    pieces.atStart = atStart;
    LLMC_RETURN_IF_ERROR(parts_.preTokenizer.apply(pieces, budget_));
    bool untrusted = mode_ == SpecialText::AllAsText && parts_.untrustedModel;
    const TokenModel &model = untrusted ? *parts_.untrustedModel : *parts_.model;
    for (Piece piece : pieces.pieces)
      LLMC_RETURN_IF_ERROR(model.encodePiece(pieces.view(piece), *workspace_, out_));
    return {};
  }

  const Tokenizer::Parts &parts_;
  SpecialText mode_;
  Borrowed workspace_;
  RegexBudget budget_;
  std::vector<int32_t> &out_;
};

} // namespace

Status Tokenizer::Parts::normalize(std::string &text, RegexBudget &budget) const {
  if (!normalizer)
    return {};
  size_t limit = 32 * text.size() + 4096;
  LLMC_ASSIGN_OR_RETURN(text, normalizer->apply(std::move(text), budget));
  if (text.size() > limit)
    return Status::error("/normalizer makes " + std::to_string(text.size()) + " bytes of a text, limit " +
                         std::to_string(limit));
  return {};
}

StatusOr<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > maxTextBytes)
    return Status::error("the text has " + std::to_string(text.size()) + " bytes, the tokenizer takes up to " +
                         std::to_string(maxTextBytes));
  std::string repaired;
  if (!unicode::isValidUtf8(text)) {
    repaired = unicode::replaceInvalid(text);
    text = repaired;
  }
  std::vector<int32_t> out;
  if (options.addSpecial)
    out = parts_->prefix;
  bool allAsText = options.specialText == SpecialText::SpecialAsText && parts_->allAddedAreSpecial;
  Encoding encoding(*parts_, allAsText ? SpecialText::AllAsText : options.specialText, out);
  if (parts_->cut) {
    for (std::string_view part : parts_->cut(text))
      LLMC_RETURN_IF_ERROR(encoding.run(part, options.atStart && part.data() == text.data()));
  } else {
    LLMC_RETURN_IF_ERROR(encoding.run(text, options.atStart));
  }
  if (options.addSpecial)
    out.insert(out.end(), parts_->suffix.begin(), parts_->suffix.end());
  return out;
}

StatusOr<std::string> Tokenizer::decode(std::span<const int32_t> ids, bool skipSpecial) const {
  return decodeFrom(ids, skipSpecial, /*atStart=*/true);
}

StatusOr<std::string> Tokenizer::decodeFrom(std::span<const int32_t> ids, bool skipSpecial, bool atStart) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    if (skipSpecial && parts_->added.isSpecial(id))
      continue;
    if (auto other = parts_->decodedAs.find(id); other != parts_->decodedAs.end())
      tokens.push_back(other->second);
    else if (auto token = parts_->vocabulary->token(id))
      tokens.emplace_back(*token);
  }
  return parts_->decoder.decode(std::move(tokens), atStart);
}

int32_t Tokenizer::vocabSize() const { return parts_->vocabulary->size(); }
std::optional<int32_t> Tokenizer::tokenToId(std::string_view token) const {
  std::optional<int32_t> id = parts_->vocabulary->id(token);
  return id ? id : parts_->added.id(token);
}
std::optional<std::string> Tokenizer::idToToken(int32_t id) const {
  auto token = parts_->vocabulary->token(id);
  return token ? std::optional<std::string>(*token) : std::nullopt;
}
bool Tokenizer::isSpecial(int32_t id) const { return parts_->added.isSpecial(id); }
std::optional<int32_t> Tokenizer::bosId() const { return parts_->bos; }
std::optional<int32_t> Tokenizer::eosId() const { return parts_->eos; }

// The text of ids_ beyond what was shown. The ids shown last are decoded again together with the new ones, because a
// decoder treats the first token of a text (and a run of byte pieces) in its own way.
StatusOr<std::string> StreamDecoder::unseen() const {
  LLMC_ASSIGN_OR_RETURN(std::string all, tokenizer_.decodeFrom(ids_, skipSpecial_, atStart_));
  if (all.starts_with(shown_))
    return all.substr(shown_.size());
  // The new ids changed what was shown (a run of byte pieces turned out damaged): they stand for themselves.
  return tokenizer_.decodeFrom(std::span(ids_).subspan(shownIds_), skipSpecial_, atStart_);
}

StatusOr<std::string> StreamDecoder::push(int32_t id) {
  if (skipSpecial_ && tokenizer_.isSpecial(id))
    return std::string();
  ids_.push_back(id);
  LLMC_ASSIGN_OR_RETURN(std::string text, unseen());
  bool whole = !text.empty() && unicode::endsInVisibleCharacter(text);
  if (!whole && ids_.size() - shownIds_ < maxHeldIds)
    return std::string();
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(shownIds_));
  shownIds_ = ids_.size();
  atStart_ = false;
  LLMC_ASSIGN_OR_RETURN(shown_, tokenizer_.decodeFrom(ids_, skipSpecial_, atStart_));
  return text;
}

StatusOr<std::string> StreamDecoder::flush() {
  LLMC_ASSIGN_OR_RETURN(std::string text, unseen());
  ids_.clear();
  shown_.clear();
  shownIds_ = 0;
  atStart_ = true;
  return text;
}

} // namespace llmc
