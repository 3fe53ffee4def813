// Python's two format languages: "%05.1f" % x and "{:>5}".format(x).
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmc::jinja {
namespace {

constexpr int maxPrecision = 1000;

struct Spec {
  char32_t fill = ' ';
  char align = 0; // one of < > = ^
  char sign = '-';
  bool alternate = false;
  bool grouped = false;
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

std::string formatFloatDigits(double value, char type, int precision, bool alternate) {
  char pattern[8] = {'%', '.', '*', type, 0};
  if (alternate)
    std::snprintf(pattern, sizeof pattern, "%%#.*%c", type);
  int p = precision < 0 ? 6 : precision;
  int n = std::snprintf(nullptr, 0, pattern, p, value);
  std::string out(static_cast<size_t>(n) + 1, '\0');
  std::snprintf(out.data(), out.size(), pattern, p, value);
  out.pop_back();
  return out;
}

std::string inBase(Int value, unsigned base, bool upper) {
  // The magnitude of the smallest integer needs the unsigned type.
  auto magnitude = static_cast<unsigned __int128>(value);
  if (value < 0)
    magnitude = -magnitude;
  const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out += digits[static_cast<size_t>(magnitude % base)];
    magnitude /= base;
  } while (magnitude != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string group(std::string digits) {
  size_t end = digits.find_first_not_of("0123456789");
  for (auto i = static_cast<int64_t>(end == std::string::npos ? digits.size() : end) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

StatusOr<std::string> pad(Budget &budget, const Spec &spec, const std::string &prefix, const std::string &body,
                          char defaultAlign) {
  auto size = static_cast<int64_t>(countCodePoints(prefix) + countCodePoints(body));
  if (spec.width <= size)
    return prefix + body;
  auto missing = static_cast<uint64_t>(spec.width - size);
  LLMC_RETURN_IF_ERROR(budget.spendBytes(missing));
  char align = spec.align ? spec.align : defaultAlign;
  uint64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string fill, out;
  appendCodePoint(fill, spec.fill);
  auto repeat = [&](uint64_t n) {
    for (; n > 0; --n)
      out += fill;
  };
  if (align == '=')
    out += prefix;
  repeat(left);
  out += align == '=' ? body : prefix + body;
  repeat(missing - left);
  return out;
}

std::string signOf(bool negative, char sign) { return negative ? "-" : sign == '-' ? "" : std::string(1, sign); }

StatusOr<std::string> formatInteger(Budget &budget, const Spec &spec, Int value, char type) {
  unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = inBase(value, base, type == 'X');
  if (spec.grouped)
    digits = group(digits);
  std::string prefix = signOf(value < 0, spec.sign);
  if (spec.alternate && base != 10)
    prefix += std::string("0") + type;
  return pad(budget, spec, prefix, digits, '>');
}

StatusOr<std::string> formatReal(Budget &budget, const Spec &spec, double value, char type) {
  if (spec.precision > maxPrecision)
    return Status::error("precision " + std::to_string(spec.precision) + " exceeds the limit " +
                         std::to_string(maxPrecision));
  bool percent = type == '%';
  std::string digits;
  if (type == 0 && spec.precision < 0) {
    digits = formatDouble(std::fabs(value));
  } else {
    double shown = std::fabs(percent ? value * 100 : value);
    digits = formatFloatDigits(shown, percent ? 'f' : type == 0 ? 'g' : type, spec.precision, spec.alternate);
  }
  if (spec.grouped)
    digits = group(digits);
  return pad(budget, spec, signOf(std::signbit(value), spec.sign), percent ? digits + "%" : digits, '>');
}

StatusOr<std::string> formatText(Budget &budget, const Spec &spec, const std::string &text) {
  std::string shown = text;
  if (spec.precision >= 0 && countCodePoints(text) > static_cast<size_t>(spec.precision)) {
    size_t end = 0;
    for (int i = 0; i < spec.precision; ++i)
      nextCodePoint(text, end);
    shown = text.substr(0, end);
  }
  return pad(budget, spec, "", shown, '<');
}

bool isOneOf(char c, std::string_view set) { return c != 0 && set.find(c) != std::string_view::npos; }

// Reads digits at `i`; clamps far above any limit instead of overflowing.
int64_t readNumber(const std::string &s, size_t &i) {
  int64_t n = 0;
  for (; i < s.size() && s[i] >= '0' && s[i] <= '9'; ++i)
    n = std::min<int64_t>(n * 10 + (s[i] - '0'), 1'000'000'000);
  return n;
}

class PercentFormatter {
public:
  PercentFormatter(Budget &budget, const std::string &format, const Value &values)
      : budget_(budget), format_(format), values_(values) {}

  StatusOr<std::string> run() {
    std::string out;
    while (i_ < format_.size()) {
      size_t next = std::min(format_.find('%', i_), format_.size());
      out.append(format_, i_, next - i_);
      i_ = next;
      if (i_ == format_.size())
        break;
      ++i_;
      LLMC_ASSIGN_OR_RETURN(std::string piece, conversion());
      out += piece;
      LLMC_RETURN_IF_ERROR(budget_.spendBytes(out.size()));
    }
    // What could be a mapping may go unused.
    bool single = values_.isNumber() || values_.isString() || values_.is(Kind::None);
    if (values_.is(Kind::Tuple) ? used_ < values_.items().size() : used_ == 0 && single)
      return Status::error("not all arguments converted during string formatting");
    return out;
  }

private:
  ValueOr next() {
    if (values_.is(Kind::Tuple) && used_ < values_.items().size())
      return values_.items()[used_++];
    if (!values_.is(Kind::Tuple) && used_++ == 0)
      return values_;
    return Status::error("not enough arguments for format string");
  }

  ValueOr named() {
    size_t end = format_.find(')', i_);
    if (end == std::string::npos)
      return Status::error("incomplete format key");
    std::string name = format_.substr(i_ + 1, end - i_ - 1);
    i_ = end + 1;
    if (!values_.is(Kind::Dict))
      return Status::error("format requires a mapping");
    const Value *found = values_.dict().findText(name);
    if (!found)
      return Status::error("format key '" + name + "' is missing");
    return *found;
  }

  StatusOr<int64_t> star() {
    ++i_;
    LLMC_ASSIGN_OR_RETURN(Value v, next());
    if (!v.isInteger())
      return Status::error("* wants int");
    return static_cast<int64_t>(std::clamp<Int>(v.asInt(), -1'000'000'000, 1'000'000'000));
  }

  StatusOr<std::string> conversion() {
    std::optional<Value> value;
    if (i_ < format_.size() && format_[i_] == '(') {
      LLMC_ASSIGN_OR_RETURN(value, named());
    }
    Spec spec;
    for (; i_ < format_.size() && isOneOf(format_[i_], "-+ #0"); ++i_)
      setFlag(spec, format_[i_]);
    if (i_ < format_.size() && format_[i_] == '*') {
      LLMC_ASSIGN_OR_RETURN(spec.width, star());
      if (spec.width < 0) {
        spec.width = -spec.width;
        spec.align = '<';
      }
    } else {
      spec.width = readNumber(format_, i_);
    }
    if (i_ < format_.size() && format_[i_] == '.') {
      ++i_;
      if (i_ < format_.size() && format_[i_] == '*') {
        LLMC_ASSIGN_OR_RETURN(int64_t p, star());
        spec.precision = static_cast<int>(std::max<int64_t>(p, 0));
      } else {
        spec.precision = static_cast<int>(readNumber(format_, i_));
      }
    }
    if (i_ == format_.size())
      return Status::error("incomplete format");
    char type = format_[i_++];
    if (type == '%')
      return std::string("%");
    if (!value) {
      LLMC_ASSIGN_OR_RETURN(value, next());
    }
    return convert(spec, type, *value);
  }

  static void setFlag(Spec &spec, char flag) {
    if (flag == '-')
      spec.align = '<';
    else if (flag == '#')
      spec.alternate = true;
    else if (flag != '0')
      spec.sign = spec.sign == '+' ? '+' : flag;
    else if (spec.align == 0)
      spec.align = '=';
  }

  StatusOr<std::string> convert(Spec spec, char type, const Value &value) {
    bool zeros = spec.align == '=';
    if (isOneOf(type, "sra")) {
      if (zeros)
        spec.align = 0;
      LLMC_ASSIGN_OR_RETURN(std::string text, type == 's' ? pythonStr(budget_, value) : pythonRepr(budget_, value));
      if (spec.align == 0)
        spec.align = '>';
      return formatText(budget_, spec, text);
    }
    if (!isOneOf(type, "diuxXoeEfFgGc"))
      return Status::error(std::string("unsupported format character '") + type + "'");
    if (type == 'c' && value.isString()) {
      spec.align = spec.align == '<' ? '<' : '>';
      return formatText(budget_, spec, value.text());
    }
    if (!value.isNumber())
      return Status::error(std::string("%") + type + " format: a number is required, not " + typeName(value));
    if (zeros)
      spec.fill = '0';
    if (isOneOf(type, "eEfFgG"))
      return formatReal(budget_, spec, value.asDouble(), type);
    LLMC_ASSIGN_OR_RETURN(Value whole, toInteger(value));
    if (type == 'c') {
      Int code = whole.asInt();
      if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return Status::error("%c of " + toString(code) + " is no character");
      std::string c;
      appendCodePoint(c, static_cast<char32_t>(whole.asInt()));
      return c;
    }
    return formatInteger(budget_, spec, whole.asInt(), type);
  }

  Budget &budget_;
  const std::string &format_;
  const Value &values_;
  size_t i_ = 0;
  size_t used_ = 0;
};

StatusOr<Spec> parseSpec(const std::string &text) {
  Spec spec;
  size_t i = 0;
  if (size_t afterFill = 0; !text.empty()) {
    char32_t fill = nextCodePoint(text, afterFill);
    if (afterFill < text.size() && isOneOf(text[afterFill], "<>=^")) {
      spec.fill = fill;
      spec.align = text[afterFill];
      i = afterFill + 1;
    } else if (isOneOf(text[0], "<>=^")) {
      spec.align = text[0];
      i = 1;
    }
  }
  if (i < text.size() && isOneOf(text[i], "+- "))
    spec.sign = text[i++];
  if (i < text.size() && text[i] == '#')
    spec.alternate = true, ++i;
  if (i < text.size() && text[i] == '0' && spec.align == 0) {
    spec.fill = '0';
    spec.align = '=';
  }
  spec.width = readNumber(text, i);
  if (i < text.size() && text[i] == ',')
    spec.grouped = true, ++i;
  if (i < text.size() && text[i] == '.') {
    ++i;
    spec.precision = static_cast<int>(readNumber(text, i));
  }
  if (i < text.size())
    spec.type = text[i++];
  if (i != text.size())
    return Status::error("invalid format specifier '" + text + "'");
  return spec;
}

StatusOr<std::string> formatValue(Budget &budget, const Value &value, const std::string &specText) {
  if (specText.empty())
    return pythonStr(budget, value);
  LLMC_ASSIGN_OR_RETURN(Spec spec, parseSpec(specText));
  std::string type = spec.type ? std::string(1, spec.type) : "";
  if (value.isString() && isOneOf(spec.type ? spec.type : 's', "s"))
    return formatText(budget, spec, value.text());
  if (value.isInteger() && isOneOf(spec.type ? spec.type : 'd', "dxXobn"))
    return formatInteger(budget, spec, value.asInt(), spec.type);
  if (value.isNumber() && isOneOf(spec.type ? spec.type : 'g', "eEfFgG%"))
    return formatReal(budget, spec, value.asDouble(), spec.type);
  return Status::error("format code '" + type + "' does not fit an object of type '" + typeName(value) + "'");
}

class BraceFormatter {
public:
  BraceFormatter(Budget &budget, const Arguments &arguments) : budget_(budget), arguments_(arguments) {}

  StatusOr<std::string> run(const std::string &format, int depth) {
    std::string out;
    for (size_t i = 0; i < format.size(); ++i) {
      char c = format[i];
      if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
        out += c;
        ++i;
      } else if (c == '}') {
        return Status::error("single '}' in a format string");
      } else if (c == '{') {
        LLMC_ASSIGN_OR_RETURN(size_t end, closing(format, i));
        LLMC_ASSIGN_OR_RETURN(std::string piece, field(format.substr(i + 1, end - i - 1), depth));
        out += piece;
        LLMC_RETURN_IF_ERROR(budget_.spendBytes(out.size()));
        i = end;
      } else {
        out += c;
      }
    }
    return out;
  }

private:
  static StatusOr<size_t> closing(const std::string &format, size_t open) {
    int level = 0;
    for (size_t i = open; i < format.size(); ++i) {
      level += format[i] == '{' ? 1 : format[i] == '}' ? -1 : 0;
      if (level == 0)
        return i;
    }
    return Status::error("expected '}' before the end of the format string");
  }

  StatusOr<std::string> field(const std::string &text, int depth) {
    LLMC_RETURN_IF_ERROR(budget_.spend(4));
    size_t end = text.find_first_of("!:");
    LLMC_ASSIGN_OR_RETURN(Value value, lookUp(text.substr(0, end)));
    std::string spec;
    bool useRepr = false;
    if (end != std::string::npos && text[end] == '!') {
      char conversion = end + 1 < text.size() ? text[end + 1] : 0;
      if (!isOneOf(conversion, "rsa") || (end + 2 < text.size() && text[end + 2] != ':'))
        return Status::error("unknown conversion in the format field '" + text + "'");
      useRepr = conversion != 's';
      end += 2;
    }
    if (end < text.size())
      spec = text.substr(end + 1);
    if (spec.find('{') != std::string::npos) {
      if (depth > 0)
        return Status::error("format fields nest deeper than 2");
      LLMC_ASSIGN_OR_RETURN(spec, run(spec, depth + 1));
    }
    if (!useRepr)
      return formatValue(budget_, value, spec);
    LLMC_ASSIGN_OR_RETURN(std::string shown, pythonRepr(budget_, value));
    return formatValue(budget_, Value::string(shown), spec);
  }

  // name, number or nothing, then any of .attribute and [key].
  ValueOr lookUp(const std::string &text) {
    size_t end = std::min(text.find_first_of(".["), text.size());
    LLMC_ASSIGN_OR_RETURN(Value value, argument(text.substr(0, end)));
    while (end < text.size()) {
      LLMC_RETURN_IF_ERROR(budget_.spend(4));
      bool isKey = text[end] == '[';
      size_t next = isKey ? text.find(']', end) : std::min(text.find_first_of(".[", end + 1), text.size());
      if (next == std::string::npos)
        return Status::error("missing ']' in the format field '" + text + "'");
      std::string name = text.substr(end + 1, next - end - 1);
      bool isIndex = isKey && !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
      size_t position = 0;
      Value key = isIndex ? Value::integer(readNumber(name, position)) : Value::string(name);
      LLMC_ASSIGN_OR_RETURN(value, isKey ? getItem(budget_, value, key) : getAttribute(budget_, value, name));
      if (value.isUndefined())
        return Status::error(value.shared() ? value.text() : "undefined");
      end = isKey ? next + 1 : next;
      if (end < text.size() && text[end] != '.' && text[end] != '[')
        return Status::error("only '.' or '[' may follow ']' in the format field '" + text + "'");
    }
    return value;
  }

  ValueOr argument(const std::string &name) {
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      size_t i = 0;
      size_t index = name.empty() ? automatic_++ : static_cast<size_t>(readNumber(name, i));
      if (index < arguments_.positional.size())
        return arguments_.positional[index];
      return Status::error("replacement index " + std::to_string(index) + " is out of range");
    }
    for (const auto &[key, value] : arguments_.keyword)
      if (key == name)
        return value;
    return Status::error("the format string names '" + name + "', which is not given");
  }

  Budget &budget_;
  const Arguments &arguments_;
  size_t automatic_ = 0;
};

} // namespace

StatusOr<std::string> percentFormat(Budget &budget, const std::string &format, const Value &values) {
  return PercentFormatter(budget, format, values).run();
}

StatusOr<std::string> braceFormat(Budget &budget, const std::string &format, const Arguments &arguments) {
  return BraceFormatter(budget, arguments).run(format, 0);
}

} // namespace llmc::jinja
