// Reads tiktoken files: one "base64 rank" a line. The pattern and the special tokens are not in the file.
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/BpeModel.h"
#include "runtime/tokenizer/CharacterMap.h"
#include "runtime/tokenizer/TokenizerParts.h"
#include "runtime/tokenizer/Unicode.h"
#include <charconv>

namespace llmc {
namespace {

Status readLine(std::string_view line, size_t number, Vocabulary &out) {
  std::string where = "line " + std::to_string(number);
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  if (line.empty())
    return {};
  size_t blank = line.find(' ');
  int64_t rank = -1;
  const char *end = line.data() + line.size();
  if (blank != line.npos) {
    auto parsed = std::from_chars(line.data() + blank + 1, end, rank);
    if (parsed.ec != std::errc() || parsed.ptr != end)
      rank = -1;
  }
  if (rank < 0)
    return Status::error(where + " is '" + std::string(line.substr(0, 40)) + "', expected base64 and a rank");
  LLMC_ASSIGN_OR_RETURN(std::string bytes, decodeBase64(line.substr(0, blank), where));
  if (bytes.empty())
    return Status::error(where + ": the token is empty");
  return out.add(bytes, rank, where);
}

Status readRanks(std::string_view text, Vocabulary &out) {
  out.reserve(text.size() / 12, text.size() / 2);
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    size_t end = std::min(text.find('\n', begin), text.size());
    LLMC_RETURN_IF_ERROR(readLine(text.substr(begin, end - begin), number, out));
    begin = end + 1;
  }
  return {};
}

// Python's str.isspace, which the rule was written with.
bool isPythonSpace(uint32_t code) { return unicode::isWhiteSpace(code) || (code >= 0x1C && code <= 0x1F); }

// Cuts `text` every `maxCharacters`, then inside each part wherever a run of only white space or none reaches
// `maxRun` + 1 characters: the last of them starts a new part.
std::vector<std::string_view> cutText(std::string_view text, size_t maxCharacters, size_t maxRun) {
  std::vector<std::string_view> out;
  size_t begin = 0, characters = 0, run = 0;
  bool runIsSpace = false;
  for (size_t at = 0; at < text.size();) {
    unicode::Decoded character = unicode::decode(text, at);
    bool isSpace = isPythonSpace(character.code);
    bool full = maxCharacters > 0 && characters == maxCharacters;
    if (full || characters == 0) {
      characters = run = 0;
      runIsSpace = isSpace;
    }
    run = isSpace == runIsSpace ? run + 1 : 1;
    runIsSpace = isSpace;
    bool longRun = maxRun > 0 && run > maxRun;
    if (full || longRun) {
      out.push_back(text.substr(begin, at - begin));
      begin = at;
      run = 1;
    }
    ++characters;
    at += character.size;
  }
  if (begin < text.size())
    out.push_back(text.substr(begin));
  return out;
}

StatusOr<std::shared_ptr<Tokenizer::Parts>> build(std::string_view text, TiktokenOptions options) {
  auto parts = std::make_shared<Tokenizer::Parts>();
  auto vocabulary = std::make_shared<Vocabulary>();
  LLMC_RETURN_IF_ERROR(readRanks(text, *vocabulary));
  BpeOptions bpe;
  bpe.start = BpeOptions::Start::Bytes;
  bpe.rule = BpeOptions::Rule::JoinedText;
  bpe.ignoreMerges = true;
  for (int byte = 0; byte < 256; ++byte) {
    char single = static_cast<char>(byte);
    std::optional<int32_t> id = vocabulary->id({&single, 1});
    if (!id)
      return Status::error("byte " + std::to_string(byte) + " has no rank: the file must list all 256 single bytes");
    bpe.byteIds[static_cast<size_t>(byte)] = *id;
  }
  for (int32_t id = 0; id < vocabulary->size(); ++id)
    bpe.rankOfId.push_back(id);
  std::vector<AddedToken> added;
  for (const TiktokenOptions::Special &special : options.specials) {
    LLMC_RETURN_IF_ERROR(vocabulary->addHidden(special.content, special.id, "special tokens"));
    added.push_back({special.content, special.id, special.special});
  }
  auto asIs = [](std::string_view t) -> StatusOr<std::string> { return std::string(t); };
  LLMC_ASSIGN_OR_RETURN(parts->added, AddedTokens::build(std::move(added), asIs, "special tokens"));
  parts->allAddedAreSpecial = true;
  Json split = {{"type", "Split"}, {"pattern", {{"Regex", options.pattern}}}, {"behavior", "Isolated"}};
  LLMC_ASSIGN_OR_RETURN(parts->preTokenizer, PreTokenizer::read(split, "pattern"));
  parts->vocabulary = vocabulary;
  parts->model = makeBpeModel(vocabulary, std::move(bpe));
  parts->decoder = makeBytesDecoder();
  if (options.maxCharacters > 0 || options.maxRunCharacters > 0)
    parts->cut = [most = options.maxCharacters, run = options.maxRunCharacters](std::string_view t) {
      return cutText(t, most, run);
    };
  for (std::optional<int32_t> id : {options.bosId, options.eosId})
    if (id && !vocabulary->token(*id))
      return Status::error("BOS or EOS has the id " + std::to_string(*id) + ", which no token has");
  parts->bos = options.bosId;
  parts->eos = options.eosId;
  if (options.addBos && options.bosId)
    parts->prefix = {*options.bosId};
  for (const std::string &content : options.prefix) {
    std::optional<int32_t> id = parts->added.id(content);
    if (!id)
      return Status::error("/prefix names '" + content + "', which is no special token");
    parts->prefix.push_back(*id);
  }
  return parts;
}

} // namespace

StatusOr<Tokenizer> Tokenizer::fromTiktoken(std::string_view text, TiktokenOptions options, const std::string &file) {
  if (text.size() > limits::tokenizerBytes)
    return Status::error(file + ": has " + std::to_string(text.size()) + " bytes, limit " +
                         std::to_string(limits::tokenizerBytes));
  StatusOr<std::shared_ptr<Parts>> parts = build(text, std::move(options));
  if (!parts.ok())
    return parts.status().inside(file);
  return Tokenizer(std::move(*parts));
}

} // namespace llmc
