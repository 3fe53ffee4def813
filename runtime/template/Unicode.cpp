// Character classes come from utf8proc; the mappings to several code points from Unicode's SpecialCasing, written
// below.
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <utf8proc.h>

namespace llmc::jinja {
namespace {

struct SpecialCase {
  char32_t from;
  const char32_t *upper;
  const char32_t *title;
};
// Every code point whose upper or title case is longer than itself, ascending.
const SpecialCase specialCases[] = {{0x00DF, U"\x0053\x0053", U"\x0053\x0073"},
                                    {0x0149, U"\x02BC\x004E", U"\x02BC\x004E"},
                                    {0x01F0, U"\x004A\x030C", U"\x004A\x030C"},
                                    {0x0390, U"\x0399\x0308\x0301", U"\x0399\x0308\x0301"},
                                    {0x03B0, U"\x03A5\x0308\x0301", U"\x03A5\x0308\x0301"},
                                    {0x0587, U"\x0535\x0552", U"\x0535\x0582"},
                                    {0x1E96, U"\x0048\x0331", U"\x0048\x0331"},
                                    {0x1E97, U"\x0054\x0308", U"\x0054\x0308"},
                                    {0x1E98, U"\x0057\x030A", U"\x0057\x030A"},
                                    {0x1E99, U"\x0059\x030A", U"\x0059\x030A"},
                                    {0x1E9A, U"\x0041\x02BE", U"\x0041\x02BE"},
                                    {0x1F50, U"\x03A5\x0313", U"\x03A5\x0313"},
                                    {0x1F52, U"\x03A5\x0313\x0300", U"\x03A5\x0313\x0300"},
                                    {0x1F54, U"\x03A5\x0313\x0301", U"\x03A5\x0313\x0301"},
                                    {0x1F56, U"\x03A5\x0313\x0342", U"\x03A5\x0313\x0342"},
                                    {0x1F80, U"\x1F08\x0399", U"\x1F88"},
                                    {0x1F81, U"\x1F09\x0399", U"\x1F89"},
                                    {0x1F82, U"\x1F0A\x0399", U"\x1F8A"},
                                    {0x1F83, U"\x1F0B\x0399", U"\x1F8B"},
                                    {0x1F84, U"\x1F0C\x0399", U"\x1F8C"},
                                    {0x1F85, U"\x1F0D\x0399", U"\x1F8D"},
                                    {0x1F86, U"\x1F0E\x0399", U"\x1F8E"},
                                    {0x1F87, U"\x1F0F\x0399", U"\x1F8F"},
                                    {0x1F88, U"\x1F08\x0399", U"\x1F88"},
                                    {0x1F89, U"\x1F09\x0399", U"\x1F89"},
                                    {0x1F8A, U"\x1F0A\x0399", U"\x1F8A"},
                                    {0x1F8B, U"\x1F0B\x0399", U"\x1F8B"},
                                    {0x1F8C, U"\x1F0C\x0399", U"\x1F8C"},
                                    {0x1F8D, U"\x1F0D\x0399", U"\x1F8D"},
                                    {0x1F8E, U"\x1F0E\x0399", U"\x1F8E"},
                                    {0x1F8F, U"\x1F0F\x0399", U"\x1F8F"},
                                    {0x1F90, U"\x1F28\x0399", U"\x1F98"},
                                    {0x1F91, U"\x1F29\x0399", U"\x1F99"},
                                    {0x1F92, U"\x1F2A\x0399", U"\x1F9A"},
                                    {0x1F93, U"\x1F2B\x0399", U"\x1F9B"},
                                    {0x1F94, U"\x1F2C\x0399", U"\x1F9C"},
                                    {0x1F95, U"\x1F2D\x0399", U"\x1F9D"},
                                    {0x1F96, U"\x1F2E\x0399", U"\x1F9E"},
                                    {0x1F97, U"\x1F2F\x0399", U"\x1F9F"},
                                    {0x1F98, U"\x1F28\x0399", U"\x1F98"},
                                    {0x1F99, U"\x1F29\x0399", U"\x1F99"},
                                    {0x1F9A, U"\x1F2A\x0399", U"\x1F9A"},
                                    {0x1F9B, U"\x1F2B\x0399", U"\x1F9B"},
                                    {0x1F9C, U"\x1F2C\x0399", U"\x1F9C"},
                                    {0x1F9D, U"\x1F2D\x0399", U"\x1F9D"},
                                    {0x1F9E, U"\x1F2E\x0399", U"\x1F9E"},
                                    {0x1F9F, U"\x1F2F\x0399", U"\x1F9F"},
                                    {0x1FA0, U"\x1F68\x0399", U"\x1FA8"},
                                    {0x1FA1, U"\x1F69\x0399", U"\x1FA9"},
                                    {0x1FA2, U"\x1F6A\x0399", U"\x1FAA"},
                                    {0x1FA3, U"\x1F6B\x0399", U"\x1FAB"},
                                    {0x1FA4, U"\x1F6C\x0399", U"\x1FAC"},
                                    {0x1FA5, U"\x1F6D\x0399", U"\x1FAD"},
                                    {0x1FA6, U"\x1F6E\x0399", U"\x1FAE"},
                                    {0x1FA7, U"\x1F6F\x0399", U"\x1FAF"},
                                    {0x1FA8, U"\x1F68\x0399", U"\x1FA8"},
                                    {0x1FA9, U"\x1F69\x0399", U"\x1FA9"},
                                    {0x1FAA, U"\x1F6A\x0399", U"\x1FAA"},
                                    {0x1FAB, U"\x1F6B\x0399", U"\x1FAB"},
                                    {0x1FAC, U"\x1F6C\x0399", U"\x1FAC"},
                                    {0x1FAD, U"\x1F6D\x0399", U"\x1FAD"},
                                    {0x1FAE, U"\x1F6E\x0399", U"\x1FAE"},
                                    {0x1FAF, U"\x1F6F\x0399", U"\x1FAF"},
                                    {0x1FB2, U"\x1FBA\x0399", U"\x1FBA\x0345"},
                                    {0x1FB3, U"\x0391\x0399", U"\x1FBC"},
                                    {0x1FB4, U"\x0386\x0399", U"\x0386\x0345"},
                                    {0x1FB6, U"\x0391\x0342", U"\x0391\x0342"},
                                    {0x1FB7, U"\x0391\x0342\x0399", U"\x0391\x0342\x0345"},
                                    {0x1FBC, U"\x0391\x0399", U"\x1FBC"},
                                    {0x1FC2, U"\x1FCA\x0399", U"\x1FCA\x0345"},
                                    {0x1FC3, U"\x0397\x0399", U"\x1FCC"},
                                    {0x1FC4, U"\x0389\x0399", U"\x0389\x0345"},
                                    {0x1FC6, U"\x0397\x0342", U"\x0397\x0342"},
                                    {0x1FC7, U"\x0397\x0342\x0399", U"\x0397\x0342\x0345"},
                                    {0x1FCC, U"\x0397\x0399", U"\x1FCC"},
                                    {0x1FD2, U"\x0399\x0308\x0300", U"\x0399\x0308\x0300"},
                                    {0x1FD3, U"\x0399\x0308\x0301", U"\x0399\x0308\x0301"},
                                    {0x1FD6, U"\x0399\x0342", U"\x0399\x0342"},
                                    {0x1FD7, U"\x0399\x0308\x0342", U"\x0399\x0308\x0342"},
                                    {0x1FE2, U"\x03A5\x0308\x0300", U"\x03A5\x0308\x0300"},
                                    {0x1FE3, U"\x03A5\x0308\x0301", U"\x03A5\x0308\x0301"},
                                    {0x1FE4, U"\x03A1\x0313", U"\x03A1\x0313"},
                                    {0x1FE6, U"\x03A5\x0342", U"\x03A5\x0342"},
                                    {0x1FE7, U"\x03A5\x0308\x0342", U"\x03A5\x0308\x0342"},
                                    {0x1FF2, U"\x1FFA\x0399", U"\x1FFA\x0345"},
                                    {0x1FF3, U"\x03A9\x0399", U"\x1FFC"},
                                    {0x1FF4, U"\x038F\x0399", U"\x038F\x0345"},
                                    {0x1FF6, U"\x03A9\x0342", U"\x03A9\x0342"},
                                    {0x1FF7, U"\x03A9\x0342\x0399", U"\x03A9\x0342\x0345"},
                                    {0x1FFC, U"\x03A9\x0399", U"\x1FFC"},
                                    {0xFB00, U"\x0046\x0046", U"\x0046\x0066"},
                                    {0xFB01, U"\x0046\x0049", U"\x0046\x0069"},
                                    {0xFB02, U"\x0046\x004C", U"\x0046\x006C"},
                                    {0xFB03, U"\x0046\x0046\x0049", U"\x0046\x0066\x0069"},
                                    {0xFB04, U"\x0046\x0046\x004C", U"\x0046\x0066\x006C"},
                                    {0xFB05, U"\x0053\x0054", U"\x0053\x0074"},
                                    {0xFB06, U"\x0053\x0054", U"\x0053\x0074"},
                                    {0xFB13, U"\x0544\x0546", U"\x0544\x0576"},
                                    {0xFB14, U"\x0544\x0535", U"\x0544\x0565"},
                                    {0xFB15, U"\x0544\x053B", U"\x0544\x056B"},
                                    {0xFB16, U"\x054E\x0546", U"\x054E\x0576"},
                                    {0xFB17, U"\x0544\x053D", U"\x0544\x056D"}};

const SpecialCase *findSpecialCase(char32_t c) {
  const SpecialCase *end = std::end(specialCases);
  const SpecialCase *found =
      std::lower_bound(std::begin(specialCases), end, c, [](const SpecialCase &s, char32_t v) { return s.from < v; });
  return found != end && found->from == c ? found : nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool isCased(char32_t c) { return isUpper(c) || isLower(c) || isTitle(c); }

// Unicode's Case_Ignorable, as far as it decides about a final sigma.
bool isCaseIgnorable(char32_t c) {
  if (c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027)
    return true;
  utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK;
}

// Both directions at once would be quadratic for a text of sigmas and ignorable marks: the caller carries
// `casedBefore`.
bool casedFollows(const std::vector<char32_t> &text, size_t i) {
  size_t j = i + 1;
  while (j < text.size() && isCaseIgnorable(text[j]))
    ++j;
  return j < text.size() && isCased(text[j]);
}

} // namespace

char32_t nextCodePoint(std::string_view text, size_t &position) {
  auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) {
    ++position;
    return byte;
  }
  utf8proc_int32_t c = 0;
  utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + position,
                                        static_cast<utf8proc_ssize_t>(text.size() - position), &c);
  if (n <= 0) {
    ++position;
    return 0xFFFD;
  }
  position += static_cast<size_t>(n);
  return static_cast<char32_t>(c);
}

void appendCodePoint(std::string &out, char32_t codePoint) {
  utf8proc_uint8_t bytes[4];
  utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(codePoint), bytes);
  out.append(reinterpret_cast<const char *>(bytes), static_cast<size_t>(n));
}

std::vector<char32_t> codePoints(std::string_view text) {
  std::vector<char32_t> out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();)
    out.push_back(nextCodePoint(text, i));
  return out;
}

size_t countCodePoints(std::string_view text) {
  size_t n = 0;
  for (size_t i = 0; i < text.size(); ++n)
    nextCodePoint(text, i);
  return n;
}

std::optional<size_t> findInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    if (nextCodePoint(text, i) == 0xFFFD && text.substr(start, i - start) != "\xEF\xBF\xBD")
      return start;
  }
  return std::nullopt;
}

bool isSpace(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool isPrintable(char32_t c) {
  switch (category(c)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  case UTF8PROC_CATEGORY_ZS:
    return c == ' ';
  default:
    return true;
  }
}

bool isLineBreak(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool isAlpha(char32_t c) {
  utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}
bool isDecimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool isDigit(char32_t c) {
  // Superscripts and subscripts count as digits in Python, fractions do not.
  return isDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
}
bool isNumeric(char32_t c) {
  utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}
bool isUpper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool isLower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA; }
bool isTitle(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool isNameCharacter(char32_t c) {
  if (c < 0x80)
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  utf8proc_category_t k = category(c);
  return isAlpha(c) || isDecimal(c) || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_MN ||
         k == UTF8PROC_CATEGORY_MC;
}

std::string toUpper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text, i);
    if (const SpecialCase *special = findSpecialCase(c)) {
      for (const char32_t *u = special->upper; *u; ++u)
        appendCodePoint(out, *u);
    } else {
      appendCodePoint(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

std::string toLower(std::string_view text, bool casedBefore) {
  std::vector<char32_t> in = codePoints(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < in.size(); ++i) {
    char32_t c = in[i];
    if (c == 0x3A3)
      appendCodePoint(out, casedBefore && !casedFollows(in, i) ? 0x3C2 : 0x3C3);
    else if (c == 0x130) // The dotted capital I: i and a combining dot.
      out += "i\xCC\x87";
    else
      appendCodePoint(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    if (!isCaseIgnorable(c))
      casedBefore = isCased(c);
  }
  return out;
}

std::string foldCase(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t folded[8];
    auto c = static_cast<utf8proc_int32_t>(nextCodePoint(text, i));
    utf8proc_ssize_t n = utf8proc_decompose_char(c, folded, 8, UTF8PROC_CASEFOLD, nullptr);
    for (utf8proc_ssize_t k = 0; k < n && k < 8; ++k)
      appendCodePoint(out, static_cast<char32_t>(folded[k]));
  }
  return out;
}

std::string toTitle(char32_t c) {
  std::string out;
  if (const SpecialCase *special = findSpecialCase(c)) {
    for (const char32_t *t = special->title; *t; ++t)
      appendCodePoint(out, *t);
    return out;
  }
  appendCodePoint(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  return out;
}

std::string_view trimSpace(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    size_t i = 0;
    if (!isSpace(nextCodePoint(text, i)))
      break;
    text.remove_prefix(i);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    size_t i = start;
    if (!isSpace(nextCodePoint(text, i)) || i != text.size())
      break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

} // namespace llmc::jinja
