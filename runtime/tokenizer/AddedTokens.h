// Added tokens: strings that are found in the text before anything else is done to it.
#pragma once
#include "runtime/support/Status.h"
#include "runtime/tokenizer/ByteTrie.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace llmc {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false; // searched in the normalized text, after its own content was normalized
  bool singleWord = false; // counts only between characters that are no part of a word
  bool stripLeft = false;  // swallows the white space before it
  bool stripRight = false; // and after it
  bool searched = true;    // false: known as special, but never found in a text
};

// A piece of text between added tokens (id < 0), or an added token.
struct TextPart {
  size_t begin, end;
  int32_t id;
};

class AddedTokens {
public:
  using Normalize = std::function<StatusOr<std::string>(std::string_view)>;
  // Fails for an empty or over-long content. `normalize` is applied to the content of normalized tokens; `pointer`
  // names the list in messages.
  static StatusOr<AddedTokens> build(std::vector<AddedToken> tokens, const Normalize &normalize,
                                     const std::string &pointer);

  enum class Pass { Raw, Normalized };
  // Splits `text` at the tokens of a pass: leftmost first, then longest. Special ones are skipped as text when
  // `specialAsText`. Parts are in order; empty ones are left out.
  std::vector<TextPart> split(std::string_view text, Pass pass, bool specialAsText) const;

  const std::vector<AddedToken> &tokens() const { return tokens_; }
  bool isSpecial(int32_t id) const { return special_.contains(id); }
  std::optional<int32_t> id(std::string_view content) const;
  // By id: what normalized tokens decode to, where their normalized content differs from the written one.
  const std::unordered_map<int32_t, std::string> &decodedAs() const { return decodedAs_; }

private:
  std::vector<AddedToken> tokens_;
  std::unordered_set<int32_t> special_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, std::string> decodedAs_;
  ByteTrie raw_, normalized_; // to the index in tokens_
};

} // namespace llmc
