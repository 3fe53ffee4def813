// The normalizers of tokenizer.json, in the order of their names there.
#include "runtime/tokenizer/Normalizers.h"
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/CharacterMap.h"
#include "runtime/tokenizer/Unicode.h"
#include <functional>

namespace llmc {
namespace {

// A normalizer that is one function without state beyond what it captured.
class Simple : public Normalizer {
public:
  using Function = std::function<StatusOr<std::string>(std::string, RegexBudget &)>;
  explicit Simple(Function function) : function_(std::move(function)) {}
  StatusOr<std::string> apply(std::string text, RegexBudget &budget) const override {
    return function_(std::move(text), budget);
  }

private:
  Function function_;
};

class Sequence : public Normalizer {
public:
  std::vector<std::unique_ptr<Normalizer>> steps;
  StatusOr<std::string> apply(std::string text, RegexBudget &budget) const override {
    // The longest growth of one character is 11-fold (U+FDFA in NFKC); steps that multiply without end are refused.
    size_t limit = 32 * text.size() + 4096;
    for (const auto &step : steps) {
      LLMC_ASSIGN_OR_RETURN(text, step->apply(std::move(text), budget));
      if (text.size() > limit)
        return Status::error("the normalizer makes " + std::to_string(text.size()) + " bytes of " +
                             std::to_string((limit - 4096) / 32) + ", limit " + std::to_string(limit));
    }
    return text;
  }
};

using Made = std::unique_ptr<Normalizer>;
using MadeOr = StatusOr<std::unique_ptr<Normalizer>>;

Made simple(Simple::Function function) { return std::make_unique<Simple>(std::move(function)); }

// Calls `each(out, code, bytes)` for every character of a valid text.
template <typename Each> std::string mapCharacters(std::string_view text, Each each) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded character = unicode::decode(text, i);
    each(out, character.code, text.substr(i, character.size));
    i += character.size;
  }
  return out;
}

std::string lowerCase(std::string_view text) {
  return mapCharacters(text,
                       [](std::string &out, uint32_t code, std::string_view) { unicode::appendLowerCase(out, code); });
}

std::string strip(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end && unicode::isWhiteSpace(unicode::decode(text, begin).code))
    begin += unicode::decode(text, begin).size;
  while (right && end > begin) {
    size_t start = end - 1;
    while (start > begin && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80)
      --start;
    if (!unicode::isWhiteSpace(unicode::decode(text, start).code))
      break;
    end = start;
  }
  return std::string(text.substr(begin, end - begin));
}

bool isHan(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string cleanText(std::string_view text) {
  return mapCharacters(text, [](std::string &out, uint32_t code, std::string_view bytes) {
    bool blank = code == '\t' || code == '\n' || code == '\r';
    if (code == 0 || code == 0xFFFD || (!blank && unicode::isOther(code)))
      return;
    out += blank || unicode::isWhiteSpace(code) ? std::string_view(" ") : bytes;
  });
}

std::string spaceAroundHan(std::string_view text) {
  return mapCharacters(text, [](std::string &out, uint32_t code, std::string_view bytes) {
    if (!isHan(code)) {
      out += bytes;
      return;
    }
    out += ' ';
    out += bytes;
    out += ' ';
  });
}

std::string dropMarks(std::string_view text, bool (*isDropped)(uint32_t)) {
  return mapCharacters(text, [&](std::string &out, uint32_t code, std::string_view bytes) {
    if (!isDropped(code))
      out += bytes;
  });
}

// Control characters out, other blanks to a space, as in Google's NMT normalization.
std::string nmt(std::string_view text) {
  return mapCharacters(text, [](std::string &out, uint32_t c, std::string_view bytes) {
    bool dropped = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    bool blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                 c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    if (!dropped)
      out += blank ? std::string_view(" ") : bytes;
  });
}

StatusOr<bool> flag(const Json &value, std::string_view key, const std::string &pointer, bool fallback) {
  const Json *member = find(value, key);
  if (!member || member->is_null())
    return fallback;
  return asBool(*member, pointer + "/" + std::string(key));
}

StatusOr<std::string> text(const Json &value, std::string_view key, const std::string &pointer) {
  const Json *member = find(value, key);
  if (!member)
    return Status::error(pointer + " has no '" + std::string(key) + "'");
  return asString(*member, pointer + "/" + std::string(key));
}

MadeOr readBert(const Json &value, const std::string &pointer) {
  LLMC_ASSIGN_OR_RETURN(bool clean, flag(value, "clean_text", pointer, true));
  LLMC_ASSIGN_OR_RETURN(bool han, flag(value, "handle_chinese_chars", pointer, true));
  LLMC_ASSIGN_OR_RETURN(bool lower, flag(value, "lowercase", pointer, true));
  LLMC_ASSIGN_OR_RETURN(bool accents, flag(value, "strip_accents", pointer, lower));
  return simple([=](std::string t, RegexBudget &) -> StatusOr<std::string> {
    if (clean)
      t = cleanText(t);
    if (han)
      t = spaceAroundHan(t);
    if (accents)
      t = dropMarks(unicode::normalize(t, unicode::Form::Nfd), unicode::isNonspacingMark);
    return lower ? lowerCase(t) : t;
  });
}

MadeOr readPrepend(const Json &value, const std::string &pointer) {
  LLMC_ASSIGN_OR_RETURN(std::string prefix, text(value, "prepend", pointer));
  return simple([=](std::string t, RegexBudget &) -> StatusOr<std::string> { return t.empty() ? t : prefix + t; });
}

MadeOr readReplace(const Json &value, const std::string &pointer) {
  const Json *patternValue = find(value, "pattern");
  if (!patternValue)
    return Status::error(pointer + " has no 'pattern'");
  LLMC_ASSIGN_OR_RETURN(TextPattern pattern, TextPattern::read(*patternValue, pointer + "/pattern"));
  LLMC_ASSIGN_OR_RETURN(std::string content, text(value, "content", pointer));
  if (content.size() > 64)
    return Status::error(pointer + "/content has " + std::to_string(content.size()) + " bytes, limit 64");
  return simple([=](std::string t, RegexBudget &budget) { return pattern.replaceAll(t, content, budget); });
}

MadeOr readStrip(const Json &value, const std::string &pointer) {
  LLMC_ASSIGN_OR_RETURN(bool left, flag(value, "strip_left", pointer, true));
  LLMC_ASSIGN_OR_RETURN(bool right, flag(value, "strip_right", pointer, true));
  return simple([=](std::string t, RegexBudget &) -> StatusOr<std::string> { return strip(t, left, right); });
}

MadeOr readCharacterMap(const Json &value, const std::string &pointer) {
  LLMC_ASSIGN_OR_RETURN(std::string coded, text(value, "precompiled_charsmap", pointer));
  LLMC_ASSIGN_OR_RETURN(std::string bytes, decodeBase64(coded, pointer + "/precompiled_charsmap"));
  LLMC_ASSIGN_OR_RETURN(CharacterMap map, CharacterMap::read(bytes, pointer + "/precompiled_charsmap"));
  auto shared = std::make_shared<const CharacterMap>(std::move(map));
  return simple([=](std::string t, RegexBudget &) -> StatusOr<std::string> { return shared->mapClusters(t); });
}

MadeOr readSequence(const Json &value, const std::string &pointer) {
  const Json *list = find(value, "normalizers");
  if (!list || !list->is_array())
    return Status::error(pointer + " has no list 'normalizers'");
  if (list->size() > 64)
    return Status::error(pointer + "/normalizers has " + std::to_string(list->size()) + " steps, limit 64");
  auto out = std::make_unique<Sequence>();
  for (size_t i = 0; i < list->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Made step, readNormalizer((*list)[i], pointer + "/normalizers/" + std::to_string(i)));
    if (step)
      out->steps.push_back(std::move(step));
  }
  return Made(std::move(out));
}

// The kinds that need nothing but their name.
std::string toByteLetters(std::string_view t) { return bytelevel::toLetters(t); }
std::string stripAccents(std::string_view t) { return dropMarks(t, unicode::isMark); }

struct PlainKind {
  const char *name;
  std::string (*function)(std::string_view);
};
const PlainKind plainKinds[] = {
    {"ByteLevel", toByteLetters},
    {"Lowercase", lowerCase},
    {"NFC", [](std::string_view t) { return unicode::normalize(t, unicode::Form::Nfc); }},
    {"NFD", [](std::string_view t) { return unicode::normalize(t, unicode::Form::Nfd); }},
    {"NFKC", [](std::string_view t) { return unicode::normalize(t, unicode::Form::Nfkc); }},
    {"NFKD", [](std::string_view t) { return unicode::normalize(t, unicode::Form::Nfkd); }},
    {"Nmt", nmt},
    {"StripAccents", stripAccents},
};

struct Kind {
  const char *name;
  MadeOr (*read)(const Json &value, const std::string &pointer);
};
const Kind kinds[] = {{"BertNormalizer", readBert}, {"Precompiled", readCharacterMap}, {"Prepend", readPrepend},
                      {"Replace", readReplace},     {"Sequence", readSequence},        {"Strip", readStrip}};

} // namespace

StatusOr<TextPattern> TextPattern::read(const Json &value, const std::string &pointer) {
  TextPattern out;
  if (const Json *literal = find(value, "String")) {
    LLMC_ASSIGN_OR_RETURN(out.literal, asString(*literal, pointer + "/String"));
    if (out.literal.empty())
      return Status::error(pointer + "/String is empty");
    return out;
  }
  const Json *regex = find(value, "Regex");
  if (!regex)
    return Status::error(pointer + " is " + brief(value) + ", expected an object with 'String' or 'Regex'");
  LLMC_ASSIGN_OR_RETURN(std::string source, asString(*regex, pointer + "/Regex"));
  LLMC_ASSIGN_OR_RETURN(out.regex, Regex::compile(source, pointer + "/Regex"));
  return out;
}

StatusOr<std::vector<std::pair<size_t, size_t>>> TextPattern::matches(std::string_view text,
                                                                      RegexBudget &budget) const {
  std::vector<std::pair<size_t, size_t>> out;
  if (!regex) {
    for (size_t at = text.find(literal); at != text.npos; at = text.find(literal, at + literal.size()))
      out.emplace_back(at, at + literal.size());
    return out;
  }
  Regex::Matches walk(*regex, budget);
  walk.reset(text);
  size_t begin = 0, end = 0;
  while (true) {
    LLMC_ASSIGN_OR_RETURN(bool found, walk.next(begin, end));
    if (!found)
      return out;
    out.emplace_back(begin, end);
  }
}

StatusOr<std::string> TextPattern::replaceAll(std::string_view text, std::string_view content,
                                              RegexBudget &budget) const {
  LLMC_ASSIGN_OR_RETURN(auto found, matches(text, budget));
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (auto [begin, end] : found) {
    out += text.substr(done, begin - done);
    out += content;
    done = end;
  }
  out += text.substr(done);
  return out;
}

StatusOr<std::unique_ptr<Normalizer>> readNormalizer(const Json &value, const std::string &pointer) {
  if (value.is_null())
    return Made();
  LLMC_ASSIGN_OR_RETURN(std::string type, text(value, "type", pointer));
  for (const PlainKind &kind : plainKinds)
    if (type == kind.name)
      return simple([f = kind.function](std::string t, RegexBudget &) -> StatusOr<std::string> { return f(t); });
  for (const Kind &kind : kinds)
    if (type == kind.name)
      return kind.read(value, pointer);
  std::string known;
  for (const PlainKind &kind : plainKinds)
    known += std::string(kind.name) + ", ";
  for (const Kind &kind : kinds)
    known += std::string(kind.name) + ", ";
  return Status::error(pointer + "/type '" + type + "' is unknown (known = " + known.substr(0, known.size() - 2) + ")");
}

std::unique_ptr<Normalizer> makeSpaceMarker(bool prepend) {
  return simple([=](std::string t, RegexBudget &) -> StatusOr<std::string> {
    std::string out = prepend && !t.empty() ? "\xE2\x96\x81" : "";
    out.reserve(t.size());
    for (char c : t) {
      if (c == ' ')
        out += "\xE2\x96\x81";
      else
        out += c;
    }
    return out;
  });
}

} // namespace llmc
