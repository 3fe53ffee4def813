// How one value is found: fixed by the family, stated under a key, or computed, and checked against its range.
#include "lib/importer/ValueReader.h"
#include <cmath>
#include <limits>

namespace llmc {
namespace {

using Kind = ValueDefinition::Kind;

std::string joined(const std::vector<std::string> &words, const char *separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

template <typename Map> std::string joinedKeys(const Map &map) {
  std::vector<std::string> keys;
  for (const auto &entry : map)
    keys.push_back(entry.first);
  return joined(keys, ", ");
}

} // namespace

ValueReader::ValueReader(const FormatRules &rules, const ConfigSource &source, std::vector<Fact> &facts)
    : rules_(rules), source_(source), facts_(facts) {
  for (const auto &[key, prefixes] : rules.nested)
    if (const Json *object = source.get(key); object && object->is_object())
      nested_ = key;
}

Stated ValueReader::stated(const std::string &key) const {
  Stated found;
  for (const std::string &full : {nested_.empty() ? key : nested_ + "/" + key, key}) {
    const Json *value = source_.get(full);
    if (!value)
      continue;
    found.pointer = source_.pointer(full);
    found.isNull = value->is_null();
    found.json = found.isNull ? nullptr : value;
    return found;
  }
  return found;
}

Stated ValueReader::firstStated(const std::vector<std::string> &keys) const {
  Stated result;
  for (const std::string &key : keys) {
    Stated found = stated(key);
    if (found.json)
      return found;
    if (found.isNull)
      result = found;
  }
  return result;
}

bool ValueReader::isStated(const std::string &name) const {
  auto it = rules_.values.find(name);
  return it != rules_.values.end() &&
         (firstStated(it->second.keys).json != nullptr || !it->second.unlessTensor.empty());
}

void ValueReader::record(const std::string &name, const std::string &value, const std::string &origin) {
  facts_.push_back({name, value, origin});
}

std::string ValueReader::label(const std::string &name) const {
  auto it = rules_.values.find(name);
  return it != rules_.values.end() && !it->second.keys.empty() ? it->second.keys.front() : name;
}

StatusOr<Scalar> ValueReader::scalar(const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(const Value *value, read(name));
  return *value;
}

StatusOr<double> ValueReader::number(const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(const Value *value, read(name));
  if (value->kind != Scalar::Kind::Number)
    return Status::error(label(name) + " is " + value->print() + ", expected a number");
  return value->number;
}

StatusOr<int64_t> ValueReader::integer(const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(double value, number(name));
  // Ranges of whole numbers are checked in read(); free values may be anything.
  if (value != std::floor(value) || std::fabs(value) > 9e15)
    return Status::error(label(name) + " is " + printNumber(value) + ", expected a whole number");
  return static_cast<int64_t>(value);
}

StatusOr<bool> ValueReader::flag(const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(const Value *value, read(name));
  return value->isTrue();
}

StatusOr<std::string> ValueReader::word(const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(const Value *value, read(name));
  return value->word;
}

StatusOr<Scalar> ValueReader::evaluateAny(const std::string &expression) {
  bool known = true;
  StatusOr<Scalar> value = evaluateScalar(expression, [&](const std::string &name) {
    StatusOr<Scalar> operand = scalar(name);
    known &= operand.ok();
    return operand;
  });
  return value.ok() || !known ? value : value.status().inside("'" + expression + "'");
}

StatusOr<double> ValueReader::evaluate(const std::string &expression) {
  LLMC_ASSIGN_OR_RETURN(Scalar value, evaluateAny(expression));
  if (value.kind != Scalar::Kind::Number)
    return Status::error("'" + expression + "' is " + value.print() + ", expected a number");
  return value.number;
}

StatusOr<const ValueReader::Value *> ValueReader::read(const std::string &name) {
  if (auto it = values_.find(name); it != values_.end())
    return &it->second;
  if (!reading_.insert(name).second)
    return Status::error("the description computes '" + name + "' from itself");
  const ValueDefinition *known = findValueDefinition(name);
  ValueDefinition definition = known ? *known : ValueDefinition{name, Kind::Any, 0, 0, {}, "used in expressions"};
  auto rule = rules_.values.find(name);
  ValueRule none;
  none.value = definition.fallback;
  if (rule == rules_.values.end() && !definition.fallback)
    return Status::error("the description has no value '" + name + "'");
  std::string origin;
  LLMC_ASSIGN_OR_RETURN(Value value, readRule(definition, rule == rules_.values.end() ? none : rule->second, origin));
  reading_.erase(name);
  // Neutral values that no key states are no facts about the model.
  bool isWord = definition.kind == Kind::Word, isFlag = definition.kind == Kind::Flag;
  bool neutral = !value.isTrue();
  if (rule != rules_.values.end() && !(neutral && (isWord || rule->second.keys.empty()))) {
    std::string printed = isWord || value.kind == Scalar::Kind::Word ? value.word
                          : isFlag                                   ? (value.number != 0.0 ? "true" : "false")
                                                                     : value.print();
    record(name, printed, origin);
  }
  return &(values_[name] = value);
}

StatusOr<ValueReader::Value> ValueReader::readRule(const ValueDefinition &definition, const ValueRule &rule,
                                                   std::string &origin) {
  if (rule.value) {
    origin = "fixed by the family";
    return readLiteral(definition, rule, *rule.value, origin);
  }
  if (!rule.enabledBy.empty()) {
    LLMC_ASSIGN_OR_RETURN(bool enabled, flag(rule.enabledBy));
    if (!enabled) {
      origin = "switched off by " + label(rule.enabledBy);
      return Value{};
    }
  }
  Stated first;
  Value value;
  bool isAlias = false; // under another than the usual key
  for (const std::string &key : rule.keys) {
    Stated found = stated(key);
    first.isNull |= found.isNull;
    if (!found.json)
      continue;
    LLMC_ASSIGN_OR_RETURN(Value other, readStated(definition, rule, found));
    if (first.json && !(other == value))
      return Status::error(first.pointer + " is " + brief(*first.json) + ", but " + found.pointer + " is " +
                           brief(*found.json) + "; both state the same fact");
    if (!first.json) {
      first = found, value = other;
      isAlias = key != rule.keys.front();
    }
  }
  if (first.json) {
    origin = (isAlias ? "aliased: stated as " : "stated as ") + first.pointer;
    return value;
  }
  if (first.isNull && rule.onNull) {
    origin = "stated as null";
    return readLiteral(definition, rule, *rule.onNull, origin);
  }
  if (!rule.lengthOf.empty())
    if (const Json *list = source_.get(rule.lengthOf); list && list->is_array()) {
      origin = "counted: entries of " + rule.lengthOf;
      return checked(definition, Scalar::of(static_cast<double>(list->size())));
    }
  if (!rule.unlessTensor.empty()) {
    bool stored = source_.hasTensor(rule.unlessTensor).value_or(false);
    origin = stored ? "'" + rule.unlessTensor + "' is stored" : "no '" + rule.unlessTensor + "' is stored";
    return Scalar::of(stored ? 0.0 : 1.0);
  }
  if (rule.fallback) {
    origin = "class default";
    return readLiteral(definition, rule, *rule.fallback, origin);
  }
  std::vector<std::string> pointers;
  for (const std::string &key : rule.keys)
    pointers.push_back("'" + key + "'");
  return Status::error(source_.file() + " has no " + joined(pointers, " or ") + " (" + definition.meaning + ")");
}

StatusOr<ValueReader::Value> ValueReader::readStated(const ValueDefinition &definition, const ValueRule &rule,
                                                     const Stated &found) {
  Value value;
  switch (definition.kind) {
  case Kind::Integer: {
    LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(*found.json, found.pointer, definition.min, definition.max));
    value.number = static_cast<double>(number);
    return value;
  }
  case Kind::Flag: {
    LLMC_ASSIGN_OR_RETURN(bool flag, asBool(*found.json, found.pointer));
    value.number = flag;
    return value;
  }
  case Kind::Word: {
    LLMC_ASSIGN_OR_RETURN(std::string word, asString(*found.json, found.pointer));
    auto it = rule.names.find(word);
    if (!rule.names.empty() && it == rule.names.end())
      return Status::error(found.pointer + " '" + word + "' is unknown (known = " + joinedKeys(rule.names) + ")");
    return Scalar::of(rule.names.empty() ? word : it->second);
  }
  case Kind::Any:
    return readFree(rule, found);
  case Kind::Positive:
  case Kind::NotNegative:
  case Kind::Number:
    break;
  }
  if (definition.kind == Kind::Number && found.json->is_boolean()) {
    value.number = found.json->get<bool>();
    return value;
  }
  LLMC_ASSIGN_OR_RETURN(value.number, asNumber(*found.json, found.pointer));
  bool positive = definition.kind == Kind::Positive, any = definition.kind == Kind::Number;
  // Programs compute in float32, where 1e99 is infinite and 1e-99 is 0.
  bool finite = std::abs(value.number) <= std::numeric_limits<float>::max();
  bool zero = std::abs(value.number) < std::numeric_limits<float>::min();
  if (!finite || (!any && value.number < 0.0) || (positive && zero))
    return Status::error(found.pointer + " is " + brief(*found.json) + ", expected a finite number" +
                         (positive ? " above 0"
                          : any    ? ""
                                   : " of at least 0"));
  return value;
}

// A value that only expressions use: a number, a word or a list.
StatusOr<ValueReader::Value> ValueReader::readFree(const ValueRule &rule, const Stated &found) {
  LLMC_ASSIGN_OR_RETURN(Value value, Scalar::ofJson(*found.json, found.pointer));
  if (value.kind == Scalar::Kind::Number && !(std::abs(value.number) <= std::numeric_limits<float>::max()))
    return Status::error(found.pointer + " is " + brief(*found.json) + ", expected a finite number");
  if (value.kind != Scalar::Kind::Word || rule.names.empty())
    return value;
  auto it = rule.names.find(value.word);
  if (it == rule.names.end())
    return Status::error(found.pointer + " '" + value.word + "' is unknown (known = " + joinedKeys(rule.names) + ")");
  return Scalar::of(it->second);
}

StatusOr<ValueReader::Value> ValueReader::readLiteral(const ValueDefinition &definition, const ValueRule &rule,
                                                      const Json &literal, std::string &origin) {
  Value value;
  if (definition.kind == Kind::Word) {
    LLMC_ASSIGN_OR_RETURN(std::string word, asString(literal, definition.name));
    auto it = rule.names.find(word);
    return Scalar::of(it != rule.names.end() ? it->second : word);
  }
  if (definition.kind == Kind::Any && !literal.is_string())
    return Scalar::ofJson(literal, definition.name);
  if (definition.kind == Kind::Any) {
    origin = "computed: " + literal.get<std::string>();
    return evaluateAny(literal.get<std::string>());
  }
  if (!literal.is_string()) {
    if (literal.is_boolean())
      value.number = literal.get<bool>();
    else {
      LLMC_ASSIGN_OR_RETURN(value.number, asNumber(literal, definition.name));
    }
    return checked(definition, value);
  }
  std::string expression = literal.get<std::string>();
  origin = "computed: " + expression;
  LLMC_ASSIGN_OR_RETURN(value.number, evaluate(expression));
  if (definition.kind == Kind::Integer && value.number != std::floor(value.number))
    return wrongQuotient(definition.name, expression);
  return checked(definition, value);
}

Status ValueReader::wrongQuotient(const std::string &name, const std::string &expression) {
  auto quotient = quotientOfNames(expression);
  if (!quotient)
    return Status::error(label(name) + ": " + expression + " is not a whole number");
  LLMC_ASSIGN_OR_RETURN(double above, number(quotient->first));
  LLMC_ASSIGN_OR_RETURN(double below, number(quotient->second));
  return Status::error(label(quotient->first) + " " + printNumber(above) + " is not a multiple of " +
                       label(quotient->second) + " " + printNumber(below) + ", and no " + label(name) + " is given");
}

// The range of a value that was computed; what is stated was checked with its key in the message.
StatusOr<ValueReader::Value> ValueReader::checked(const ValueDefinition &definition, const Value &value) {
  bool bad = false;
  if (definition.kind == Kind::Integer)
    bad = value.number < static_cast<double>(definition.min) || value.number > static_cast<double>(definition.max);
  if (definition.kind == Kind::Positive)
    bad = !(value.number > 0.0);
  if (definition.kind == Kind::NotNegative)
    bad = !(value.number >= 0.0);
  if (bad)
    return Status::error(label(definition.name) + " is computed as " + printNumber(value.number) +
                         ", out of its range (" + definition.meaning + ")");
  return value;
}

} // namespace llmc
