// The methods of Python's str that templates may call.
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <unordered_set>

namespace llmc::jinja {
namespace {

struct Call {
  Budget &budget;
  const Value &self;
  const std::string &name;
  const Arguments &arguments;
  const std::string &text() const { return self.text(); }
  // Safe strings give safe strings.
  Value result(std::string out) const { return Value::string(std::move(out), self.isSafe()); }
  // An argument that becomes part of a safe string is escaped first.
  std::string inserted(const Value &v) const { return self.isSafe() && !v.isSafe() ? escapeHtml(v.text()) : v.text(); }
};

// Before `wanted` is looked for in the text.
Status needSearch(const Call &call, const std::string &wanted) {
  return call.budget.spendSearch(call.text().size(), wanted.size());
}

Status needString(const std::string &name, const Value &v) {
  if (v.isString())
    return Status();
  if (v.isUndefined())
    return undefinedError(v);
  return Status::error(name + " takes a string, not " + typeName(v));
}

StatusOr<int64_t> countArgument(const std::optional<Value> &v) {
  if (!v)
    return -1;
  return toIndex(*v, "the count");
}

ValueOr pieces(const Call &call, std::vector<std::string_view> parts) {
  LLMC_RETURN_IF_ERROR(call.budget.spendItems(parts.size()));
  std::vector<Value> items;
  items.reserve(parts.size());
  for (std::string_view part : parts)
    items.push_back(call.result(std::string(part)));
  return makeList(std::move(items));
}

std::vector<std::string_view> splitSpace(std::string_view text, int64_t limit, bool fromRight) {
  std::vector<std::string_view> parts;
  for (;;) {
    text = trimSpace(text, !fromRight, fromRight);
    if (text.empty())
      break;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text); // Only the near side is trimmed.
      break;
    }
    size_t begin = 0, end = 0;
    if (fromRight) {
      begin = end = text.size();
      while (begin > 0 && trimSpace(text.substr(0, begin), false, true).size() == begin)
        do
          --begin;
        while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
      parts.push_back(text.substr(begin));
      text = text.substr(0, begin);
      continue;
    }
    for (size_t i = 0; i < text.size(); end = i)
      if (isSpace(nextCodePoint(text, i)))
        break;
    parts.push_back(text.substr(begin, end));
    text.remove_prefix(end);
  }
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> splitAt(std::string_view text, std::string_view separator, int64_t limit,
                                      bool fromRight) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    size_t at = fromRight ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos)
      break;
    parts.push_back(fromRight ? text.substr(at + separator.size()) : text.substr(0, at));
    text = fromRight ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return parts;
}

ValueOr split(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"sep", "maxsplit"}));
  LLMC_ASSIGN_OR_RETURN(int64_t limit, countArgument(bound[1]));
  bool fromRight = call.name == "rsplit";
  if (!bound[0] || bound[0]->is(Kind::None))
    return pieces(call, splitSpace(call.text(), limit, fromRight));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[0]));
  if (bound[0]->text().empty())
    return Status::error("empty separator");
  LLMC_RETURN_IF_ERROR(needSearch(call, bound[0]->text()));
  return pieces(call, splitAt(call.text(), bound[0]->text(), limit, fromRight));
}

ValueOr splitLines(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"keepends"}));
  bool keep = bound[0] && isTrue(*bound[0]);
  std::vector<std::string_view> lines;
  std::string_view text = call.text();
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    char32_t c = nextCodePoint(text, i);
    if (!isLineBreak(c))
      continue;
    if (c == '\r' && i < text.size() && text[i] == '\n')
      ++i;
    lines.push_back(text.substr(start, (keep ? i : end) - start));
    start = i;
  }
  if (start < text.size())
    lines.push_back(text.substr(start));
  return pieces(call, std::move(lines));
}

ValueOr strip(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"chars"}));
  bool left = call.name != "rstrip", right = call.name != "lstrip";
  if (!bound[0] || bound[0]->is(Kind::None))
    return call.result(std::string(trimSpace(call.text(), left, right)));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[0]));
  std::vector<char32_t> given = codePoints(bound[0]->text());
  std::unordered_set<char32_t> set(given.begin(), given.end());
  std::string_view text = call.text();
  for (size_t i = 0; left && !text.empty() && set.count(nextCodePoint(text, i)) != 0; i = 0)
    text.remove_prefix(i);
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    size_t i = start;
    if (set.count(nextCodePoint(text, i)) == 0)
      break;
    text = text.substr(0, start);
  }
  return call.result(std::string(text));
}

ValueOr replace(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"old", "new", "count"}, 2));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[0]));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[1]));
  LLMC_ASSIGN_OR_RETURN(int64_t limit, countArgument(bound[2]));
  std::string from = call.inserted(*bound[0]), to = call.inserted(*bound[1]);
  LLMC_RETURN_IF_ERROR(needSearch(call, from));
  const std::string &text = call.text();
  std::string out;
  size_t i = 0;
  for (int64_t n = 0; limit < 0 || n < limit; ++n) {
    if (out.size() > call.budget.limits().outputBytes)
      break;
    size_t at = text.find(from, i);
    if (at == std::string::npos)
      break;
    out.append(text, i, at - i);
    out += to;
    i = at + from.size();
    if (!from.empty())
      continue;
    // An empty pattern matches before every code point and at the end.
    size_t next = i;
    if (next < text.size())
      nextCodePoint(text, next);
    out.append(text, i, next - i);
    if (i == text.size())
      return call.result(std::move(out));
    i = next;
  }
  out.append(text, i, std::string::npos);
  LLMC_RETURN_IF_ERROR(call.budget.spendBytes(out.size()));
  return call.result(std::move(out));
}

// self[start:end] as text, and how many code points come before it.
struct Window {
  std::string text;
  int64_t offset = 0;
  bool valid = true;
};
StatusOr<Window> window(const Call &call, const std::optional<Value> &start, const std::optional<Value> &end) {
  if (!start && !end)
    return Window{call.text(), 0, true};
  auto size = static_cast<int64_t>(call.self.textObject().codePoints);
  Window out;
  if (start && !start->is(Kind::None)) {
    LLMC_ASSIGN_OR_RETURN(out.offset, toIndex(*start, "start"));
    out.offset = out.offset < 0 ? std::max<int64_t>(out.offset + size, 0) : out.offset;
  }
  out.valid = out.offset <= size;
  LLMC_ASSIGN_OR_RETURN(Value part, getSlice(call.budget, call.self, {start, end, std::nullopt}));
  out.text = part.text();
  return out;
}

ValueOr startsOrEnds(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"prefix", "start", "end"}, 1));
  LLMC_ASSIGN_OR_RETURN(Window part, window(call, bound[1], bound[2]));
  bool atStart = call.name == "startswith";
  std::vector<Value> wanted = {*bound[0]};
  if (bound[0]->is(Kind::Tuple))
    wanted = bound[0]->items();
  for (const Value &w : wanted) {
    LLMC_RETURN_IF_ERROR(needString(call.name, w));
    if (part.valid && (atStart ? part.text.starts_with(w.text()) : part.text.ends_with(w.text())))
      return Value::boolean(true);
  }
  return Value::boolean(false);
}

ValueOr findText(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"sub", "start", "end"}, 1));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[0]));
  LLMC_ASSIGN_OR_RETURN(Window part, window(call, bound[1], bound[2]));
  const std::string &wanted = bound[0]->text();
  LLMC_RETURN_IF_ERROR(needSearch(call, wanted));
  if (call.name == "count") {
    if (wanted.empty())
      return Value::integer(part.valid ? static_cast<Int>(countCodePoints(part.text)) + 1 : 0);
    Int n = 0;
    for (size_t i = part.text.find(wanted); i != std::string::npos; i = part.text.find(wanted, i + wanted.size()))
      ++n;
    return Value::integer(n);
  }
  bool fromRight = call.name[0] == 'r';
  size_t at = fromRight ? part.text.rfind(wanted) : part.text.find(wanted);
  if (at == std::string::npos || !part.valid) {
    if (call.name.ends_with("index"))
      return Status::error("substring not found");
    return Value::integer(-1);
  }
  return Value::integer(part.offset + static_cast<int64_t>(countCodePoints(part.text.substr(0, at))));
}

ValueOr join(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"iterable"}, 1));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(call.budget, *bound[0]));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].isString())
      return Status::error("sequence item " + std::to_string(i) + ": expected str instance, " + typeName(items[i]) +
                           " found");
    if (i > 0)
      out += call.text();
    out += call.inserted(items[i]);
    if (out.size() > call.budget.limits().outputBytes)
      break;
  }
  LLMC_RETURN_IF_ERROR(call.budget.spendBytes(out.size()));
  return call.result(std::move(out));
}

// title() starts every run of letters, capitalize() only the text.
std::string titled(const std::string &text, bool everyWord) {
  std::string out;
  bool inWord = false;
  // Runs are lowered as a whole: a sigma that ends one has its own form.
  std::string run;
  auto flush = [&] {
    out += toLower(run, /*casedBefore=*/!out.empty());
    run.clear();
  };
  bool first = true;
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    char32_t c = nextCodePoint(text, i);
    bool cased = isUpper(c) || isLower(c) || isTitle(c);
    bool starts = everyWord ? cased && !inWord : first;
    if (starts) {
      flush();
      out += toTitle(c);
    } else {
      run.append(text, start, i - start);
    }
    inWord = cased;
    first = false;
  }
  flush();
  return out;
}

std::string swapCase(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    char32_t c = nextCodePoint(text, i);
    std::string one = text.substr(start, i - start);
    out += isUpper(c) ? toLower(one) : isLower(c) ? toUpper(one) : one;
  }
  return out;
}

ValueOr justify(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"width", "fillchar"}, 1));
  LLMC_ASSIGN_OR_RETURN(int64_t width, toIndex(*bound[0], "width"));
  std::string fill = call.name == "zfill" ? "0" : " ";
  if (bound[1]) {
    LLMC_RETURN_IF_ERROR(needString(call.name, *bound[1]));
    if (bound[1]->textObject().codePoints != 1)
      return Status::error("the fill character must be exactly one character long");
    fill = bound[1]->text();
  }
  int64_t missing = width - static_cast<int64_t>(call.self.textObject().codePoints);
  if (missing <= 0)
    return call.self;
  LLMC_RETURN_IF_ERROR(call.budget.spendBytes(static_cast<uint64_t>(missing)));
  int64_t left = call.name == "ljust" ? 0 : missing;
  if (call.name == "center") // Python's rounding: the odd blank goes left when the width is odd.
    left = missing / 2 + (missing & width & 1);
  std::string out;
  std::string body = call.text();
  if (call.name == "zfill" && !body.empty() && (body[0] == '-' || body[0] == '+')) {
    out += body[0];
    body.erase(0, 1);
  }
  for (int64_t i = 0; i < left; ++i)
    out += fill;
  out += body;
  for (int64_t i = left; i < missing; ++i)
    out += fill;
  return call.result(std::move(out));
}

ValueOr partition(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"sep"}, 1));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[0]));
  const std::string &separator = bound[0]->text(), &text = call.text();
  if (separator.empty())
    return Status::error("empty separator");
  LLMC_RETURN_IF_ERROR(needSearch(call, separator));
  bool fromRight = call.name[0] == 'r';
  size_t at = fromRight ? text.rfind(separator) : text.find(separator);
  std::vector<Value> parts;
  if (at == std::string::npos)
    parts = {call.result(fromRight ? "" : text), call.result(""), call.result(fromRight ? text : "")};
  else
    parts = {call.result(text.substr(0, at)), call.result(separator), call.result(text.substr(at + separator.size()))};
  return makeList(std::move(parts), Kind::Tuple);
}

ValueOr removeAffix(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(call.name, call.arguments, {"affix"}, 1));
  LLMC_RETURN_IF_ERROR(needString(call.name, *bound[0]));
  const std::string &affix = bound[0]->text(), &text = call.text();
  if (call.name == "removeprefix")
    return call.result(text.starts_with(affix) ? text.substr(affix.size()) : text);
  return call.result(text.ends_with(affix) ? text.substr(0, text.size() - affix.size()) : text);
}

ValueOr format(const Call &call) {
  Arguments arguments = call.arguments;
  if (call.self.isSafe()) {
    for (Value &v : arguments.positional)
      v = v.isString() ? Value::string(call.inserted(v)) : v;
    for (auto &[key, v] : arguments.keyword)
      v = v.isString() ? Value::string(call.inserted(v)) : v;
  }
  LLMC_ASSIGN_OR_RETURN(std::string out, braceFormat(call.budget, call.text(), arguments));
  return call.result(std::move(out));
}

bool allOf(const std::string &text, bool (*is)(char32_t)) {
  for (size_t i = 0; i < text.size();)
    if (!is(nextCodePoint(text, i)))
      return false;
  return !text.empty();
}

// isupper and islower look at cased characters only, and want one.
bool hasOnlyCase(const std::string &text, bool (*wanted)(char32_t)) {
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text, i);
    if (!isUpper(c) && !isLower(c) && !isTitle(c))
      continue;
    if (!wanted(c))
      return false;
    found = true;
  }
  return found;
}

ValueOr classify(const Call &call) {
  const std::string &text = call.text(), &name = call.name;
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments(name, call.arguments, {}));
  if (name == "isupper" || name == "islower")
    return Value::boolean(hasOnlyCase(text, name == "isupper" ? isUpper : isLower));
  if (name == "isascii")
    return Value::boolean(
        std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; }));
  if (name == "istitle")
    return Value::boolean(hasOnlyCase(text, [](char32_t) { return true; }) && titled(text, true) == text);
  if (name == "isprintable")
    return Value::boolean(text.empty() || allOf(text, isPrintable));
  auto is = name == "isdigit"     ? isDigit
            : name == "isdecimal" ? isDecimal
            : name == "isnumeric" ? isNumeric
            : name == "isalpha"   ? isAlpha
            : name == "isspace"   ? isSpace
                                  : [](char32_t c) { return isAlpha(c) || isNumeric(c); };
  return Value::boolean(allOf(text, is));
}

ValueOr changeCase(const Call &call) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments(call.name, call.arguments, {}));
  const std::string &text = call.text();
  if (call.name == "upper")
    return call.result(toUpper(text));
  if (call.name == "lower")
    return call.result(toLower(text));
  if (call.name == "casefold")
    return call.result(foldCase(text));
  if (call.name == "swapcase")
    return call.result(swapCase(text));
  return call.result(titled(text, call.name == "title"));
}

using StringMethod = ValueOr (*)(const Call &);
const std::unordered_map<std::string, StringMethod> &stringMethods() {
  static const std::unordered_map<std::string, StringMethod> table = {
      {"capitalize", changeCase},
      {"casefold", changeCase},
      {"center", justify},
      {"count", findText},
      {"endswith", startsOrEnds},
      {"find", findText},
      {"format", format},
      {"index", findText},
      {"isalnum", classify},
      {"isalpha", classify},
      {"isascii", classify},
      {"isdecimal", classify},
      {"isdigit", classify},
      {"islower", classify},
      {"isnumeric", classify},
      {"isprintable", classify},
      {"isspace", classify},
      {"istitle", classify},
      {"isupper", classify},
      {"join", join},
      {"ljust", justify},
      {"lower", changeCase},
      {"lstrip", strip},
      {"partition", partition},
      {"removeprefix", removeAffix},
      {"removesuffix", removeAffix},
      {"replace", replace},
      {"rfind", findText},
      {"rindex", findText},
      {"rjust", justify},
      {"rpartition", partition},
      {"rsplit", split},
      {"rstrip", strip},
      {"split", split},
      {"splitlines", splitLines},
      {"startswith", startsOrEnds},
      {"strip", strip},
      {"swapcase", changeCase},
      {"title", changeCase},
      {"upper", changeCase},
      {"zfill", justify},
  };
  return table;
}

} // namespace

bool isStringMethod(const std::string &name) { return stringMethods().count(name) != 0; }

ValueOr callStringMethod(Budget &budget, const Value &self, const std::string &name, const Arguments &arguments) {
  // Every method reads its text about once.
  LLMC_RETURN_IF_ERROR(budget.spendBytes(self.text().size()));
  return stringMethods().at(name)({budget, self, name, arguments});
}

} // namespace llmc::jinja
