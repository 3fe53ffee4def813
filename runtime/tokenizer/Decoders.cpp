// The decoders of tokenizer.json, and those of the formats that have no description of theirs.
#include "runtime/tokenizer/Decoders.h"
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Unicode.h"
#include <functional>

namespace llmc {
namespace {

constexpr std::string_view spaceMark = "\xE2\x96\x81";
constexpr size_t maxSteps = 64;

class Simple : public DecoderStep {
public:
  using Function = std::function<Status(std::vector<std::string> &)>;
  explicit Simple(Function function) : function_(std::move(function)) {}
  Status apply(std::vector<std::string> &tokens) const override { return function_(tokens); }

private:
  Function function_;
};

void addStep(Decoder &decoder, Simple::Function function) {
  decoder.steps.push_back(std::make_unique<Simple>(std::move(function)));
}

void replaceAll(std::string &text, std::string_view from, std::string_view to) {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  if (done > 0)
    text = out.append(text, done);
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if ((c | 32) >= 'a' && (c | 32) <= 'f')
    return (c | 32) - 'a' + 10;
  return -1;
}

// The byte of "<0xNN>", or -1.
int bytePiece(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return -1;
  int high = hexDigit(token[3]), low = hexDigit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// A run of byte pieces becomes one text. When it is not valid as a whole, every byte becomes U+FFFD, or with
// `keepGood` every byte that is no part of a good character.
void joinBytePieces(std::vector<std::string> &tokens, bool keepGood) {
  std::vector<std::string> out;
  out.reserve(tokens.size());
  std::string run;
  auto flush = [&] {
    if (run.empty())
      return;
    std::string text;
    bool valid = unicode::isValidUtf8(run);
    for (size_t i = 0; !valid && i < run.size();) {
      unicode::Decoded character = unicode::decode(run, i);
      bool good = keepGood && character.valid;
      size_t size = good ? character.size : 1;
      text += good ? std::string_view(run).substr(i, size) : unicode::replacementCharacter;
      i += size;
    }
    out.push_back(valid ? run : text);
    run.clear();
  };
  for (std::string &token : tokens) {
    if (int byte = bytePiece(token); byte >= 0) {
      run += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

void join(std::vector<std::string> &tokens) {
  std::string all;
  for (const std::string &token : tokens)
    all += token;
  tokens.assign(1, std::move(all));
}

Status byteLetters(std::vector<std::string> &tokens) {
  std::string bytes;
  for (const std::string &token : tokens)
    if (!bytelevel::appendBytes(token, bytes))
      bytes += token;
  tokens.assign(1, unicode::replaceInvalid(bytes));
  return {};
}

// English spacing: no blank before punctuation and contractions.
void cleanUp(std::string &text) {
  const std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto [from, to] : rules)
    replaceAll(text, from, to);
}

StatusOr<std::string> textOr(const Json &value, std::string_view key, const std::string &pointer,
                             const std::string &fallback) {
  const Json *member = find(value, key);
  if (!member || member->is_null())
    return fallback;
  return asString(*member, pointer + "/" + std::string(key));
}

StatusOr<bool> flag(const Json &value, std::string_view key, const std::string &pointer, bool fallback) {
  const Json *member = find(value, key);
  if (!member || member->is_null())
    return fallback;
  return asBool(*member, pointer + "/" + std::string(key));
}

StatusOr<int64_t> count(const Json &value, std::string_view key, const std::string &pointer) {
  const Json *member = find(value, key);
  if (!member)
    return Status::error(pointer + " has no '" + std::string(key) + "'");
  return asInteger(*member, pointer + "/" + std::string(key), 0, 1 << 20);
}

Status readBpe(const Json &value, const std::string &pointer, Decoder &out) {
  LLMC_ASSIGN_OR_RETURN(std::string suffix, textOr(value, "suffix", pointer, "</w>"));
  if (suffix.empty())
    return Status::error(pointer + "/suffix is empty");
  addStep(out, [=](std::vector<std::string> &tokens) -> Status {
    for (size_t i = 0; i < tokens.size(); ++i)
      replaceAll(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    return {};
  });
  return {};
}

Status readByteFallback(const Json &, const std::string &, Decoder &out) {
  addStep(out, [](std::vector<std::string> &tokens) -> Status {
    joinBytePieces(tokens, /*keepGood=*/false);
    return {};
  });
  return {};
}

Status readByteLevel(const Json &, const std::string &, Decoder &out) {
  addStep(out, byteLetters);
  return {};
}

Status readFuse(const Json &, const std::string &, Decoder &out) {
  addStep(out, [](std::vector<std::string> &tokens) -> Status {
    join(tokens);
    return {};
  });
  return {};
}

Status readMetaspace(const Json &value, const std::string &pointer, Decoder &out) {
  LLMC_ASSIGN_OR_RETURN(std::string mark, textOr(value, "replacement", pointer, std::string(spaceMark)));
  if (unicode::countCharacters(mark) != 1)
    return Status::error(pointer + "/replacement '" + mark + "' is not one character");
  LLMC_ASSIGN_OR_RETURN(bool prefix, flag(value, "add_prefix_space", pointer, true));
  LLMC_ASSIGN_OR_RETURN(std::string scheme, textOr(value, "prepend_scheme", pointer, prefix ? "always" : "never"));
  addStep(out, [=](std::vector<std::string> &tokens) -> Status {
    for (size_t i = 0; i < tokens.size(); ++i)
      replaceAll(tokens[i], mark, i == 0 && scheme != "never" ? "" : " ");
    return {};
  });
  return {};
}

Status readReplace(const Json &value, const std::string &pointer, Decoder &out) {
  const Json *patternValue = find(value, "pattern");
  if (!patternValue)
    return Status::error(pointer + " has no 'pattern'");
  LLMC_ASSIGN_OR_RETURN(TextPattern pattern, TextPattern::read(*patternValue, pointer + "/pattern"));
  LLMC_ASSIGN_OR_RETURN(std::string content, textOr(value, "content", pointer, ""));
  if (content.size() > 64)
    return Status::error(pointer + "/content has " + std::to_string(content.size()) + " bytes, limit 64");
  if (!pattern.regex) {
    addStep(out, [=](std::vector<std::string> &tokens) -> Status {
      for (std::string &token : tokens)
        replaceAll(token, pattern.literal, content);
      return {};
    });
    return {};
  }
  addStep(out, [=](std::vector<std::string> &tokens) -> Status {
    RegexBudget budget;
    for (std::string &token : tokens) {
      LLMC_ASSIGN_OR_RETURN(token, pattern.replaceAll(token, content, budget));
    }
    return {};
  });
  return {};
}

void stripToken(std::string &token, std::string_view content, size_t start, size_t stop) {
  std::string_view rest = token;
  for (size_t i = 0; i < start && rest.starts_with(content); ++i)
    rest.remove_prefix(content.size());
  for (size_t i = 0; i < stop && rest.ends_with(content); ++i)
    rest.remove_suffix(content.size());
  token = std::string(rest);
}

Status readStrip(const Json &value, const std::string &pointer, Decoder &out) {
  LLMC_ASSIGN_OR_RETURN(std::string content, textOr(value, "content", pointer, " "));
  if (unicode::countCharacters(content) != 1)
    return Status::error(pointer + "/content '" + content + "' is not one character");
  LLMC_ASSIGN_OR_RETURN(int64_t start, count(value, "start", pointer));
  LLMC_ASSIGN_OR_RETURN(int64_t stop, count(value, "stop", pointer));
  addStep(out, [=](std::vector<std::string> &tokens) -> Status {
    for (std::string &token : tokens)
      stripToken(token, content, static_cast<size_t>(start), static_cast<size_t>(stop));
    return {};
  });
  return {};
}

Status readWordPiece(const Json &value, const std::string &pointer, Decoder &out) {
  LLMC_ASSIGN_OR_RETURN(std::string prefix, textOr(value, "prefix", pointer, "##"));
  LLMC_ASSIGN_OR_RETURN(bool cleanup, flag(value, "cleanup", pointer, true));
  addStep(out, [=](std::vector<std::string> &tokens) -> Status {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0)
        tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : " " + tokens[i];
      if (cleanup)
        cleanUp(tokens[i]);
    }
    return {};
  });
  return {};
}

Status readSequence(const Json &value, const std::string &pointer, Decoder &out);

struct Kind {
  const char *name;
  Status (*read)(const Json &value, const std::string &pointer, Decoder &out);
};
const Kind kinds[] = {{"BPEDecoder", readBpe},      {"ByteFallback", readByteFallback},
                      {"ByteLevel", readByteLevel}, {"Fuse", readFuse},
                      {"Metaspace", readMetaspace}, {"Replace", readReplace},
                      {"Sequence", readSequence},   {"Strip", readStrip},
                      {"WordPiece", readWordPiece}};

Status readStep(const Json &value, const std::string &pointer, Decoder &out) {
  LLMC_ASSIGN_OR_RETURN(std::string type, textOr(value, "type", pointer, ""));
  if (out.steps.size() > maxSteps)
    return Status::error(pointer + ": more than " + std::to_string(maxSteps) + " steps");
  std::string known;
  for (const Kind &kind : kinds) {
    if (type == kind.name)
      return kind.read(value, pointer, out);
    known += std::string(known.empty() ? "" : ", ") + kind.name;
  }
  return Status::error(pointer + "/type '" + type + "' is unknown (known = " + known + ")");
}

Status readSequence(const Json &value, const std::string &pointer, Decoder &out) {
  const Json *list = find(value, "decoders");
  if (!list || !list->is_array())
    return Status::error(pointer + " has no list 'decoders'");
  for (size_t i = 0; i < list->size(); ++i)
    LLMC_RETURN_IF_ERROR(readStep((*list)[i], pointer + "/decoders/" + std::to_string(i), out));
  return {};
}

// The first blank is dropped from the first token that gives any text; a token that is that blank alone is it.
void dropFirstBlank(std::vector<std::string> &tokens, FirstBlank firstBlank) {
  for (std::string &token : tokens) {
    bool had = token.starts_with(spaceMark);
    if (had)
      token.erase(0, spaceMark.size());
    if ((had && firstBlank == FirstBlank::Drop) || !token.empty())
      return;
  }
}

} // namespace

StatusOr<Decoder> Decoder::read(const Json &value, const std::string &pointer) {
  Decoder out;
  if (value.is_null()) {
    out.joinByBlanks = true;
    return out;
  }
  LLMC_RETURN_IF_ERROR(readStep(value, pointer, out));
  return out;
}

StatusOr<std::string> Decoder::decode(std::vector<std::string> tokens, bool atStart) const {
  if (atStart && firstBlank != FirstBlank::Keep)
    dropFirstBlank(tokens, firstBlank);
  for (const auto &step : steps)
    LLMC_RETURN_IF_ERROR(step->apply(tokens));
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (joinByBlanks && i > 0)
      out += ' ';
    out += tokens[i];
  }
  return unicode::isValidUtf8(out) ? out : unicode::replaceInvalid(out);
}

Decoder makeBytesDecoder() {
  Decoder out;
  addStep(out, [](std::vector<std::string> &tokens) -> Status {
    join(tokens);
    return {};
  });
  return out;
}

Decoder makeByteLetterDecoder() {
  Decoder out;
  addStep(out, byteLetters);
  return out;
}

Decoder makeSentencePieceDecoder(FirstBlank firstBlank) {
  Decoder out;
  out.firstBlank = firstBlank;
  addStep(out, [](std::vector<std::string> &tokens) -> Status {
    joinBytePieces(tokens, /*keepGood=*/true);
    for (std::string &token : tokens)
      replaceAll(token, spaceMark, " ");
    return {};
  });
  return out;
}

} // namespace llmc
