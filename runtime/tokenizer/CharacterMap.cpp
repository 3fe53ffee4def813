// Reading the double array: every index is checked against its size, so a damaged map finds nothing instead of
// straying.
#include "runtime/tokenizer/CharacterMap.h"
#include "runtime/tokenizer/Unicode.h"
#include <utf8proc.h>

namespace llmc {
namespace {

uint32_t littleEndian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= uint32_t(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

// The fields of a unit of the double array.
bool hasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFFu; }
uint32_t label(uint32_t unit) { return unit & (0x80000000u | 0xFFu); }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & (1u << 9)) >> 6); }

int base64Digit(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

} // namespace

StatusOr<CharacterMap> CharacterMap::read(std::string_view bytes, const std::string &pointer) {
  CharacterMap map;
  if (bytes.empty())
    return map;
  if (bytes.size() < 4)
    return Status::error(pointer + " has " + std::to_string(bytes.size()) + " bytes, its trie size alone takes 4");
  uint32_t trieBytes = littleEndian(bytes, 0);
  if (trieBytes % 4 != 0 || trieBytes > bytes.size() - 4)
    return Status::error(pointer + ": trie of " + std::to_string(trieBytes) + " bytes does not fit in the " +
                         std::to_string(bytes.size() - 4) + " that follow");
  for (size_t i = 0; i < trieBytes; i += 4)
    map.units_.push_back(littleEndian(bytes, 4 + i));
  map.replacements_ = bytes.substr(4 + trieBytes);
  if (!unicode::isValidUtf8(map.replacements_))
    return Status::error(pointer + ": replacements are not valid UTF-8");
  return map;
}

std::string_view CharacterMap::replacementAt(uint32_t at) const {
  std::string_view all = replacements_;
  if (at >= all.size())
    return {};
  std::string_view rest = all.substr(at);
  // An offset into the middle of a character would make invalid text.
  if ((static_cast<uint8_t>(rest[0]) & 0xC0) == 0x80)
    return {};
  return rest.substr(0, rest.find('\0'));
}

template <typename Each> void CharacterMap::prefixes(std::string_view text, Each each) const {
  if (units_.empty())
    return;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    node ^= static_cast<uint8_t>(text[i]);
    if (node >= units_.size() || label(units_[node]) != static_cast<uint8_t>(text[i]))
      return;
    uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!hasLeaf(unit))
      continue;
    if (node >= units_.size())
      return;
    each(i + 1, value(units_[node]));
  }
}

bool CharacterMap::longestPrefix(std::string_view text, size_t &size, std::string_view &replacement) const {
  size = 0;
  prefixes(text, [&](size_t length, uint32_t at) {
    // A key never ends inside a character of valid text, unless the map is damaged.
    if (length < text.size() && (static_cast<uint8_t>(text[length]) & 0xC0) == 0x80)
      return;
    size = length;
    replacement = replacementAt(at);
  });
  return size > 0;
}

bool CharacterMap::exact(std::string_view key, std::string_view &replacement) const {
  // The shortest key counts, as in the reference: a cluster is replaced by what its first character maps to.
  bool found = false;
  prefixes(key, [&](size_t, uint32_t at) {
    if (!found)
      replacement = replacementAt(at);
    found = true;
  });
  return found;
}

std::string CharacterMap::mapClusters(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + unicode::decode(text, begin).size;
    int32_t state = 0;
    auto previous = static_cast<int32_t>(unicode::decode(text, begin).code);
    while (end < text.size()) {
      unicode::Decoded next = unicode::decode(text, end);
      if (utf8proc_grapheme_break_stateful(previous, static_cast<int32_t>(next.code), &state))
        break;
      previous = static_cast<int32_t>(next.code);
      end += next.size;
    }
    std::string_view cluster = text.substr(begin, end - begin), replacement;
    begin = end;
    // Only short clusters (below six bytes) are looked up whole.
    if (cluster.size() < 6 && exact(cluster, replacement)) {
      out += replacement;
      continue;
    }
    for (size_t i = 0; i < cluster.size();) {
      std::string_view character = cluster.substr(i, unicode::decode(cluster, i).size);
      i += character.size();
      out += exact(character, replacement) ? replacement : character;
    }
  }
  return out;
}

StatusOr<std::string> decodeBase64(std::string_view text, const std::string &pointer) {
  std::string_view digits = text.substr(0, text.find('='));
  size_t padding = text.size() - digits.size();
  bool padded = text.size() % 4 == 0 && padding <= 2 && text.find_first_not_of('=', digits.size()) == text.npos;
  std::string out;
  out.reserve(digits.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (char c : digits) {
    int digit = base64Digit(c);
    if (digit < 0 || !padded)
      return Status::error(pointer + " is not valid base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

} // namespace llmc
