// Filters over single values (numbers, defaults, JSON), and finding a filter by name.
#include "runtime/template/FilterTables.h"
#include "runtime/template/JsonText.h"
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace llmc::jinja {
namespace {

ValueOr defaultFilter(Runtime &, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("default", arguments, {"default_value", "boolean"}));
  bool replace = value.isUndefined() || (bound[1] && isTrue(*bound[1]) && !isTrue(value));
  return replace ? bound[0].value_or(Value::string("")) : value;
}

ValueOr lengthFilter(Runtime &, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("length", arguments, {}));
  LLMC_ASSIGN_OR_RETURN(int64_t n, length(value));
  return Value::integer(n);
}

// Python's int(text, base): blanks around, a sign, underscores between digits, a prefix that fits the base.
std::optional<Int> parseInteger(const std::string &text, int64_t base) {
  std::string_view s = trimSpace(text, true, true);
  bool negative = !s.empty() && s[0] == '-';
  if (negative || (!s.empty() && s[0] == '+'))
    s.remove_prefix(1);
  int64_t implied = 0;
  if (s.size() > 2 && s[0] == '0')
    implied = (s[1] | 32) == 'x' ? 16 : (s[1] | 32) == 'o' ? 8 : (s[1] | 32) == 'b' ? 2 : 0;
  if (implied != 0 && (base == 0 || base == implied)) {
    s.remove_prefix(2);
    base = implied;
  } else if (base == 0) {
    base = 10;
    if (s.size() > 1 && s[0] == '0' && s.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  Int result = 0;
  bool digitBefore = false;
  for (char c : s) {
    if (c == '_' && digitBefore) {
      digitBefore = false;
      continue;
    }
    int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
    if (digit >= base || __builtin_mul_overflow(result, static_cast<Int>(base), &result) ||
        __builtin_add_overflow(result, static_cast<Int>(digit), &result))
      return std::nullopt;
    digitBefore = true;
  }
  if (!digitBefore)
    return std::nullopt;
  return negative ? -result : result;
}

std::optional<double> parseReal(const std::string &text) {
  std::string s;
  std::string_view trimmed = trimSpace(text, true, true);
  for (size_t i = 0; i < trimmed.size(); ++i) {
    char c = trimmed[i];
    auto isDigitAt = [&](size_t at) { return at < trimmed.size() && trimmed[at] >= '0' && trimmed[at] <= '9'; };
    if (c == '_' && i > 0 && isDigitAt(i - 1) && isDigitAt(i + 1))
      continue;
    // strtod would also take hexadecimal numbers and nan(...).
    if (c == '\0' || c == 'x' || c == 'X' || c == '(' || c == ' ' || (c >= '\t' && c <= '\r'))
      return std::nullopt;
    s += c;
  }
  char *end = nullptr;
  double d = std::strtod(s.c_str(), &end);
  if (s.empty() || *end != '\0')
    return std::nullopt;
  return d;
}

ValueOr intFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("int", arguments, {"default", "base"}));
  Value fallback = bound[0].value_or(Value::integer(0));
  int64_t base = 10;
  if (bound[1]) {
    LLMC_ASSIGN_OR_RETURN(base, toIndex(*bound[1], "base"));
    if (base != 0 && (base < 2 || base > 36))
      return Status::error("base is " + std::to_string(base) + ", expected 0 or 2 to 36");
  }
  if (value.isUndefined())
    return undefinedError(value);
  std::optional<double> real;
  if (value.isString()) {
    LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(value.text().size()));
    if (std::optional<Int> whole = parseInteger(value.text(), base))
      return Value::integer(*whole);
    real = parseReal(value.text());
  } else if (value.isNumber()) {
    if (value.isInteger())
      return Value::integer(value.asInt());
    real = value.asDouble();
  }
  if (!real || !std::isfinite(*real))
    return fallback;
  return toInteger(Value::real(*real));
}

ValueOr floatFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("float", arguments, {"default"}));
  if (value.isUndefined())
    return undefinedError(value);
  if (value.isNumber())
    return Value::real(value.asDouble());
  if (value.isString()) {
    LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(value.text().size()));
    if (std::optional<double> d = parseReal(value.text()))
      return Value::real(*d);
  }
  return bound[0].value_or(Value::real(0));
}

ValueOr absFilter(Runtime &, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("abs", arguments, {}));
  if (!value.isNumber())
    return value.isUndefined() ? undefinedError(value)
                               : Status::error("bad operand type for abs(): '" + typeName(value) + "'");
  if (value.is(Kind::Float))
    return Value::real(std::fabs(value.asDouble()));
  return value.asInt() < 0 ? negate(value) : ValueOr(Value::integer(value.asInt()));
}

// Rounds the decimal expansion half to even, as Python's round does.
double roundDecimal(double value, int precision) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, "%.*f", precision, value);
  return std::strtod(buffer, nullptr);
}

ValueOr roundFilter(Runtime &, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("round", arguments, {"precision", "method"}));
  int64_t precision = 0;
  if (bound[0]) {
    LLMC_ASSIGN_OR_RETURN(precision, toIndex(*bound[0], "precision"));
  }
  std::string method = bound[1] && bound[1]->isString() ? bound[1]->text() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    return Status::error("method must be common, ceil or floor");
  if (!value.isNumber())
    return value.isUndefined() ? undefinedError(value)
                               : Status::error("type " + typeName(value) + " cannot be rounded");
  if (precision < -30 || precision > 150)
    return Status::error("precision " + std::to_string(precision) + " is not between -30 and 150");
  double scale = std::pow(10.0, static_cast<double>(precision)), d = value.asDouble();
  if (method != "common")
    return Value::real((method == "ceil" ? std::ceil(d * scale) : std::floor(d * scale)) / scale);
  if (value.isInteger() && precision >= 0)
    return Value::integer(value.asInt());
  double rounded = precision >= 0 ? roundDecimal(d, static_cast<int>(precision)) : std::nearbyint(d * scale) / scale;
  return value.isInteger() ? toInteger(Value::real(rounded)) : ValueOr(Value::real(rounded));
}

ValueOr fileSizeFilter(Runtime &, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("filesizeformat", arguments, {"binary"}));
  bool binary = bound[0] && isTrue(*bound[0]);
  std::optional<double> bytes = value.isString() ? parseReal(value.text()) : std::nullopt;
  if (value.isNumber())
    bytes = value.asDouble();
  if (!bytes || !std::isfinite(*bytes))
    return Status::error("filesizeformat takes a number, not " + typeName(value));
  double base = binary ? 1024 : 1000;
  if (*bytes == 1)
    return Value::string("1 Byte");
  if (*bytes < base)
    return Value::string(formatDouble(std::trunc(*bytes)).substr(0, formatDouble(std::trunc(*bytes)).find('.')) +
                         " Bytes");
  const char *prefixes = "kMGTPEZY";
  double unit = base * base;
  size_t i = 0;
  for (; i < 7 && *bytes >= unit; ++i)
    unit *= base;
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.1f", base * *bytes / unit);
  std::string prefix(1, binary && i == 0 ? 'K' : prefixes[i]);
  return Value::string(std::string(buffer) + " " + prefix + (binary ? "iB" : "B"));
}

ValueOr stringFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("string", arguments, {}));
  if (value.isString())
    return value;
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  return Value::string(std::move(text));
}

ValueOr safeFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  return Value::string(std::move(text), /*safe=*/true);
}

ValueOr escapeFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(std::string text, escaped(runtime.budget, value));
  return Value::string(std::move(text), /*safe=*/true);
}

ValueOr forceEscapeFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  return Value::string(escapeHtml(text), /*safe=*/true);
}

StatusOr<std::optional<std::string>> indentOf(const std::optional<Value> &given) {
  if (!given || given->is(Kind::None))
    return std::optional<std::string>();
  if (given->isString())
    return std::optional(given->text());
  LLMC_ASSIGN_OR_RETURN(int64_t width, toIndex(*given, "indent"));
  if (width > 1000)
    return Status::error("indent is " + std::to_string(width) + ", at most 1000");
  return std::optional(std::string(width > 0 ? static_cast<size_t>(width) : 0, ' '));
}

ValueOr jsonFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound,
                        bindArguments("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensureAscii = bound[0] && isTrue(*bound[0]);
  LLMC_ASSIGN_OR_RETURN(style.indent, indentOf(bound[1]));
  if (style.indent)
    style.itemSeparator = ",";
  if (bound[2] && !bound[2]->is(Kind::None)) {
    bool isPair = (bound[2]->is(Kind::Tuple) || bound[2]->is(Kind::List)) && bound[2]->items().size() == 2 &&
                  bound[2]->items()[0].isString() && bound[2]->items()[1].isString();
    if (!isPair)
      return Status::error("separators must be two strings");
    style.itemSeparator = bound[2]->items()[0].text();
    style.keySeparator = bound[2]->items()[1].text();
  }
  style.sortKeys = bound[3] && isTrue(*bound[3]);
  LLMC_ASSIGN_OR_RETURN(std::string text, jsonText(runtime.budget, value, style));
  return Value::string(std::move(text));
}

ValueOr attrFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("attr", arguments, {"name"}, 1));
  LLMC_ASSIGN_OR_RETURN(std::string name, pythonStr(runtime.budget, *bound[0]));
  // Attributes only, never the keys of a dict.
  if (value.is(Kind::Dict) && !hasMethod(value, name))
    return Value::undefined("'dict object' has no attribute '" + name + "'");
  return getAttribute(runtime.budget, value, name);
}

} // namespace

std::span<const NamedFilter> valueFilters() {
  static const NamedFilter table[] = {
      {"abs", absFilter},         {"attr", attrFilter},
      {"count", lengthFilter},    {"d", defaultFilter},
      {"default", defaultFilter}, {"e", escapeFilter},
      {"escape", escapeFilter},   {"filesizeformat", fileSizeFilter},
      {"float", floatFilter},     {"forceescape", forceEscapeFilter},
      {"int", intFilter},         {"length", lengthFilter},
      {"round", roundFilter},     {"safe", safeFilter},
      {"string", stringFilter},   {"tojson", jsonFilter},
  };
  return table;
}

Filter findFilter(const std::string &name) {
  static const std::unordered_map<std::string, Filter> table = [] {
    std::unordered_map<std::string, Filter> out;
    for (std::span<const NamedFilter> filters : {valueFilters(), textFilters(), sequenceFilters()})
      for (const NamedFilter &f : filters)
        out.emplace(f.name, f.filter);
    return out;
  }();
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

ValueOr applyFilter(Runtime &runtime, const std::string &name, const Value &value, const Arguments &arguments) {
  LLMC_RETURN_IF_ERROR(runtime.budget.step());
  Filter filter = findFilter(name);
  if (!filter)
    return Status::error("no filter named '" + name + "'");
  return filter(runtime, value, arguments);
}

} // namespace llmc::jinja
