// The compiled character map of sentencepiece: a double-array trie from byte strings to replacements.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class CharacterMap {
public:
  // `bytes`: the trie's size in bytes (32 bit, little endian), the trie, then the replacements, each ended by a zero.
  static StatusOr<CharacterMap> read(std::string_view bytes, const std::string &pointer);
  // The replacement of the longest key that `text` starts with; false when there is none. `size` is the key's length.
  bool longestPrefix(std::string_view text, size_t &size, std::string_view &replacement) const;
  // What tokenizer.json's "Precompiled" does: grapheme clusters first, then single characters.
  std::string mapClusters(std::string_view text) const;

private:
  std::string_view replacementAt(uint32_t offset) const;
  bool exact(std::string_view key, std::string_view &replacement) const;
  // Calls `each(bytes of key, offset)` for every key that `text` starts with, shortest first.
  template <typename Each> void prefixes(std::string_view text, Each each) const;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

// Standard base64 with padding; `pointer` names the value in messages.
StatusOr<std::string> decodeBase64(std::string_view text, const std::string &pointer);

} // namespace llmc
