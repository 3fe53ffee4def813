// What is done to a piece of text before it is cut: Unicode forms, replacements, prefixes.
#pragma once
#include "runtime/support/Json.h"
#include "runtime/tokenizer/Regex.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// A pattern of tokenizer.json: a literal string or a regular expression.
struct TextPattern {
  std::string literal;
  std::optional<Regex> regex;
  static StatusOr<TextPattern> read(const Json &value, const std::string &pointer);
  // Every match in order, as [begin, end).
  StatusOr<std::vector<std::pair<size_t, size_t>>> matches(std::string_view text, RegexBudget &budget) const;
  StatusOr<std::string> replaceAll(std::string_view text, std::string_view content, RegexBudget &budget) const;
};

class Normalizer {
public:
  virtual ~Normalizer() = default;
  virtual StatusOr<std::string> apply(std::string text, RegexBudget &budget) const = 0;
};

// Reads a "normalizer" of tokenizer.json; a null value gives a null pointer.
StatusOr<std::unique_ptr<Normalizer>> readNormalizer(const Json &value, const std::string &pointer);
// Blanks become U+2581; with `prepend`, one more goes before the text.
std::unique_ptr<Normalizer> makeSpaceMarker(bool prepend);

} // namespace llmc
