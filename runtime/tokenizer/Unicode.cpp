// UTF-8, categories and normalization forms. Categories come from utf8proc; the normalization forms are put together
// here because utf8proc orders combining marks by insertion, which is quadratic in a long run of them.
#include "runtime/tokenizer/Unicode.h"
#include <algorithm>
#include <cstring>
#include <utf8proc.h>
#include <vector>

namespace llmc::unicode {
namespace {

struct StandInRange {
  uint32_t first, last, standIn;
};
// Characters that Unicode 15, 15.1 and 16 added to Unicode 14 (Oniguruma 6.9.8's tables). The stand-in is the nearest
// character of the same general category and UTF-8 length that Unicode 14 has; for Han it is U+20000.
const StandInRange standIns[] = {
#include "runtime/tokenizer/UnicodeStandIns.inc"
};

utf8proc_category_t category(uint32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(standIn(code))); }

int combiningClass(int32_t code) { return utf8proc_get_property(code)->combining_class; }

// Sorts each run of marks by combining class, equal ones in place (std::stable_sort's buffer is deprecated in
// libstdc++).
void orderMarks(std::vector<int32_t> &codes) {
  std::vector<std::pair<int, size_t>> order;
  std::vector<int32_t> run;
  for (size_t begin = 0; begin < codes.size();) {
    size_t end = begin;
    order.clear();
    for (int mark; end < codes.size() && (mark = combiningClass(codes[end])) != 0; ++end)
      order.emplace_back(mark, end);
    std::sort(order.begin(), order.end());
    run.clear();
    for (auto [mark, at] : order)
      run.push_back(codes[at]);
    std::copy(run.begin(), run.end(), codes.begin() + static_cast<std::ptrdiff_t>(begin));
    begin = std::max(end, begin + 1);
  }
}

} // namespace

Decoded decode(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(at);
  if (lead < 0x80)
    return {lead, 1, true};
  int extra = lead >= 0xC2 && lead <= 0xDF ? 1 : (lead & 0xF0) == 0xE0 ? 2 : lead >= 0xF0 && lead <= 0xF4 ? 3 : 0;
  if (extra == 0)
    return {0xFFFD, 1, false};
  uint32_t code = lead & (0x3F >> extra);
  for (int i = 1; i <= extra; ++i) {
    if (at + static_cast<size_t>(i) >= text.size())
      return {0xFFFD, static_cast<uint8_t>(i), false};
    uint8_t next = byte(at + static_cast<size_t>(i));
    uint8_t low = 0x80, high = 0xBF;
    if (i == 1) { // No overlong forms, no surrogates, nothing above U+10FFFF.
      low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : low;
      high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : high;
    }
    if (next < low || next > high)
      return {0xFFFD, static_cast<uint8_t>(i), false};
    code = code << 6 | (next & 0x3F);
  }
  return {code, static_cast<uint8_t>(extra + 1), true};
}

void append(std::string &out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool isValidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    uint64_t word;
    if (i + 8 <= text.size() && (std::memcpy(&word, text.data() + i, 8), (word & 0x8080808080808080u) == 0)) {
      i += 8;
      continue;
    }
    Decoded character = decode(text, i);
    if (!character.valid)
      return false;
    i += character.size;
  }
  return true;
}

std::string replaceInvalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    Decoded character = decode(text, i);
    out += character.valid ? text.substr(i, character.size) : replacementCharacter;
    i += character.size;
  }
  return out;
}

bool endsInVisibleCharacter(std::string_view text) {
  size_t start = text.size();
  for (int back = 0; back < 4 && start > 0; ++back) {
    --start;
    if ((static_cast<uint8_t>(text[start]) & 0xC0) != 0x80)
      break;
  }
  if (start == text.size())
    return false;
  Decoded last = decode(text, start);
  return last.valid && start + last.size == text.size() && last.code != 0xFFFD;
}

size_t countCharacters(std::string_view validText) {
  return static_cast<size_t>(std::count_if(validText.begin(), validText.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

bool isWhiteSpace(uint32_t code) {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

bool isNumeric(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool isPunctuationCategory(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool isPunctuation(uint32_t code) {
  bool asciiSymbol =
      code > 0x20 && code < 0x7F && !((code | 32) >= 'a' && (code | 32) <= 'z') && !(code >= '0' && code <= '9');
  return asciiSymbol || isPunctuationCategory(code);
}

bool isMark(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool isNonspacingMark(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool isOther(uint32_t code) {
  utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_CC;
}

bool isWordCharacter(uint32_t code) {
  utf8proc_category_t c = category(code);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC || code == 0x200C ||
         code == 0x200D || (code >= 0x24B6 && code <= 0x24E9);
}

void appendLowerCase(std::string &out, uint32_t code) {
  // The only character whose full lower case has two characters: i and a dot above.
  if (code == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  append(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

uint32_t standIn(uint32_t code) {
  if (code < standIns[0].first)
    return code;
  const StandInRange *range = std::upper_bound(std::begin(standIns), std::end(standIns), code,
                                               [](uint32_t c, const StandInRange &entry) { return c < entry.first; });
  --range;
  return code <= range->last ? range->standIn : code;
}

bool replaceByStandIns(std::string_view text, std::string &out) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    if (static_cast<uint8_t>(text[i]) < 0xE0) { // Below U+0800, where nothing was added.
      ++i;
      continue;
    }
    Decoded character = decode(text, i);
    uint32_t other = standIn(character.code);
    if (other != character.code) {
      if (!any)
        out.assign(text);
      any = true;
      std::string bytes;
      append(bytes, other);
      out.replace(i, bytes.size(), bytes);
    }
    i += character.size;
  }
  return any;
}

std::string normalize(std::string_view validText, Form form) {
  bool compose = form == Form::Nfc || form == Form::Nfkc;
  bool compatible = form == Form::Nfkc || form == Form::Nfkd;
  // Nothing below U+00A0 (or U+0300 for NFC) changes.
  uint8_t harmless = form == Form::Nfc ? 0xCC : 0xC2;
  if (std::all_of(validText.begin(), validText.end(), [&](char c) { return static_cast<uint8_t>(c) < harmless; }))
    return std::string(validText);
  auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<int32_t> codes;
  codes.reserve(validText.size());
  int boundClass = UTF8PROC_BOUNDCLASS_START;
  for (size_t i = 0; i < validText.size();) {
    Decoded character = decode(validText, i);
    i += character.size;
    int32_t parts[32]; // The longest decomposition (U+FDFA) has 18 characters.
    auto count = utf8proc_decompose_char(static_cast<int32_t>(character.code), parts, 32, options, &boundClass);
    if (count >= 0 && count <= 32)
      codes.insert(codes.end(), parts, parts + count);
    else
      codes.push_back(static_cast<int32_t>(character.code));
  }
  orderMarks(codes);
  auto size = static_cast<utf8proc_ssize_t>(codes.size());
  if (compose)
    size = utf8proc_normalize_utf32(codes.data(), size,
                                    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(validText.size());
  for (utf8proc_ssize_t i = 0; i < size; ++i)
    append(out, static_cast<uint32_t>(codes[static_cast<size_t>(i)]));
  return out;
}

} // namespace llmc::unicode
