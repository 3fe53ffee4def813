// Methods of everything but strings, and binding arguments to parameters.
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include <algorithm>

namespace llmc::jinja {
namespace {

bool isOneOf(const std::string &name, std::initializer_list<const char *> names) {
  return std::any_of(names.begin(), names.end(), [&](const char *n) { return name == n; });
}

ValueOr dictView(Budget &budget, const Dict &dict, const std::string &view) {
  LLMC_RETURN_IF_ERROR(budget.spendItems(dict.entries.size()));
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto &[key, value] : dict.entries)
    items.push_back(view == "keys" ? key : view == "values" ? value : makePair(key, value));
  LLMC_ASSIGN_OR_RETURN(Value out, makeList(std::move(items), Kind::DictView));
  out.as<List>().view = view;
  return out;
}

ValueOr callDictMethod(Budget &budget, const Value &self, const std::string &name, const Arguments &arguments) {
  const Dict &dict = self.dict();
  if (name == "get") {
    LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(name, arguments, {"key", "default"}, 1));
    const Value *found = dict.find(*bound[0]);
    return found ? *found : bound[1].value_or(Value::none());
  }
  LLMC_ASSIGN_OR_RETURN(auto none, bindArguments(name, arguments, {}));
  if (name == "copy")
    return self;
  return dictView(budget, dict, name);
}

ValueOr callListMethod(Budget &budget, const Value &self, const std::string &name, const Arguments &arguments) {
  if (name == "copy")
    return self;
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments(name, arguments, {"value"}, 1));
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(budget, self));
  int64_t count = 0;
  Status failure;
  for (size_t i = 0; i < items.size(); ++i) {
    bool same = isEqual(budget, items[i], *bound[0], failure);
    LLMC_RETURN_IF_ERROR(failure);
    if (same && name == "index")
      return Value::integer(static_cast<Int>(i));
    count += same ? 1 : 0;
  }
  if (name == "index")
    return Status::error("the value is not in the " + typeName(self));
  return Value::integer(count);
}

ValueOr callLoopMethod(Budget &budget, Loop &loop, const std::string &name, const Arguments &arguments) {
  const std::vector<Value> &given = arguments.positional;
  if (name == "cycle") {
    if (given.empty())
      return Status::error("no items for cycling given");
    return given[loop.index % given.size()];
  }
  Status failure;
  bool changed = !loop.hasChanged || loop.lastChanged.size() != given.size();
  for (size_t i = 0; !changed && i < given.size(); ++i)
    changed = !isEqual(budget, loop.lastChanged[i], given[i], failure);
  LLMC_RETURN_IF_ERROR(failure);
  loop.hasChanged = true;
  loop.lastChanged = given;
  // What is remembered counts as inside, so that loops cannot chain without bound.
  for (const Value &value : given)
    loop.depth = std::max(loop.depth, value.depth() + 1);
  if (loop.depth > maxValueDepth)
    return Status::error("values nest deeper than " + std::to_string(maxValueDepth));
  return Value::boolean(changed);
}

ValueOr callCyclerMethod(Cycler &cycler, const std::string &name) {
  if (name == "reset") {
    cycler.position = 0;
    return Value::none();
  }
  Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

} // namespace

bool hasMethod(const Value &object, const std::string &name) {
  switch (object.kind()) {
  case Kind::String:
    return isStringMethod(name);
  case Kind::List:
    return isOneOf(name, {"count", "index", "copy"});
  case Kind::Tuple:
  case Kind::Range:
    return isOneOf(name, {"count", "index"});
  case Kind::Dict:
    return isOneOf(name, {"get", "items", "keys", "values", "copy"});
  case Kind::Loop:
    return isOneOf(name, {"cycle", "changed"});
  case Kind::Cycler:
    return isOneOf(name, {"next", "reset"});
  default:
    return false;
  }
}

bool isChangingMethod(const Value &object, const std::string &name) {
  if (object.is(Kind::List))
    return isOneOf(name, {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"});
  if (object.is(Kind::Dict))
    return isOneOf(name, {"clear", "pop", "popitem", "setdefault", "update"});
  return false;
}

StatusOr<std::optional<Value>> specialAttribute(Budget &budget, const Value &object, const std::string &name) {
  auto number = [](int64_t n) { return std::optional(Value::integer(n)); };
  if (object.is(Kind::Cycler) && name == "current")
    return std::optional(object.as<Cycler>().items[object.as<Cycler>().position]);
  if (object.is(Kind::Range) && isOneOf(name, {"start", "stop", "step"})) {
    const auto &range = object.as<Range>();
    return number(name == "start" ? range.start : name == "stop" ? range.stop : range.step);
  }
  if (!object.is(Kind::Loop))
    return std::optional<Value>();
  const auto &loop = object.as<Loop>();
  auto index = static_cast<int64_t>(loop.index), size = static_cast<int64_t>(loop.items.size());
  if (name == "index" || name == "index0")
    return number(index + (name == "index" ? 1 : 0));
  if (name == "revindex" || name == "revindex0")
    return number(size - index - (name == "revindex" ? 0 : 1));
  if (name == "length")
    return number(size);
  if (name == "depth" || name == "depth0")
    return number(loop.level + (name == "depth" ? 1 : 0));
  if (name == "first" || name == "last")
    return std::optional(Value::boolean(name == "first" ? index == 0 : index + 1 == size));
  if (name == "previtem")
    return std::optional(index > 0 ? loop.items[loop.index - 1] : Value::undefined("there is no previous item"));
  if (name == "nextitem")
    return std::optional(index + 1 < size ? loop.items[loop.index + 1] : Value::undefined("there is no next item"));
  return std::optional<Value>();
}

ValueOr callMethod(Budget &budget, const Method &method, const Arguments &arguments) {
  const Value &self = method.self;
  switch (self.kind()) {
  case Kind::String:
    return callStringMethod(budget, self, method.name, arguments);
  case Kind::Dict:
    return callDictMethod(budget, self, method.name, arguments);
  case Kind::Loop:
    return callLoopMethod(budget, self.as<Loop>(), method.name, arguments);
  case Kind::Cycler:
    return callCyclerMethod(self.as<Cycler>(), method.name);
  default:
    return callListMethod(budget, self, method.name, arguments);
  }
}

StatusOr<std::vector<std::optional<Value>>> bindArguments(const std::string &callee, const Arguments &arguments,
                                                          std::initializer_list<const char *> names, size_t required) {
  std::vector<std::optional<Value>> bound(names.size());
  if (arguments.positional.size() > names.size())
    return Status::error(callee + " takes at most " + std::to_string(names.size()) + " arguments, but " +
                         std::to_string(arguments.positional.size()) + " are given");
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto &[key, value] : arguments.keyword) {
    auto place = std::find_if(names.begin(), names.end(), [&k = key](const char *n) { return k == n; });
    if (place == names.end())
      return Status::error(callee + " has no parameter '" + key + "'");
    std::optional<Value> &slot = bound[static_cast<size_t>(place - names.begin())];
    if (slot)
      return Status::error(callee + " is given '" + key + "' twice");
    slot = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!bound[i])
      return Status::error(callee + " needs the argument '" + names.begin()[i] + "'");
  return bound;
}

} // namespace llmc::jinja
