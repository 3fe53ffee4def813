// The pre-tokenizers of tokenizer.json. Each is a step over all pieces; what one step cuts, no later step joins.
#include "runtime/tokenizer/PreTokenizers.h"
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Unicode.h"
#include <algorithm>

namespace llmc {
namespace {

constexpr size_t maxSteps = 64;
constexpr std::string_view byteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A stretch of a piece that either is a match of the step's pattern or lies between matches.
struct Segment {
  uint32_t begin, end;
  bool isMatch;
};

// Appends what `behavior` makes of the segments of one piece. Empty results are dropped.
void appendPieces(std::vector<Segment> &segments, SplitBehavior behavior, std::vector<Piece> &out) {
  auto keep = [&](const Segment &s) {
    if (s.begin < s.end)
      out.push_back({s.begin, s.end});
  };
  if (behavior == SplitBehavior::Isolated || behavior == SplitBehavior::Removed) {
    for (const Segment &s : segments)
      if (behavior == SplitBehavior::Isolated || !s.isMatch)
        keep(s);
    return;
  }
  std::vector<Segment> joined;
  bool previousMatch = false, backwards = behavior == SplitBehavior::MergedWithNext;
  if (backwards)
    std::reverse(segments.begin(), segments.end());
  for (const Segment &s : segments) {
    bool join = behavior == SplitBehavior::Contiguous ? s.isMatch == previousMatch : s.isMatch && !previousMatch;
    previousMatch = s.isMatch;
    if (!join || joined.empty())
      joined.push_back(s);
    else if (backwards)
      joined.back().begin = s.begin;
    else
      joined.back().end = s.end;
  }
  if (backwards)
    std::reverse(joined.begin(), joined.end());
  std::for_each(joined.begin(), joined.end(), keep);
}

// Cuts every piece at the characters for which the predicate holds.
class SplitAtCharacters : public PreTokenizerStep {
public:
  using Predicate = std::function<bool(uint32_t)>;
  SplitAtCharacters(Predicate isDelimiter, SplitBehavior behavior)
      : isDelimiter_(std::move(isDelimiter)), behavior_(behavior) {}

  Status apply(PreTokenized &text, RegexBudget &) const override {
    std::vector<Piece> out;
    std::vector<Segment> segments;
    for (Piece piece : text.pieces) {
      segments.clear();
      uint32_t done = piece.begin;
      for (uint32_t at = piece.begin; at < piece.end;) {
        unicode::Decoded character = unicode::decode(text.text, at);
        uint32_t next = at + character.size;
        if (isDelimiter_(character.code)) {
          if (done < at)
            segments.push_back({done, at, false});
          segments.push_back({at, next, true});
          done = next;
        }
        at = next;
      }
      if (done < piece.end)
        segments.push_back({done, piece.end, false});
      appendPieces(segments, behavior_, out);
    }
    text.pieces = std::move(out);
    return {};
  }

private:
  Predicate isDelimiter_;
  SplitBehavior behavior_;
};

class SplitAtPattern : public PreTokenizerStep {
public:
  SplitAtPattern(TextPattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  Status apply(PreTokenized &text, RegexBudget &budget) const override {
    std::vector<Piece> out;
    out.reserve(text.text.size() / 4 + text.pieces.size());
    std::vector<Segment> segments;
    std::optional<Regex::Matches> walk;
    if (pattern_.regex)
      walk.emplace(*pattern_.regex, budget);
    for (Piece piece : text.pieces) {
      segments.clear();
      LLMC_RETURN_IF_ERROR(segment(text.view(piece), piece.begin, walk, segments));
      appendPieces(segments, behavior_, out);
    }
    text.pieces = std::move(out);
    return {};
  }

private:
  Status segment(std::string_view text, uint32_t base, std::optional<Regex::Matches> &walk,
                 std::vector<Segment> &out) const {
    size_t done = 0, begin = 0, end = 0;
    auto add = [&](size_t from, size_t to, bool isMatch) {
      out.push_back({base + static_cast<uint32_t>(from), base + static_cast<uint32_t>(to), isMatch != invert_});
    };
    if (walk)
      walk->reset(text);
    while (true) {
      if (walk) {
        LLMC_ASSIGN_OR_RETURN(bool found, walk->next(begin, end));
        if (!found)
          break;
      } else {
        begin = text.find(pattern_.literal, done);
        if (begin == text.npos)
          break;
        end = begin + pattern_.literal.size();
      }
      if (done < begin)
        add(done, begin, false);
      add(begin, end, true);
      done = end;
    }
    if (done < text.size())
      add(done, text.size(), false);
    return {};
  }

  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Rewrites every piece by `append(out, piece text, is the first of the whole input)`.
class Rewrite : public PreTokenizerStep {
public:
  using Append = std::function<void(std::string &, std::string_view, bool)>;
  explicit Rewrite(Append append) : append_(std::move(append)) {}

  Status apply(PreTokenized &text, RegexBudget &) const override {
    std::string out;
    out.reserve(text.text.size() * 2);
    for (Piece &piece : text.pieces) {
      size_t begin = out.size();
      append_(out, text.view(piece), text.atStart && piece.begin == 0);
      if (out.size() > UINT32_MAX)
        return Status::error("the pre-tokenizer makes more than 4 GB of this text");
      piece = {static_cast<uint32_t>(begin), static_cast<uint32_t>(out.size())};
    }
    text.owned = std::move(out);
    text.text = text.owned;
    return {};
  }

private:
  Append append_;
};

StatusOr<bool> flag(const Json &value, std::string_view key, const std::string &pointer, bool fallback) {
  const Json *member = find(value, key);
  if (!member || member->is_null())
    return fallback;
  return asBool(*member, pointer + "/" + std::string(key));
}

StatusOr<std::string> textOr(const Json &value, std::string_view key, const std::string &pointer,
                             const std::string &fallback) {
  const Json *member = find(value, key);
  if (!member || member->is_null())
    return fallback;
  return asString(*member, pointer + "/" + std::string(key));
}

StatusOr<SplitBehavior> readBehavior(const Json &value, const std::string &pointer, const std::string &fallback) {
  LLMC_ASSIGN_OR_RETURN(std::string name, textOr(value, "behavior", pointer, fallback));
  const std::pair<const char *, SplitBehavior> known[] = {{"Isolated", SplitBehavior::Isolated},
                                                          {"Removed", SplitBehavior::Removed},
                                                          {"Contiguous", SplitBehavior::Contiguous},
                                                          {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
                                                          {"MergedWithNext", SplitBehavior::MergedWithNext}};
  for (auto [spelling, behavior] : known)
    if (name == spelling)
      return behavior;
  return Status::error(pointer + "/behavior '" + name +
                       "' is unknown (known = Isolated, Removed, Contiguous, "
                       "MergedWithPrevious, MergedWithNext)");
}

Status addRegex(PreTokenizer &out, std::string_view source, const std::string &pointer, SplitBehavior behavior,
                bool invert = false) {
  TextPattern pattern;
  LLMC_ASSIGN_OR_RETURN(pattern.regex, Regex::compile(source, pointer));
  out.steps.push_back(std::make_unique<SplitAtPattern>(std::move(pattern), behavior, invert));
  return {};
}

void addCharacters(PreTokenizer &out, SplitAtCharacters::Predicate isDelimiter, SplitBehavior behavior) {
  out.steps.push_back(std::make_unique<SplitAtCharacters>(std::move(isDelimiter), behavior));
}

Status readBert(const Json &, const std::string &, PreTokenizer &out) {
  addCharacters(out, unicode::isWhiteSpace, SplitBehavior::Removed);
  addCharacters(out, unicode::isPunctuation, SplitBehavior::Isolated);
  return {};
}

Status readByteLevel(const Json &value, const std::string &pointer, PreTokenizer &out) {
  LLMC_ASSIGN_OR_RETURN(bool prefix, flag(value, "add_prefix_space", pointer, true));
  LLMC_ASSIGN_OR_RETURN(bool regex, flag(value, "use_regex", pointer, true));
  if (prefix)
    out.steps.push_back(std::make_unique<Rewrite>([](std::string &text, std::string_view piece, bool) {
      if (!piece.starts_with(' '))
        text += ' ';
      text += piece;
    }));
  if (regex)
    LLMC_RETURN_IF_ERROR(addRegex(out, byteLevelPattern, pointer, SplitBehavior::Isolated));
  out.endsInByteLetters = true;
  return {};
}

Status readCharDelimiter(const Json &value, const std::string &pointer, PreTokenizer &out) {
  LLMC_ASSIGN_OR_RETURN(std::string delimiter, textOr(value, "delimiter", pointer, ""));
  if (unicode::countCharacters(delimiter) != 1)
    return Status::error(pointer + "/delimiter '" + delimiter + "' is not one character");
  uint32_t code = unicode::decode(delimiter, 0).code;
  addCharacters(
      out, [code](uint32_t c) { return c == code; }, SplitBehavior::Removed);
  return {};
}

Status readDigits(const Json &value, const std::string &pointer, PreTokenizer &out) {
  LLMC_ASSIGN_OR_RETURN(bool individual, flag(value, "individual_digits", pointer, false));
  addCharacters(out, unicode::isNumeric, individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous);
  return {};
}

Status readMetaspace(const Json &value, const std::string &pointer, PreTokenizer &out) {
  LLMC_ASSIGN_OR_RETURN(std::string mark, textOr(value, "replacement", pointer, "\xE2\x96\x81"));
  if (unicode::countCharacters(mark) != 1)
    return Status::error(pointer + "/replacement '" + mark + "' is not one character");
  // Files from before prepend_scheme say add_prefix_space.
  LLMC_ASSIGN_OR_RETURN(bool prefix, flag(value, "add_prefix_space", pointer, true));
  LLMC_ASSIGN_OR_RETURN(std::string scheme, textOr(value, "prepend_scheme", pointer, prefix ? "always" : "never"));
  if (scheme != "always" && scheme != "first" && scheme != "never")
    return Status::error(pointer + "/prepend_scheme '" + scheme + "' is unknown (known = always, first, never)");
  LLMC_ASSIGN_OR_RETURN(bool split, flag(value, "split", pointer, true));
  out.steps.push_back(std::make_unique<Rewrite>([=](std::string &text, std::string_view piece, bool isFirst) {
    bool marked = piece.starts_with(' ') || piece.starts_with(mark);
    if (!marked && (scheme == "always" || (scheme == "first" && isFirst)))
      text += mark;
    for (char c : piece) {
      if (c == ' ')
        text += mark;
      else
        text += c;
    }
  }));
  if (split)
    out.steps.push_back(
        std::make_unique<SplitAtPattern>(TextPattern{mark, {}}, SplitBehavior::MergedWithNext, /*invert=*/false));
  return {};
}

Status readPunctuation(const Json &value, const std::string &pointer, PreTokenizer &out) {
  LLMC_ASSIGN_OR_RETURN(SplitBehavior behavior, readBehavior(value, pointer, "Isolated"));
  addCharacters(out, unicode::isPunctuation, behavior);
  return {};
}

Status readSplit(const Json &value, const std::string &pointer, PreTokenizer &out) {
  const Json *patternValue = find(value, "pattern");
  if (!patternValue)
    return Status::error(pointer + " has no 'pattern'");
  LLMC_ASSIGN_OR_RETURN(TextPattern pattern, TextPattern::read(*patternValue, pointer + "/pattern"));
  LLMC_ASSIGN_OR_RETURN(SplitBehavior behavior, readBehavior(value, pointer, ""));
  LLMC_ASSIGN_OR_RETURN(bool invert, flag(value, "invert", pointer, false));
  out.steps.push_back(std::make_unique<SplitAtPattern>(std::move(pattern), behavior, invert));
  return {};
}

Status readWhitespace(const Json &, const std::string &pointer, PreTokenizer &out) {
  return addRegex(out, R"(\w+|[^\w\s]+)", pointer, SplitBehavior::Removed, /*invert=*/true);
}

Status readWhitespaceSplit(const Json &, const std::string &, PreTokenizer &out) {
  addCharacters(out, unicode::isWhiteSpace, SplitBehavior::Removed);
  return {};
}

Status readStep(const Json &value, const std::string &pointer, PreTokenizer &out);

Status readSequence(const Json &value, const std::string &pointer, PreTokenizer &out) {
  const Json *list = find(value, "pretokenizers");
  if (!list || !list->is_array())
    return Status::error(pointer + " has no list 'pretokenizers'");
  for (size_t i = 0; i < list->size(); ++i)
    LLMC_RETURN_IF_ERROR(readStep((*list)[i], pointer + "/pretokenizers/" + std::to_string(i), out));
  return {};
}

struct Kind {
  const char *name;
  Status (*read)(const Json &value, const std::string &pointer, PreTokenizer &out);
};
const Kind kinds[] = {{"BertPreTokenizer", readBert},
                      {"ByteLevel", readByteLevel},
                      {"CharDelimiterSplit", readCharDelimiter},
                      {"Digits", readDigits},
                      {"Metaspace", readMetaspace},
                      {"Punctuation", readPunctuation},
                      {"Sequence", readSequence},
                      {"Split", readSplit},
                      {"Whitespace", readWhitespace},
                      {"WhitespaceSplit", readWhitespaceSplit}};

Status readStep(const Json &value, const std::string &pointer, PreTokenizer &out) {
  LLMC_ASSIGN_OR_RETURN(std::string type, textOr(value, "type", pointer, ""));
  if (out.steps.size() > maxSteps)
    return Status::error(pointer + ": more than " + std::to_string(maxSteps) + " steps");
  for (const Kind &kind : kinds) {
    if (type != kind.name)
      continue;
    // A step after byte letters sees the letters.
    if (out.endsInByteLetters && type != "Sequence")
      out.addLetterStep();
    return kind.read(value, pointer, out);
  }
  std::string known;
  for (const Kind &kind : kinds)
    known += std::string(known.empty() ? "" : ", ") + kind.name;
  return Status::error(pointer + "/type '" + type + "' is unknown (known = " + known + ")");
}

} // namespace

void PreTokenizer::addLetterStep() {
  endsInByteLetters = false;
  steps.push_back(std::make_unique<Rewrite>([](std::string &text, std::string_view piece, bool) {
    for (char byte : piece)
      text += bytelevel::letter(static_cast<uint8_t>(byte));
  }));
}

StatusOr<PreTokenizer> PreTokenizer::read(const Json &value, const std::string &pointer) {
  PreTokenizer out;
  if (!value.is_null())
    LLMC_RETURN_IF_ERROR(readStep(value, pointer, out));
  return out;
}

Status PreTokenizer::apply(PreTokenized &text, RegexBudget &budget) const {
  for (const auto &step : steps)
    LLMC_RETURN_IF_ERROR(step->apply(text, budget));
  return {};
}

} // namespace llmc
