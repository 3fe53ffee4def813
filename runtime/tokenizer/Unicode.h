// UTF-8 and the character properties that tokenizers ask for, as of Unicode 16.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace llmc::unicode {

inline constexpr std::string_view replacementCharacter = "\xEF\xBF\xBD"; // U+FFFD

// One decoded character. An invalid one has size = the bytes of its maximal bad part (at least 1) and code = U+FFFD.
struct Decoded {
  uint32_t code;
  uint8_t size;
  bool valid;
};
// Decodes the character at `at`, which must be below text.size().
Decoded decode(std::string_view text, size_t at);
void append(std::string &out, uint32_t code);

bool isValidUtf8(std::string_view text);
// Each maximal bad part becomes one U+FFFD, as in Python and Rust.
std::string replaceInvalid(std::string_view text);
// True when the last character of `text` is complete and is not U+FFFD: what may be shown of a growing text.
bool endsInVisibleCharacter(std::string_view text);
size_t countCharacters(std::string_view validText);

bool isWhiteSpace(uint32_t code);
// General categories Nd, Nl and No.
bool isNumeric(uint32_t code);
// General category P*, or any ASCII symbol.
bool isPunctuation(uint32_t code);
// General category P* alone.
bool isPunctuationCategory(uint32_t code);
bool isMark(uint32_t code);
bool isNonspacingMark(uint32_t code);
// Control, format, surrogate and private use.
bool isOther(uint32_t code);
// \w of regular expressions: letters, marks, decimal digits, connectors and joiners.
bool isWordCharacter(uint32_t code);
void appendLowerCase(std::string &out, uint32_t code);

// A character of the same general category, script (as far as Han) and UTF-8 length that a library with tables of
// Unicode 14 knows, when `code` was assigned in Unicode 15 to 16; otherwise `code` itself.
uint32_t standIn(uint32_t code);
// Whether `text` holds a character whose standIn differs; when so, `out` is `text` with the stand-ins, byte for byte as
// long.
bool replaceByStandIns(std::string_view text, std::string &out);

enum class Form { Nfc, Nfd, Nfkc, Nfkd };
std::string normalize(std::string_view validText, Form form);

} // namespace llmc::unicode
