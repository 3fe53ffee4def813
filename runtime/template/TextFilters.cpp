// Filters that make text from text.
#include "runtime/template/FilterTables.h"
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PlainText.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <cstdio>

namespace llmc::jinja {
namespace {

// The value as text; a safe string stays safe.
ValueOr soft(Runtime &runtime, const Value &value) {
  if (value.isString())
    return value;
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  return Value::string(std::move(text));
}

// The value, when it is text already.
ValueOr onlyString(const char *filter, const Value &value) {
  if (value.isString())
    return value;
  return value.isUndefined() ? undefinedError(value)
                             : Status::error(std::string(filter) + " takes a string, not " + typeName(value));
}

// Filters that are the string method of the same name.
ValueOr viaMethod(Runtime &runtime, const Value &value, const char *method, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(Value text, soft(runtime, value));
  return callStringMethod(runtime.budget, text, method, arguments);
}
ValueOr upperFilter(Runtime &r, const Value &v, const Arguments &a) { return viaMethod(r, v, "upper", a); }
ValueOr lowerFilter(Runtime &r, const Value &v, const Arguments &a) { return viaMethod(r, v, "lower", a); }
ValueOr capitalizeFilter(Runtime &r, const Value &v, const Arguments &a) { return viaMethod(r, v, "capitalize", a); }
ValueOr trimFilter(Runtime &r, const Value &v, const Arguments &a) { return viaMethod(r, v, "strip", a); }

// Not Jinja's: see PlainText.h.
ValueOr plainFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("plain", arguments, {}));
  LLMC_ASSIGN_OR_RETURN(Value text, soft(runtime, value));
  LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(text.text().size()));
  return Value::string(plainBegin + text.text() + plainEnd, text.isSafe());
}

ValueOr centerFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("center", arguments, {"width"}));
  return viaMethod(runtime, value, "center", {{bound[0].value_or(Value::integer(80))}, {}});
}

ValueOr replaceFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("replace", arguments, {"old", "new", "count"}, 2));
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  LLMC_ASSIGN_OR_RETURN(std::string from, pythonStr(runtime.budget, *bound[0]));
  LLMC_ASSIGN_OR_RETURN(std::string to, pythonStr(runtime.budget, *bound[1]));
  Arguments given{{Value::string(from), Value::string(to)}, {}};
  if (bound[2] && !bound[2]->is(Kind::None))
    given.positional.push_back(*bound[2]);
  return callStringMethod(runtime.budget, Value::string(text), "replace", given);
}

ValueOr titleFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("title", arguments, {}));
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  // A word starts after white space or one of -([{<, and an apostrophe does not start one.
  std::string out, word;
  auto flush = [&] {
    if (word.empty())
      return;
    size_t first = 0;
    nextCodePoint(word, first);
    out += toUpper(word.substr(0, first)) + toLower(word.substr(first));
    word.clear();
  };
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    char32_t c = nextCodePoint(text, i);
    bool divides = c == '-' || c == '(' || c == '[' || c == '{' || c == '<' || isSpace(c);
    if (!divides) {
      word.append(text, start, i - start);
      continue;
    }
    flush();
    out.append(text, start, i - start);
  }
  flush();
  return Value::string(std::move(out));
}

ValueOr indentFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("indent", arguments, {"width", "first", "blank"}));
  LLMC_ASSIGN_OR_RETURN(Value text, onlyString("indent", value));
  std::string indention(4, ' ');
  if (bound[0] && bound[0]->isString()) {
    indention = bound[0]->text();
  } else if (bound[0]) {
    LLMC_ASSIGN_OR_RETURN(int64_t width, toIndex(*bound[0], "width"));
    width = std::max<int64_t>(width, 0);
    LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(static_cast<uint64_t>(width)));
    indention.assign(static_cast<size_t>(width), ' ');
  }
  bool first = bound[1] && isTrue(*bound[1]), blank = bound[2] && isTrue(*bound[2]);
  LLMC_ASSIGN_OR_RETURN(Value lines,
                        callStringMethod(runtime.budget, Value::string(text.text() + "\n"), "splitlines", Arguments()));
  std::string out = first ? indention : "";
  for (size_t i = 0; i < lines.items().size(); ++i) {
    const std::string &line = lines.items()[i].text();
    if (i > 0) {
      out += '\n';
      if (blank || !line.empty())
        out += indention;
    }
    out += line;
    if (out.size() > runtime.budget.limits().outputBytes)
      break;
  }
  LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(out.size()));
  return Value::string(std::move(out), text.isSafe());
}

ValueOr wordCountFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
  Int words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = nextCodePoint(text, i);
    bool now = c == '_' || isAlpha(c) || isNumeric(c);
    words += now && !inside ? 1 : 0;
    inside = now;
  }
  return Value::integer(words);
}

ValueOr truncateFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("truncate", arguments, {"length", "killwords", "end", "leeway"}));
  LLMC_ASSIGN_OR_RETURN(Value text, onlyString("truncate", value));
  int64_t limit = 255, leeway = 5;
  if (bound[0]) {
    LLMC_ASSIGN_OR_RETURN(limit, toIndex(*bound[0], "length"));
  }
  if (bound[3] && !bound[3]->is(Kind::None)) {
    LLMC_ASSIGN_OR_RETURN(leeway, toIndex(*bound[3], "leeway"));
  }
  Value end = bound[2].value_or(Value::string("..."));
  if (!end.isString())
    return Status::error("truncate: end is of type " + typeName(end) + ", expected a string");
  auto endLength = static_cast<int64_t>(end.textObject().codePoints);
  if (limit < endLength || leeway < 0)
    return Status::error("truncate: length " + std::to_string(limit) + " is less than the " +
                         std::to_string(endLength) + " of its end");
  if (static_cast<int64_t>(text.textObject().codePoints) <= limit + leeway)
    return text;
  LLMC_ASSIGN_OR_RETURN(
      Value head, getSlice(runtime.budget, text, {std::nullopt, Value::integer(limit - endLength), std::nullopt}));
  std::string kept = head.text();
  if (!(bound[1] && isTrue(*bound[1])))
    kept = kept.substr(0, kept.rfind(' '));
  return Value::string(kept + end.text(), text.isSafe());
}

ValueOr formatFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  if (!arguments.positional.empty() && !arguments.keyword.empty())
    return Status::error("format cannot handle positional and keyword arguments at the same time");
  LLMC_ASSIGN_OR_RETURN(Value text, soft(runtime, value));
  if (arguments.keyword.empty()) {
    LLMC_ASSIGN_OR_RETURN(Value values, makeList(arguments.positional, Kind::Tuple));
    return arithmetic(runtime.budget, BinaryOp::Modulo, text, values);
  }
  auto named = std::make_shared<Dict>();
  for (const auto &[key, v] : arguments.keyword)
    named->setText(key, v);
  LLMC_ASSIGN_OR_RETURN(Value values, makeDict(std::move(named)));
  return arithmetic(runtime.budget, BinaryOp::Modulo, text, values);
}

std::string percentEncode(const std::string &text, bool forQuery) {
  std::string out;
  for (unsigned char c : text) {
    bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '.' || c == '-' ||
                 c == '~' || (c == '/' && !forQuery);
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "%%%02X", c);
    out += plain ? std::string(1, static_cast<char>(c)) : forQuery && c == ' ' ? "+" : buffer;
  }
  return out;
}

ValueOr urlEncodeFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("urlencode", arguments, {}));
  if (value.isString() || value.isNumber() || value.is(Kind::None)) {
    LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, value));
    return Value::string(percentEncode(text, /*forQuery=*/false));
  }
  std::vector<std::pair<Value, Value>> entries;
  if (value.is(Kind::Dict)) {
    LLMC_RETURN_IF_ERROR(runtime.budget.spendItems(value.dict().entries.size()));
    entries = value.dict().entries;
  } else {
    LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
    for (const Value &item : items) {
      LLMC_ASSIGN_OR_RETURN(std::vector<Value> pair, iterate(runtime.budget, item));
      if (pair.size() != 2)
        return Status::error("urlencode takes pairs, but an item has " + std::to_string(pair.size()) + " parts");
      entries.emplace_back(pair[0], pair[1]);
    }
  }
  std::string out;
  for (const auto &[key, item] : entries) {
    LLMC_ASSIGN_OR_RETURN(std::string k, pythonStr(runtime.budget, key));
    LLMC_ASSIGN_OR_RETURN(std::string v, pythonStr(runtime.budget, item));
    out += (out.empty() ? "" : "&") + percentEncode(k, true) + "=" + percentEncode(v, true);
    LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(k.size() + v.size()));
  }
  LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(out.size()));
  return Value::string(std::move(out));
}

} // namespace

std::span<const NamedFilter> textFilters() {
  static const NamedFilter table[] = {
      {"capitalize", capitalizeFilter}, {"center", centerFilter}, {"format", formatFilter},
      {"indent", indentFilter},         {"lower", lowerFilter},   {"plain", plainFilter},
      {"replace", replaceFilter},       {"title", titleFilter},   {"trim", trimFilter},
      {"truncate", truncateFilter},     {"upper", upperFilter},   {"urlencode", urlEncodeFilter},
      {"wordcount", wordCountFilter},
  };
  return table;
}

} // namespace llmc::jinja
