// Code points over UTF-8 text, with the character classes and case mappings of Python's str.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::jinja {

// The code point that starts at `position`, which moves past it. A byte that starts none reads as U+FFFD.
char32_t nextCodePoint(std::string_view text, size_t &position);
void appendCodePoint(std::string &out, char32_t codePoint);
std::vector<char32_t> codePoints(std::string_view text);
size_t countCodePoints(std::string_view text);
// The offset of the first byte that is not part of valid UTF-8.
std::optional<size_t> findInvalidUtf8(std::string_view text);

bool isSpace(char32_t c);
bool isPrintable(char32_t c);
bool isLineBreak(char32_t c);
bool isAlpha(char32_t c);
bool isDecimal(char32_t c);
bool isDigit(char32_t c);
bool isNumeric(char32_t c);
bool isUpper(char32_t c);
bool isLower(char32_t c);
bool isTitle(char32_t c);
// A letter, digit, mark of a word or the underscore: what a name of the template may hold.
bool isNameCharacter(char32_t c);

// Full mappings: one code point may become three, and a sigma that ends a word has its own form.
std::string toUpper(std::string_view text);
// `casedBefore`: whether the text goes on a word.
std::string toLower(std::string_view text, bool casedBefore = false);
std::string foldCase(std::string_view text);
std::string toTitle(char32_t c);

std::string_view trimSpace(std::string_view text, bool left, bool right);

} // namespace llmc::jinja
