// The writer behind tojson.
#include "runtime/template/JsonText.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmc::jinja {
namespace {

class JsonWriter {
public:
  JsonWriter(Budget &budget, const JsonStyle &style) : budget_(budget), style_(style) {}
  std::string out;

  Status write(const Value &value, int level) {
    LLMC_RETURN_IF_ERROR(budget_.spend(1));
    if (out.size() > budget_.limits().outputBytes)
      return budget_.spendBytes(out.size());
    switch (value.kind()) {
    case Kind::None:
      out += "null";
      return Status();
    case Kind::Bool:
      out += value.asBool() ? "true" : "false";
      return Status();
    case Kind::Int:
      out += toString(value.asInt());
      return Status();
    case Kind::Float:
      out += number(value.asDouble());
      return Status();
    case Kind::String:
      LLMC_RETURN_IF_ERROR(budget_.spendBytes(value.text().size()));
      writeText(value.text());
      return Status();
    case Kind::List:
    case Kind::Tuple:
      return writeList(value.items(), level);
    case Kind::Dict:
      return writeDict(value.dict(), level);
    default:
      return Status::error("object of type " + typeName(value) + " is not JSON serializable");
    }
  }

private:
  static std::string number(double d) {
    if (std::isnan(d))
      return "NaN";
    if (std::isinf(d))
      return d < 0 ? "-Infinity" : "Infinity";
    return formatDouble(d);
  }

  void appendEscape(uint32_t unit) {
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", unit);
    out += buffer;
  }

  void writeText(const std::string &text) {
    out += '"';
    for (size_t i = 0; i < text.size();) {
      char32_t c = nextCodePoint(text, i);
      if (c == '"' || c == '\\')
        out += {'\\', static_cast<char>(c)};
      else if (c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f')
        out += {'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c == '\b' ? 'b' : 'f'};
      else if (c < 0x20 || (style_.ensureAscii && c > 0x7E && c < 0x10000 && c != 0x7F))
        appendEscape(c);
      else if (style_.ensureAscii && c >= 0x10000) {
        appendEscape(0xD800 + ((c - 0x10000) >> 10));
        appendEscape(0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        appendCodePoint(out, c);
      }
    }
    out += '"';
  }

  Status lineBreak(int level) {
    if (!style_.indent)
      return Status();
    LLMC_RETURN_IF_ERROR(budget_.spendBytes(style_.indent->size() * static_cast<size_t>(level)));
    out += '\n';
    for (int i = 0; i < level; ++i)
      out += *style_.indent;
    return Status();
  }

  Status writeList(const std::vector<Value> &items, int level) {
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0)
        out += style_.itemSeparator;
      LLMC_RETURN_IF_ERROR(lineBreak(level + 1));
      LLMC_RETURN_IF_ERROR(write(items[i], level + 1));
    }
    if (!items.empty()) {
      LLMC_RETURN_IF_ERROR(lineBreak(level));
    }
    out += ']';
    return Status();
  }

  StatusOr<std::string> keyText(const Value &key) {
    switch (key.kind()) {
    case Kind::String:
      return key.text();
    case Kind::None:
      return std::string("null");
    case Kind::Bool:
      return std::string(key.asBool() ? "true" : "false");
    case Kind::Int:
      return toString(key.asInt());
    case Kind::Float:
      return number(key.asDouble());
    default:
      return Status::error("keys must be str, int, float, bool or None, not " + typeName(key));
    }
  }

  Status writeDict(const Dict &dict, int level) {
    std::vector<std::pair<Value, Value>> entries;
    if (style_.sortKeys) {
      LLMC_RETURN_IF_ERROR(budget_.spendItems(dict.entries.size()));
      entries = dict.entries;
      LLMC_RETURN_IF_ERROR(sortPairs(budget_, entries, /*descending=*/false));
    }
    const auto &shown = style_.sortKeys ? entries : dict.entries;
    out += '{';
    bool first = true;
    for (const auto &[key, value] : shown) {
      if (!first)
        out += style_.itemSeparator;
      first = false;
      LLMC_RETURN_IF_ERROR(lineBreak(level + 1));
      LLMC_ASSIGN_OR_RETURN(std::string name, keyText(key));
      LLMC_RETURN_IF_ERROR(budget_.spendBytes(name.size()));
      writeText(name);
      out += style_.keySeparator;
      LLMC_RETURN_IF_ERROR(write(value, level + 1));
    }
    if (!shown.empty()) {
      LLMC_RETURN_IF_ERROR(lineBreak(level));
    }
    out += '}';
    return Status();
  }

  Budget &budget_;
  const JsonStyle &style_;
};

} // namespace

StatusOr<std::string> jsonText(Budget &budget, const Value &value, const JsonStyle &style) {
  JsonWriter writer(budget, style);
  LLMC_RETURN_IF_ERROR(writer.write(value, 0));
  LLMC_RETURN_IF_ERROR(budget.spendBytes(writer.out.size()));
  return std::move(writer.out);
}

} // namespace llmc::jinja
