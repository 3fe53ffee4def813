// str() and repr() of every kind of value.
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <charconv>
#include <cmath>
#include <cstdio>

namespace llmc::jinja {
namespace {

void appendHex(std::string &out, const char *prefix, int width, uint32_t value) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%0*x", width, value);
  out += prefix;
  out += buffer;
}

Status appendRepr(Budget &budget, const Value &value, std::string &out, int depth);

Status appendItems(Budget &budget, const std::vector<Value> &items, std::string &out, int depth) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0)
      out += ", ";
    LLMC_RETURN_IF_ERROR(appendRepr(budget, items[i], out, depth));
  }
  return Status();
}

Status appendDict(Budget &budget, const Dict &dict, std::string &out, int depth) {
  out += '{';
  bool first = true;
  for (const auto &[key, value] : dict.entries) {
    if (!first)
      out += ", ";
    first = false;
    LLMC_RETURN_IF_ERROR(appendRepr(budget, key, out, depth));
    out += ": ";
    LLMC_RETURN_IF_ERROR(appendRepr(budget, value, out, depth));
  }
  out += '}';
  return Status();
}

Status appendSequence(Budget &budget, const Value &value, std::string &out, int depth) {
  const std::vector<Value> &items = value.items();
  if (value.is(Kind::DictView))
    out += "dict_" + value.as<List>().view + "(";
  bool isTuple = value.is(Kind::Tuple);
  out += isTuple ? '(' : '[';
  LLMC_RETURN_IF_ERROR(appendItems(budget, items, out, depth));
  if (isTuple && items.size() == 1)
    out += ',';
  out += isTuple ? ')' : ']';
  if (value.is(Kind::DictView))
    out += ')';
  return Status();
}

std::string rangeRepr(const Range &range) {
  std::string out = "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
  return out + (range.step == 1 ? ")" : ", " + std::to_string(range.step) + ")");
}

Status appendRepr(Budget &budget, const Value &value, std::string &out, int depth) {
  LLMC_RETURN_IF_ERROR(budget.spend(1));
  if (out.size() > budget.limits().outputBytes)
    return budget.spendBytes(out.size());
  // Only a namespace that holds itself gets here: other values are bounded when they are made.
  if (depth > maxValueDepth * 2)
    return Status::error("value nests deeper than " + std::to_string(maxValueDepth * 2));
  switch (value.kind()) {
  case Kind::String:
    LLMC_RETURN_IF_ERROR(budget.spendBytes(value.text().size()));
    out += value.isSafe() ? "Markup(" + quote(value.text()) + ")" : quote(value.text());
    return Status();
  case Kind::Undefined:
    out += "Undefined";
    return Status();
  case Kind::None:
    out += "None";
    return Status();
  case Kind::Bool:
    out += value.asBool() ? "True" : "False";
    return Status();
  case Kind::Int:
    out += toString(value.asInt());
    return Status();
  case Kind::Float:
    out += formatDouble(value.asDouble());
    return Status();
  case Kind::List:
  case Kind::Tuple:
  case Kind::DictView:
    return appendSequence(budget, value, out, depth + 1);
  case Kind::Dict:
    return appendDict(budget, value.dict(), out, depth + 1);
  case Kind::Range:
    out += rangeRepr(value.as<Range>());
    return Status();
  case Kind::Namespace:
    out += "<Namespace ";
    LLMC_RETURN_IF_ERROR(appendDict(budget, value.as<Namespace>().attributes, out, depth + 1));
    out += '>';
    return Status();
  case Kind::Loop:
    out += "<LoopContext " + std::to_string(value.as<Loop>().index + 1) + "/" +
           std::to_string(value.as<Loop>().items.size()) + ">";
    return Status();
  case Kind::Function:
    out += "<function " + value.as<Function>().name + ">";
    return Status();
  default:
    // Python would show an address here.
    out += "<" + typeName(value) + ">";
    return Status();
  }
}

} // namespace

std::string formatDouble(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string shortest(buffer, end);
  size_t e = shortest.find('e');
  int exponent = std::atoi(shortest.c_str() + e + 1);
  // Python writes an exponent below 1e-4 and from 1e16 on.
  if (exponent < -4 || exponent >= 16) {
    std::string sign = exponent < 0 ? "-" : "+";
    std::string digits = std::to_string(std::abs(exponent));
    return shortest.substr(0, e + 1) + sign + (digits.size() < 2 ? "0" + digits : digits);
  }
  end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

std::string quote(const std::string &text) {
  bool single = text.find('\'') != std::string::npos, dbl = text.find('"') != std::string::npos;
  char mark = single && !dbl ? '"' : '\'';
  std::string out(1, mark);
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text, i);
    if (c == '\\' || c == static_cast<char32_t>(mark)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (isPrintable(c)) {
      appendCodePoint(out, c);
    } else if (c < 0x100) {
      appendHex(out, "\\x", 2, c);
    } else if (c < 0x10000) {
      appendHex(out, "\\u", 4, c);
    } else {
      appendHex(out, "\\U", 8, c);
    }
  }
  return out + mark;
}

std::string escapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&#34;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  }
  return out;
}

StatusOr<std::string> escaped(Budget &budget, const Value &value) {
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(budget, value));
  return value.isSafe() ? text : escapeHtml(text);
}

StatusOr<std::string> pythonStr(Budget &budget, const Value &value) {
  if (value.isString()) {
    LLMC_RETURN_IF_ERROR(budget.spendBytes(value.text().size()));
    return value.text();
  }
  if (value.isUndefined())
    return std::string();
  return pythonRepr(budget, value);
}

StatusOr<std::string> pythonRepr(Budget &budget, const Value &value) {
  std::string out;
  LLMC_RETURN_IF_ERROR(appendRepr(budget, value, out, 0));
  LLMC_RETURN_IF_ERROR(budget.spendBytes(out.size()));
  return out;
}

} // namespace llmc::jinja
