// Filters over lists, dicts and iterators.
#include "runtime/template/FilterTables.h"
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <algorithm>

namespace llmc::jinja {
namespace {

// attribute="a.b.0": a path through keys, attributes and indices. None stands for the value itself.
StatusOr<std::vector<Value>> attributePath(const std::optional<Value> &attribute) {
  std::vector<Value> path;
  if (!attribute || attribute->is(Kind::None))
    return path;
  if (!attribute->isString()) {
    path.push_back(*attribute);
    return path;
  }
  std::string_view rest = attribute->text();
  for (;;) {
    size_t dot = rest.find('.');
    std::string part(rest.substr(0, dot));
    bool isIndex = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    path.push_back(isIndex ? Value::integer(std::stoi(part)) : Value::string(part));
    if (dot == std::string_view::npos)
      return path;
    rest.remove_prefix(dot + 1);
  }
}

ValueOr follow(Runtime &runtime, Value value, const std::vector<Value> &path, const std::optional<Value> &fallback) {
  for (const Value &part : path) {
    LLMC_RETURN_IF_ERROR(runtime.budget.spend(2));
    LLMC_ASSIGN_OR_RETURN(value, getItem(runtime.budget, value, part));
    if (value.isUndefined() && fallback && !fallback->is(Kind::None))
      value = *fallback;
  }
  return value;
}

Value ignoreCase(const Value &value) { return value.isString() ? Value::string(toLower(value.text())) : value; }

bool flag(const std::optional<Value> &v) { return v && isTrue(*v); }

// Pairs of sort key and value.
using Keyed = std::vector<std::pair<Value, Value>>;
StatusOr<Keyed> keyed(Runtime &runtime, const Value &value, const std::optional<Value> &attribute, bool caseSensitive,
                      const std::optional<Value> &fallback = std::nullopt) {
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> path, attributePath(attribute));
  Keyed out;
  out.reserve(items.size());
  for (Value &item : items) {
    LLMC_ASSIGN_OR_RETURN(Value key, follow(runtime, item, path, fallback));
    if (key.isString()) {
      LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(key.text().size()));
    }
    out.emplace_back(caseSensitive ? key : ignoreCase(key), std::move(item));
  }
  return out;
}

ValueOr values(Keyed items) {
  std::vector<Value> out;
  out.reserve(items.size());
  for (auto &[key, value] : items)
    out.push_back(std::move(value));
  return makeList(std::move(out));
}

ValueOr sortFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  // Several attributes: sorting by the last first, stable, gives the order by all.
  std::vector<std::optional<Value>> attributes = {bound[2]};
  if (bound[2] && bound[2]->isString() && bound[2]->text().find(',') != std::string::npos) {
    LLMC_ASSIGN_OR_RETURN(Value parts,
                          callStringMethod(runtime.budget, *bound[2], "split", {{Value::string(",")}, {}}));
    attributes.assign(parts.items().rbegin(), parts.items().rend());
  }
  Value sorted = value;
  for (const std::optional<Value> &attribute : attributes) {
    LLMC_ASSIGN_OR_RETURN(Keyed items, keyed(runtime, sorted, attribute, flag(bound[1])));
    LLMC_RETURN_IF_ERROR(sortPairs(runtime.budget, items, flag(bound[0])));
    LLMC_ASSIGN_OR_RETURN(sorted, values(std::move(items)));
  }
  return sorted;
}

ValueOr uniqueFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("unique", arguments, {"case_sensitive", "attribute"}));
  LLMC_ASSIGN_OR_RETURN(Keyed items, keyed(runtime, value, bound[1], flag(bound[0])));
  Dict seen;
  std::vector<Value> out;
  for (auto &[key, item] : items) {
    if (seen.find(key))
      continue;
    LLMC_RETURN_IF_ERROR(seen.set(key, Value::none()));
    out.push_back(std::move(item));
  }
  return makeList(std::move(out), Kind::Iterator);
}

ValueOr extreme(Runtime &runtime, const Value &value, const Arguments &arguments, bool largest) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"}));
  LLMC_ASSIGN_OR_RETURN(Keyed items, keyed(runtime, value, bound[1], flag(bound[0])));
  if (items.empty())
    return Value::undefined("no aggregated item, sequence was empty");
  size_t best = 0;
  Status failure;
  for (size_t i = 1; i < items.size(); ++i) {
    bool better = largest ? isLess(runtime.budget, items[best].first, items[i].first, failure)
                          : isLess(runtime.budget, items[i].first, items[best].first, failure);
    LLMC_RETURN_IF_ERROR(failure);
    best = better ? i : best;
  }
  return items[best].second;
}
ValueOr minFilter(Runtime &r, const Value &v, const Arguments &a) { return extreme(r, v, a, /*largest=*/false); }
ValueOr maxFilter(Runtime &r, const Value &v, const Arguments &a) { return extreme(r, v, a, /*largest=*/true); }

ValueOr groupByFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1));
  LLMC_ASSIGN_OR_RETURN(Keyed items, keyed(runtime, value, bound[0], flag(bound[2]), bound[1]));
  LLMC_RETURN_IF_ERROR(sortPairs(runtime.budget, items, /*descending=*/false));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> path, attributePath(bound[0]));
  std::vector<Value> groups;
  for (size_t i = 0; i < items.size();) {
    std::vector<Value> members;
    size_t first = i;
    Status failure;
    for (; i < items.size() && isEqual(runtime.budget, items[first].first, items[i].first, failure); ++i)
      members.push_back(items[i].second);
    LLMC_RETURN_IF_ERROR(failure);
    if (i == first) // NaN is not even equal to itself.
      members.push_back(items[i++].second);
    LLMC_ASSIGN_OR_RETURN(Value grouper, follow(runtime, members[0], path, bound[1]));
    LLMC_ASSIGN_OR_RETURN(Value list, makeList(std::move(members)));
    Value group = makePair(grouper, list);
    group.as<List>().isGroup = true;
    groups.push_back(std::move(group));
  }
  return makeList(std::move(groups));
}

ValueOr dictSortFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("dictsort", arguments, {"case_sensitive", "by", "reverse"}));
  if (!value.is(Kind::Dict))
    return value.isUndefined() ? undefinedError(value)
                               : Status::error("dictsort takes a mapping, not " + typeName(value));
  bool byValue = bound[1] && bound[1]->isString() && bound[1]->text() == "value";
  if (bound[1] && !byValue && !(bound[1]->isString() && bound[1]->text() == "key"))
    return Status::error("dictsort sorts by \"key\" or \"value\"");
  Keyed items;
  LLMC_RETURN_IF_ERROR(runtime.budget.spendItems(value.dict().entries.size()));
  for (const auto &[key, item] : value.dict().entries) {
    const Value &by = byValue ? item : key;
    items.emplace_back(flag(bound[0]) ? by : ignoreCase(by), makePair(key, item));
  }
  LLMC_RETURN_IF_ERROR(sortPairs(runtime.budget, items, flag(bound[2])));
  return values(std::move(items));
}

ValueOr itemsFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("items", arguments, {}));
  std::vector<Value> pairs;
  if (value.isUndefined())
    return makeList(std::move(pairs), Kind::Iterator);
  if (!value.is(Kind::Dict))
    return Status::error("can only get item pairs from a mapping, not from " + typeName(value));
  LLMC_RETURN_IF_ERROR(runtime.budget.spendItems(value.dict().entries.size()));
  for (const auto &[key, item] : value.dict().entries)
    pairs.push_back(makePair(key, item));
  return makeList(std::move(pairs), Kind::Iterator);
}

ValueOr listFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("list", arguments, {}));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  return makeList(std::move(items));
}

ValueOr joinFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("join", arguments, {"d", "attribute"}));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> path, attributePath(bound[1]));
  std::string separator;
  if (bound[0]) {
    LLMC_ASSIGN_OR_RETURN(separator, pythonStr(runtime.budget, *bound[0]));
  }
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Value item, follow(runtime, items[i], path, std::nullopt));
    LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(runtime.budget, item));
    if (i > 0)
      out += separator;
    out += text;
    if (out.size() > runtime.budget.limits().outputBytes)
      break;
  }
  LLMC_RETURN_IF_ERROR(runtime.budget.spendBytes(out.size()));
  return Value::string(std::move(out));
}

ValueOr firstFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("first", arguments, {}));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  return items.empty() ? Value::undefined("no first item, sequence was empty") : items.front();
}
ValueOr lastFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("last", arguments, {}));
  if (value.is(Kind::Iterator))
    return Status::error("'generator' object is not reversible");
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  return items.empty() ? Value::undefined("no last item, sequence was empty") : items.back();
}

ValueOr reverseFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments("reverse", arguments, {}));
  if (value.isString())
    return getSlice(runtime.budget, value, {std::nullopt, std::nullopt, Value::integer(-1)});
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  std::reverse(items.begin(), items.end());
  return makeList(std::move(items), Kind::Iterator);
}

ValueOr sumFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("sum", arguments, {"attribute", "start"}));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> path, attributePath(bound[0]));
  Value total = bound[1].value_or(Value::integer(0));
  if (total.isString())
    return Status::error("sum() cannot sum strings; use join");
  for (const Value &item : items) {
    LLMC_ASSIGN_OR_RETURN(Value part, follow(runtime, item, path, std::nullopt));
    LLMC_ASSIGN_OR_RETURN(total, arithmetic(runtime.budget, BinaryOp::Add, total, part));
  }
  return total;
}

ValueOr mapFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  std::vector<Value> out;
  out.reserve(items.size());
  if (arguments.positional.empty()) {
    LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("map", arguments, {"attribute", "default"}, 1));
    LLMC_ASSIGN_OR_RETURN(std::vector<Value> path, attributePath(bound[0]));
    for (const Value &item : items) {
      LLMC_ASSIGN_OR_RETURN(Value mapped, follow(runtime, item, path, bound[1]));
      out.push_back(std::move(mapped));
    }
    return makeList(std::move(out), Kind::Iterator);
  }
  Arguments rest = arguments;
  Value name = rest.positional[0];
  if (!name.isString())
    return Status::error("map takes the name of a filter, not " + typeName(name));
  rest.positional.erase(rest.positional.begin());
  for (const Value &item : items) {
    LLMC_ASSIGN_OR_RETURN(Value mapped, applyFilter(runtime, name.text(), item, rest));
    out.push_back(std::move(mapped));
  }
  return makeList(std::move(out), Kind::Iterator);
}

enum class Keep { Matching, Failing };
ValueOr selectItems(Runtime &runtime, const Value &value, const Arguments &arguments, Keep keep, bool byAttribute) {
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  Arguments rest = arguments;
  std::vector<Value> &given = rest.positional;
  std::vector<Value> path;
  if (byAttribute) {
    if (given.empty())
      return Status::error("missing parameter for attribute name");
    LLMC_ASSIGN_OR_RETURN(path, attributePath(given[0]));
    given.erase(given.begin());
  }
  std::optional<std::string> test;
  if (!given.empty()) {
    if (!given[0].isString())
      return Status::error("expected the name of a test, not " + typeName(given[0]));
    test = given[0].text();
    given.erase(given.begin());
  }
  std::vector<Value> out;
  for (const Value &item : items) {
    LLMC_ASSIGN_OR_RETURN(Value looked, follow(runtime, item, path, std::nullopt));
    bool matches = isTrue(looked);
    if (test) {
      LLMC_ASSIGN_OR_RETURN(matches, applyPredicate(runtime, *test, looked, rest));
    }
    if (matches == (keep == Keep::Matching))
      out.push_back(item);
  }
  return makeList(std::move(out), Kind::Iterator);
}
ValueOr selectFilter(Runtime &r, const Value &v, const Arguments &a) {
  return selectItems(r, v, a, Keep::Matching, /*byAttribute=*/false);
}
ValueOr rejectFilter(Runtime &r, const Value &v, const Arguments &a) {
  return selectItems(r, v, a, Keep::Failing, /*byAttribute=*/false);
}
ValueOr selectAttrFilter(Runtime &r, const Value &v, const Arguments &a) {
  return selectItems(r, v, a, Keep::Matching, /*byAttribute=*/true);
}
ValueOr rejectAttrFilter(Runtime &r, const Value &v, const Arguments &a) {
  return selectItems(r, v, a, Keep::Failing, /*byAttribute=*/true);
}

StatusOr<size_t> chunkCount(const std::string &filter, const std::optional<Value> &given) {
  LLMC_ASSIGN_OR_RETURN(int64_t n, toIndex(*given, filter + "'s count"));
  if (n < 1)
    return Status::error(filter + "'s count is " + std::to_string(n) + ", expected 1 or more");
  return static_cast<size_t>(n);
}

ValueOr batchFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("batch", arguments, {"linecount", "fill_with"}, 1));
  LLMC_ASSIGN_OR_RETURN(size_t count, chunkCount("batch", bound[0]));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  std::vector<Value> out;
  for (size_t i = 0; i < items.size(); i += std::min(count, items.size() - i)) {
    std::vector<Value> row(items.begin() + static_cast<ptrdiff_t>(i),
                           items.begin() + static_cast<ptrdiff_t>(i + std::min(count, items.size() - i)));
    if (bound[1] && !bound[1]->is(Kind::None) && row.size() < count) {
      LLMC_RETURN_IF_ERROR(runtime.budget.spendItems(count));
      row.resize(count, *bound[1]);
    }
    LLMC_ASSIGN_OR_RETURN(Value list, makeList(std::move(row)));
    out.push_back(std::move(list));
  }
  return makeList(std::move(out), Kind::Iterator);
}

ValueOr sliceFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("slice", arguments, {"slices", "fill_with"}, 1));
  LLMC_ASSIGN_OR_RETURN(size_t count, chunkCount("slice", bound[0]));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(runtime.budget, value));
  LLMC_RETURN_IF_ERROR(runtime.budget.spendItems(count));
  size_t each = items.size() / count, longer = items.size() % count, at = 0;
  std::vector<Value> out;
  for (size_t i = 0; i < count; ++i) {
    size_t n = each + (i < longer ? 1 : 0);
    std::vector<Value> row(items.begin() + static_cast<ptrdiff_t>(at), items.begin() + static_cast<ptrdiff_t>(at + n));
    at += n;
    if (bound[1] && !bound[1]->is(Kind::None) && i >= longer)
      row.push_back(*bound[1]);
    LLMC_ASSIGN_OR_RETURN(Value list, makeList(std::move(row)));
    out.push_back(std::move(list));
  }
  return makeList(std::move(out), Kind::Iterator);
}

ValueOr randomFilter(Runtime &runtime, const Value &value, const Arguments &arguments) {
  // The same prompt must come out of the same request: the first item stands for a random one.
  return firstFilter(runtime, value, arguments);
}

} // namespace

std::span<const NamedFilter> sequenceFilters() {
  static const NamedFilter table[] = {
      {"batch", batchFilter},
      {"dictsort", dictSortFilter},
      {"first", firstFilter},
      {"groupby", groupByFilter},
      {"items", itemsFilter},
      {"join", joinFilter},
      {"last", lastFilter},
      {"list", listFilter},
      {"map", mapFilter},
      {"max", maxFilter},
      {"min", minFilter},
      {"random", randomFilter},
      {"reject", rejectFilter},
      {"rejectattr", rejectAttrFilter},
      {"reverse", reverseFilter},
      {"select", selectFilter},
      {"selectattr", selectAttrFilter},
      {"slice", sliceFilter},
      {"sort", sortFilter},
      {"sum", sumFilter},
      {"unique", uniqueFilter},
  };
  return table;
}

} // namespace llmc::jinja
