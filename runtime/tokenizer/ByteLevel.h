// The byte letters: a printable character for each byte, so that byte sequences can be written as text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace llmc::bytelevel {

// The letter of `byte`, in UTF-8 (one or two bytes).
std::string_view letter(uint8_t byte);
std::string toLetters(std::string_view bytes);
// Appends the bytes that `letters` stands for; false (and nothing appended) when a character is no byte letter.
bool appendBytes(std::string_view letters, std::string &out);

} // namespace llmc::bytelevel
