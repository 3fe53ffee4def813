// Making values, and the keys of dicts.
#include "runtime/template/Value.h"
#include "runtime/template/PlainText.h"
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace llmc::jinja {
namespace {

Status tooDeep() { return Status::error("values nest deeper than " + std::to_string(maxValueDepth)); }

int depthOf(const std::vector<Value> &items) {
  int depth = 0;
  for (const Value &item : items)
    depth = std::max(depth, item.depth());
  return depth + 1;
}

constexpr size_t maxTupleKeyBytes = 1 << 16;

// One spelling for all keys that are equal; empty for what cannot be a key.
std::string encodeKey(const Value &key) {
  switch (key.kind()) {
  case Kind::String:
    return "s" + key.text();
  case Kind::None:
    return "N";
  case Kind::Bool:
  case Kind::Int:
    return "i" + toString(key.asInt());
  case Kind::Float: {
    double d = key.asDouble();
    if (d == std::floor(d) && std::fabs(d) < 1e37)
      return "i" + toString(static_cast<Int>(d));
    char bytes[sizeof d];
    std::memcpy(bytes, &d, sizeof d);
    return "f" + std::string(bytes, sizeof d);
  }
  case Kind::Tuple: {
    std::string out = "t";
    for (const Value &item : key.items()) {
      std::string part = encodeKey(item);
      // Tuples that share their parts would else grow without bound.
      if (part.empty() || out.size() + part.size() > maxTupleKeyBytes)
        return "";
      out += std::to_string(part.size()) + ":" + part;
    }
    return out;
  }
  default:
    return "";
  }
}

} // namespace

std::string toString(Int value) {
  if (value >= INT64_MIN && value <= INT64_MAX)
    return std::to_string(static_cast<int64_t>(value));
  bool negative = value < 0;
  std::string digits;
  while (value != 0) {
    int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
    value /= 10;
  }
  if (negative)
    digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Value Value::undefined(std::string why) {
  Value v = string(std::move(why));
  v.kind_ = Kind::Undefined;
  return v;
}
Value Value::boolean(bool b) {
  Value v(Kind::Bool);
  v.int_ = b ? 1 : 0;
  return v;
}
Value Value::integer(Int i) {
  Value v(Kind::Int);
  v.int_ = i;
  return v;
}
Value Value::real(double d) {
  Value v(Kind::Float);
  v.float_ = d;
  return v;
}
Value Value::string(std::string s, bool safe) {
  auto text = std::make_shared<Text>();
  text->codePoints = countCodePoints(s);
  text->bytes = std::move(s);
  Value v(Kind::String);
  v.safe_ = safe;
  v.object_ = std::move(text);
  return v;
}
Value Value::object(Kind kind, std::shared_ptr<Object> object) {
  Value v(kind);
  v.object_ = std::move(object);
  return v;
}
const std::string &Value::text() const { return as<Text>().bytes; }
const Text &Value::textObject() const { return as<Text>(); }
const std::vector<Value> &Value::items() const { return as<List>().items; }
const Dict &Value::dict() const { return as<Dict>(); }

void Dict::setEncoded(std::string encoded, const Value &key, Value value) {
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  auto [place, isNew] = index_.try_emplace(std::move(encoded), entries.size());
  if (isNew)
    entries.emplace_back(key, std::move(value));
  else
    entries[place->second].second = std::move(value);
}
Status Dict::set(const Value &key, Value value) {
  std::string encoded = encodeKey(key);
  if (encoded.empty())
    return Status::error("unhashable type: '" + typeName(key) + "'");
  setEncoded(std::move(encoded), key, std::move(value));
  return Status();
}
void Dict::setText(const std::string &key, Value value) { setEncoded("s" + key, Value::string(key), std::move(value)); }
const Value *Dict::find(const Value &key) const {
  std::string encoded = encodeKey(key);
  auto found = encoded.empty() ? index_.end() : index_.find(encoded);
  return found == index_.end() ? nullptr : &entries[found->second].second;
}
const Value *Dict::findText(std::string_view key) const {
  auto found = index_.find("s" + std::string(key));
  return found == index_.end() ? nullptr : &entries[found->second].second;
}

int64_t Range::size() const {
  Int span = step > 0 ? static_cast<Int>(stop) - start : static_cast<Int>(start) - stop;
  Int stride = step > 0 ? static_cast<Int>(step) : -static_cast<Int>(step);
  Int n = span <= 0 ? 0 : (span + stride - 1) / stride;
  return n > INT64_MAX ? INT64_MAX : static_cast<int64_t>(n);
}

ValueOr makeList(std::vector<Value> items, Kind kind) {
  auto list = std::make_shared<List>();
  list->depth = depthOf(items);
  if (list->depth > maxValueDepth)
    return tooDeep();
  list->items = std::move(items);
  return Value::object(kind, std::move(list));
}
ValueOr makeDict(std::shared_ptr<Dict> dict) {
  if (dict->depth > maxValueDepth)
    return tooDeep();
  return Value::object(Kind::Dict, std::move(dict));
}
ValueOr makeMethod(const Value &self, std::string name) {
  auto method = std::make_shared<Method>();
  method->depth = self.depth() + 1;
  if (method->depth > maxValueDepth)
    return tooDeep();
  method->self = self;
  method->name = std::move(name);
  return Value::object(Kind::Method, std::move(method));
}
// For pairs of what one container already held: their depth is that container's at most, plus one.
Value makePair(const Value &a, const Value &b) {
  auto list = std::make_shared<List>();
  list->items = {a, b};
  list->depth = depthOf(list->items);
  return Value::object(Kind::Tuple, std::move(list));
}

ValueOr fromJson(const Json &json, Budget &budget, int depth) {
  if (depth > maxValueDepth)
    return tooDeep();
  LLMC_RETURN_IF_ERROR(budget.spend(1));
  switch (json.type()) {
  case Json::value_t::null:
    return Value::none();
  case Json::value_t::boolean:
    return Value::boolean(json.get<bool>());
  case Json::value_t::number_integer:
    return Value::integer(json.get<int64_t>());
  case Json::value_t::number_unsigned:
    return Value::integer(json.get<uint64_t>());
  case Json::value_t::number_float:
    return Value::real(json.get<double>());
  case Json::value_t::string:
    return Value::string(withoutForgedMarks(json.get_ref<const std::string &>()));
  case Json::value_t::array: {
    std::vector<Value> items;
    items.reserve(json.size());
    for (const Json &item : json) {
      LLMC_ASSIGN_OR_RETURN(Value v, fromJson(item, budget, depth + 1));
      items.push_back(std::move(v));
    }
    return makeList(std::move(items));
  }
  case Json::value_t::object: {
    auto dict = std::make_shared<Dict>();
    for (auto it = json.begin(); it != json.end(); ++it) {
      LLMC_ASSIGN_OR_RETURN(Value v, fromJson(it.value(), budget, depth + 1));
      dict->setText(withoutForgedMarks(it.key()), std::move(v));
    }
    return makeDict(std::move(dict));
  }
  default:
    return Status::error("a variable holds binary data");
  }
}

std::string typeName(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
    return "Undefined";
  case Kind::None:
    return "NoneType";
  case Kind::Bool:
    return "bool";
  case Kind::Int:
    return "int";
  case Kind::Float:
    return "float";
  case Kind::String:
    return value.isSafe() ? "Markup" : "str";
  case Kind::List:
    return "list";
  case Kind::Tuple:
    return "tuple";
  case Kind::Iterator:
    return "generator";
  case Kind::DictView:
    return "dict_" + value.as<List>().view;
  case Kind::Dict:
    return "dict";
  case Kind::Range:
    return "range";
  case Kind::Namespace:
    return "Namespace";
  case Kind::Macro:
    return "Macro";
  case Kind::Loop:
    return "LoopContext";
  case Kind::Function:
    return "function";
  case Kind::Method:
    return "builtin_function_or_method";
  case Kind::Cycler:
    return "Cycler";
  case Kind::Joiner:
    return "Joiner";
  }
  return "object";
}

} // namespace llmc::jinja
