// Plain text in what a template renders: where no special token counts, whatever the text spells. The filter `plain`
// puts marks around it, which pass through concatenation, macros and blocks, and are taken out at the end.
#pragma once
#include "runtime/support/Status.h"
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace llmc::jinja {

// Bytes that UTF-8 never has: fromJson replaces them in variables, so only the filter makes them.
inline constexpr char plainBegin = '\xFE', plainEnd = '\xFF';

using ByteRanges = std::vector<std::pair<size_t, size_t>>; // [begin, end)

// A text from outside: bytes that would be marks become U+FFFD, which is what they are to any reader of UTF-8.
std::string withoutForgedMarks(const std::string &text);

// Takes the marks out of `text` and gives the ranges that they enclosed, empty ones left out; marks inside marks make
// no range of their own. `moved` are other ranges of the text, and follow. An error where a mark was lost on the way.
StatusOr<ByteRanges> takePlainMarks(std::string &text, ByteRanges *moved);

} // namespace llmc::jinja
