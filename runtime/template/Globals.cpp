// The functions every template may call.
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Runtime.h"
#include <algorithm>

namespace llmc::jinja {
namespace {

// Jinja's sandbox stops ranges here.
constexpr int64_t maxRange = 100'000;

ValueOr rangeFunction(Runtime &, const Arguments &arguments) {
  const std::vector<Value> &given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.keyword.empty())
    return Status::error("range takes 1 to 3 arguments, but " + std::to_string(given.size()) + " are given");
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < given.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(numbers[given.size() == 1 ? 1 : i], toIndex(given[i], "an argument of range"));
  }
  auto range = std::make_shared<Range>();
  range->start = numbers[0];
  range->stop = numbers[1];
  range->step = numbers[2];
  if (range->step == 0)
    return Status::error("range's step must not be zero");
  if (range->size() > maxRange)
    return Status::error("range of " + std::to_string(range->size()) + " exceeds the limit " +
                         std::to_string(maxRange));
  return Value::object(Kind::Range, std::move(range));
}

Status fillDict(Runtime &runtime, const std::string &callee, const Arguments &arguments, Dict &out) {
  if (arguments.positional.size() > 1)
    return Status::error(callee + " takes at most 1 positional argument, but " +
                         std::to_string(arguments.positional.size()) + " are given");
  for (const Value &source : arguments.positional) {
    if (source.is(Kind::Dict)) {
      LLMC_RETURN_IF_ERROR(runtime.budget.spendItems(source.dict().entries.size()));
      out = source.dict();
      continue;
    }
    LLMC_ASSIGN_OR_RETURN(std::vector<Value> pairs, iterate(runtime.budget, source));
    for (const Value &pair : pairs) {
      LLMC_ASSIGN_OR_RETURN(std::vector<Value> parts, iterate(runtime.budget, pair));
      if (parts.size() != 2)
        return Status::error(callee + " takes pairs, but an item has " + std::to_string(parts.size()) + " parts");
      LLMC_RETURN_IF_ERROR(out.set(parts[0], parts[1]));
    }
  }
  for (const auto &[key, value] : arguments.keyword)
    out.setText(key, value);
  return Status();
}

ValueOr dictFunction(Runtime &runtime, const Arguments &arguments) {
  auto dict = std::make_shared<Dict>();
  LLMC_RETURN_IF_ERROR(fillDict(runtime, "dict", arguments, *dict));
  return makeDict(std::move(dict));
}

ValueOr namespaceFunction(Runtime &runtime, const Arguments &arguments) {
  auto space = std::make_shared<Namespace>();
  LLMC_RETURN_IF_ERROR(fillDict(runtime, "namespace", arguments, space->attributes));
  for (const auto &[key, value] : space->attributes.entries)
    if (key.isString() && key.text().starts_with("_"))
      return Status::error("a namespace cannot hold '" + key.text() + "': names with a leading underscore are refused");
  runtime.clearables.push_back(space);
  return Value::object(Kind::Namespace, std::move(space));
}

ValueOr raiseFunction(Runtime &runtime, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("raise_exception", arguments, {"message"}, 1));
  LLMC_ASSIGN_OR_RETURN(std::string message, pythonStr(runtime.budget, *bound[0]));
  runtime.raised = true;
  return Status::error(std::move(message));
}

ValueOr strftimeFunction(Runtime &runtime, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("strftime_now", arguments, {"format"}, 1));
  if (!bound[0]->isString())
    return Status::error("strftime_now takes a string, not " + typeName(*bound[0]));
  std::tm now{};
  if (runtime.now) {
    now = *runtime.now;
    timegm(&now); // Fills in the day of the week and of the year.
  } else {
    std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  // A trailing mark tells an empty result from one that does not fit.
  std::string format = bound[0]->text() + "|";
  char buffer[4096];
  size_t n = format.find('\0') == std::string::npos ? std::strftime(buffer, sizeof buffer, format.c_str(), &now) : 0;
  if (n == 0)
    return Status::error("strftime_now: the format gives more than 4096 bytes or holds a zero byte");
  return Value::string(std::string(buffer, n - 1));
}

ValueOr cyclerFunction(Runtime &, const Arguments &arguments) {
  if (arguments.positional.empty())
    return Status::error("at least one item has to be provided");
  LLMC_ASSIGN_OR_RETURN(Value items, makeList(arguments.positional));
  auto cycler = std::make_shared<Cycler>();
  cycler->items = arguments.positional;
  cycler->depth = items.depth();
  return Value::object(Kind::Cycler, std::move(cycler));
}

ValueOr joinerFunction(Runtime &runtime, const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("joiner", arguments, {"sep"}));
  auto joiner = std::make_shared<Joiner>();
  LLMC_ASSIGN_OR_RETURN(joiner->separator, pythonStr(runtime.budget, bound[0].value_or(Value::string(", "))));
  return Value::object(Kind::Joiner, std::move(joiner));
}

ValueOr lipsumFunction(Runtime &, const Arguments &) {
  return Status::error("lipsum is not supported: a prompt must be the same each time");
}

} // namespace

GlobalFunction findGlobal(const std::string &name) {
  static const std::unordered_map<std::string, GlobalFunction> table = {
      {"cycler", cyclerFunction},       {"dict", dictFunction},
      {"joiner", joinerFunction},       {"lipsum", lipsumFunction},
      {"namespace", namespaceFunction}, {"raise_exception", raiseFunction},
      {"range", rangeFunction},         {"strftime_now", strftimeFunction},
  };
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

} // namespace llmc::jinja
