// Finding added tokens with a trie walked from each byte: the work is bounded by the longest token, which is limited.
#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/Unicode.h"
#include <algorithm>

namespace llmc {
namespace {

constexpr size_t maxContentBytes = 1024;
constexpr size_t maxTotalBytes = 8 << 20;

// The character that ends at `end`, which is above 0.
uint32_t characterBefore(std::string_view text, size_t end) {
  size_t start = end - 1;
  while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80)
    --start;
  return unicode::decode(text, start).code;
}

bool standsAlone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !unicode::isWordCharacter(characterBefore(text, begin))) &&
         (end == text.size() || !unicode::isWordCharacter(unicode::decode(text, end).code));
}

size_t skipSpaceLeft(std::string_view text, size_t begin, size_t floor) {
  while (begin > floor) {
    uint32_t code = characterBefore(text, begin);
    if (!unicode::isWhiteSpace(code))
      break;
    std::string bytes;
    unicode::append(bytes, code);
    begin -= bytes.size();
  }
  return std::max(begin, floor);
}

size_t skipSpaceRight(std::string_view text, size_t end) {
  while (end < text.size()) {
    unicode::Decoded character = unicode::decode(text, end);
    if (!unicode::isWhiteSpace(character.code))
      break;
    end += character.size;
  }
  return end;
}

} // namespace

StatusOr<AddedTokens> AddedTokens::build(std::vector<AddedToken> tokens, const Normalize &normalize,
                                         const std::string &pointer) {
  AddedTokens out;
  size_t total = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const AddedToken &token = tokens[i];
    std::string where = pointer + "/" + std::to_string(i) + "/content";
    if (token.content.empty())
      return Status::error(where + " is empty, an added token needs a text");
    total += token.content.size();
    if (token.content.size() > maxContentBytes)
      return Status::error(where + " has " + std::to_string(token.content.size()) + " bytes, limit " +
                           std::to_string(maxContentBytes));
    if (total > maxTotalBytes)
      return Status::error(where + ": the added tokens together have more than " + std::to_string(maxTotalBytes) +
                           " bytes");
    out.ids_.try_emplace(token.content, token.id);
    if (token.special)
      out.special_.insert(token.id);
    std::string content = token.content;
    if (token.normalized) {
      StatusOr<std::string> normal = normalize(content);
      if (!normal.ok())
        return normal.status().inside(where);
      content = std::move(*normal);
      if (content.size() > 4 * maxContentBytes)
        return Status::error(where + " has " + std::to_string(content.size()) + " bytes once normalized, limit " +
                             std::to_string(4 * maxContentBytes));
    }
    if (content != token.content)
      out.decodedAs_[token.id] = content;
    // A normalizer may leave nothing (a token of blanks, stripped); such a token is never found.
    if (!content.empty() && token.searched)
      (token.normalized ? out.normalized_ : out.raw_).insert(content, static_cast<int32_t>(i));
  }
  out.tokens_ = std::move(tokens);
  return out;
}

std::optional<int32_t> AddedTokens::id(std::string_view content) const {
  auto found = ids_.find(std::string(content));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<TextPart> AddedTokens::split(std::string_view text, Pass pass, bool specialAsText) const {
  const ByteTrie &trie = pass == Pass::Raw ? raw_ : normalized_;
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    int32_t index = -1;
    if (trie.startsWith(text[at]))
      trie.forEachAt(text, at, [&](size_t keyEnd, int32_t value) {
        end = keyEnd;
        index = value;
      });
    if (index < 0) {
      ++at;
      continue;
    }
    size_t begin = at;
    at = end;
    const AddedToken &token = tokens_[static_cast<size_t>(index)];
    if (token.special && specialAsText)
      continue;
    if (token.singleWord && !standsAlone(text, begin, end))
      continue;
    if (token.stripLeft)
      begin = skipSpaceLeft(text, begin, std::min(done, begin));
    if (token.stripRight)
      end = skipSpaceRight(text, end);
    if (done < begin)
      parts.push_back({done, begin, -1});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size())
    parts.push_back({done, text.size(), -1});
  return parts;
}

} // namespace llmc
