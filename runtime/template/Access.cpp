// Attributes, items, slices, and walking through a value.
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/Unicode.h"
#include <algorithm>

namespace llmc::jinja {
namespace {

std::string objectName(const Value &object) {
  return object.is(Kind::None) ? "'None'" : "'" + typeName(object) + " object'";
}

Value missingAttribute(const Value &object, const std::string &name) {
  return Value::undefined(objectName(object) + " has no attribute '" + name + "'");
}

Value itemAt(const Range &range, int64_t index) {
  return Value::integer(static_cast<Int>(range.start) + static_cast<Int>(index) * range.step);
}

// The bytes of the code points [begin, begin + count).
std::string_view substring(const Text &text, size_t begin, size_t count) {
  std::string_view bytes = text.bytes;
  if (text.isAscii())
    return bytes.substr(begin, count);
  size_t start = 0, end = 0;
  for (size_t i = 0; i < begin; ++i)
    nextCodePoint(bytes, start);
  end = start;
  for (size_t i = 0; i < count; ++i)
    nextCodePoint(bytes, end);
  return bytes.substr(start, end - start);
}

ValueOr itemByIndex(Budget &budget, const Value &object, Int index) {
  LLMC_ASSIGN_OR_RETURN(int64_t size, length(object));
  Int at = index < 0 ? index + size : index;
  if (at < 0 || at >= size)
    return Value::undefined(typeName(object) + " object has no element " + toString(index));
  auto i = static_cast<int64_t>(at);
  if (object.is(Kind::Range))
    return itemAt(object.as<Range>(), i);
  if (!object.isString())
    return object.items()[static_cast<size_t>(i)];
  LLMC_RETURN_IF_ERROR(budget.spendBytes(object.textObject().isAscii() ? 1 : object.text().size()));
  return Value::string(std::string(substring(object.textObject(), static_cast<size_t>(i), 1)), object.isSafe());
}

bool isIndexable(const Value &v) { return v.isString() || v.is(Kind::List) || v.is(Kind::Tuple) || v.is(Kind::Range); }

// The attribute itself, without falling back to a key; nothing when there is none.
StatusOr<std::optional<Value>> ownAttribute(Budget &budget, const Value &object, const std::string &name) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__"))
    return std::optional(Value::undefined("no attribute '" + name + "'"));
  if (object.is(Kind::Namespace)) {
    const Value *found = object.as<Namespace>().attributes.findText(name);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (object.is(Kind::Tuple) && object.as<List>().isGroup && (name == "grouper" || name == "list"))
    return std::optional(object.items()[name == "grouper" ? 0 : 1]);
  if (isChangingMethod(object, name))
    return std::optional(Value::undefined("'" + name + "' would change a " + typeName(object) +
                                          ", which a template may not; build a new one with + instead"));
  if (hasMethod(object, name)) {
    LLMC_ASSIGN_OR_RETURN(Value method, makeMethod(object, name));
    return std::optional(std::move(method));
  }
  return specialAttribute(budget, object, name);
}

} // namespace

StatusOr<int64_t> length(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
    return 0;
  case Kind::String:
    return static_cast<int64_t>(value.textObject().codePoints);
  case Kind::List:
  case Kind::Tuple:
  case Kind::DictView:
    return static_cast<int64_t>(value.items().size());
  case Kind::Dict:
    return static_cast<int64_t>(value.dict().entries.size());
  case Kind::Range:
    return value.as<Range>().size();
  case Kind::Loop:
    return static_cast<int64_t>(value.as<Loop>().items.size());
  default:
    return Status::error("object of type '" + typeName(value) + "' has no len()");
  }
}

StatusOr<std::vector<Value>> iterate(Budget &budget, const Value &value) {
  std::vector<Value> out;
  switch (value.kind()) {
  case Kind::Undefined:
    return out;
  case Kind::String: {
    LLMC_RETURN_IF_ERROR(budget.spendItems(value.textObject().codePoints));
    const std::string &text = value.text();
    for (size_t i = 0; i < text.size();) {
      size_t start = i;
      nextCodePoint(text, i);
      out.push_back(Value::string(text.substr(start, i - start)));
    }
    return out;
  }
  case Kind::Iterator:
    if (value.as<List>().used)
      return out;
    value.as<List>().used = true;
    [[fallthrough]];
  case Kind::List:
  case Kind::Tuple:
  case Kind::DictView:
    LLMC_RETURN_IF_ERROR(budget.spendItems(value.items().size()));
    return value.items();
  case Kind::Dict:
    LLMC_RETURN_IF_ERROR(budget.spendItems(value.dict().entries.size()));
    for (const auto &[key, item] : value.dict().entries)
      out.push_back(key);
    return out;
  case Kind::Range: {
    const auto &range = value.as<Range>();
    int64_t n = range.size();
    LLMC_RETURN_IF_ERROR(budget.spendItems(static_cast<uint64_t>(n)));
    for (int64_t i = 0; i < n; ++i)
      out.push_back(itemAt(range, i));
    return out;
  }
  default:
    return Status::error("'" + typeName(value) + "' object is not iterable");
  }
}

ValueOr getAttribute(Budget &budget, const Value &object, const std::string &name) {
  if (object.isUndefined())
    return undefinedError(object);
  LLMC_ASSIGN_OR_RETURN(std::optional<Value> own, ownAttribute(budget, object, name));
  if (own)
    return *own;
  if (object.is(Kind::Dict))
    if (const Value *found = object.dict().findText(name))
      return *found;
  return missingAttribute(object, name);
}

ValueOr getItem(Budget &budget, const Value &object, const Value &key) {
  if (object.isUndefined())
    return undefinedError(object);
  if (object.is(Kind::Dict)) {
    if (const Value *found = object.dict().find(key))
      return *found;
  } else if (isIndexable(object) && key.isInteger()) {
    return itemByIndex(budget, object, key.asInt());
  }
  if (key.isString()) {
    LLMC_ASSIGN_OR_RETURN(std::optional<Value> own, ownAttribute(budget, object, key.text()));
    return own ? *own : missingAttribute(object, key.text());
  }
  return Value::undefined(objectName(object) + " has no such element");
}

ValueOr getSlice(Budget &budget, const Value &object, const Slice &slice) {
  if (object.isUndefined())
    return undefinedError(object);
  if (!isIndexable(object))
    return Status::error(objectName(object) + " cannot be sliced");
  int64_t step = 1;
  if (slice.step && !slice.step->is(Kind::None)) {
    LLMC_ASSIGN_OR_RETURN(step, toIndex(*slice.step, "slice step"));
  }
  if (step == 0)
    return Status::error("slice step cannot be zero");
  LLMC_ASSIGN_OR_RETURN(int64_t size, length(object));
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  int64_t start = step > 0 ? low : high, stop = step > 0 ? high : low;
  for (auto [bound, to] : {std::pair(&slice.start, &start), std::pair(&slice.stop, &stop)}) {
    if (!*bound || (*bound)->is(Kind::None))
      continue;
    LLMC_ASSIGN_OR_RETURN(int64_t index, toIndex(**bound, "slice bound"));
    *to = std::clamp(index < 0 ? index + size : index, low, high);
  }
  Range range;
  range.start = start;
  range.stop = stop;
  range.step = step;
  auto n = static_cast<size_t>(range.size());
  if (object.isString() && step == 1) {
    LLMC_RETURN_IF_ERROR(budget.spendBytes(object.textObject().isAscii() ? n : object.text().size()));
    return Value::string(std::string(substring(object.textObject(), static_cast<size_t>(start), n)), object.isSafe());
  }
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> all, iterate(budget, object));
  LLMC_RETURN_IF_ERROR(budget.spendItems(n));
  std::vector<Value> out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(all[static_cast<size_t>(start + static_cast<int64_t>(i) * step)]);
  if (!object.isString())
    return makeList(std::move(out), object.is(Kind::Tuple) ? Kind::Tuple : Kind::List);
  std::string text;
  for (const Value &c : out)
    text += c.text();
  return Value::string(std::move(text), object.isSafe());
}

} // namespace llmc::jinja
