// Truth, comparison and arithmetic. Integers that outgrow 128 bits are errors.
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Unicode.h"
#include <algorithm>
#include <cmath>

namespace llmc::jinja {
namespace {

const char *spelling(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add:
    return "+";
  case BinaryOp::Subtract:
    return "-";
  case BinaryOp::Multiply:
    return "*";
  case BinaryOp::Divide:
    return "/";
  case BinaryOp::FloorDivide:
    return "//";
  case BinaryOp::Modulo:
    return "%";
  case BinaryOp::Power:
    return "**";
  }
  return "?";
}

Status overflow(BinaryOp op) {
  return Status::error(std::string("the result of '") + spelling(op) + "' does not fit a 128-bit integer");
}

ValueOr integerPower(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0)
      return Status::error("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result))
      return overflow(BinaryOp::Power);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
      return overflow(BinaryOp::Power);
  }
  return Value::integer(result);
}

ValueOr integerArithmetic(BinaryOp op, Int a, Int b) {
  Int r = 0;
  switch (op) {
  case BinaryOp::Add:
    return __builtin_add_overflow(a, b, &r) ? ValueOr(overflow(op)) : ValueOr(Value::integer(r));
  case BinaryOp::Subtract:
    return __builtin_sub_overflow(a, b, &r) ? ValueOr(overflow(op)) : ValueOr(Value::integer(r));
  case BinaryOp::Multiply:
    return __builtin_mul_overflow(a, b, &r) ? ValueOr(overflow(op)) : ValueOr(Value::integer(r));
  case BinaryOp::Power:
    return integerPower(a, b);
  default:
    break;
  }
  if (b == 0)
    return Status::error("division by zero");
  if (op == BinaryOp::Divide)
    return Value::real(static_cast<double>(a) / static_cast<double>(b));
  // The one quotient that overflows: the smallest integer by -1.
  if (b == -1)
    return op == BinaryOp::Modulo ? ValueOr(Value::integer(0)) : integerArithmetic(BinaryOp::Subtract, 0, a);
  Int quotient = a / b, remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return Value::integer(op == BinaryOp::FloorDivide ? quotient : remainder);
}

ValueOr realArithmetic(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add:
    return Value::real(a + b);
  case BinaryOp::Subtract:
    return Value::real(a - b);
  case BinaryOp::Multiply:
    return Value::real(a * b);
  case BinaryOp::Power:
    if (a == 0 && b < 0)
      return Status::error("0.0 cannot be raised to a negative power");
    if (a < 0 && b != std::floor(b))
      return Status::error("a negative number cannot be raised to a fraction");
    if (double power = std::pow(a, b); std::isfinite(power) || !std::isfinite(a) || !std::isfinite(b))
      return Value::real(power);
    return Status::error("the result of '**' is too large");
  default:
    break;
  }
  if (b == 0)
    return Status::error("division by zero");
  if (op == BinaryOp::Divide)
    return Value::real(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0))
    remainder += b;
  if (op == BinaryOp::Modulo)
    return Value::real(remainder == 0 ? std::copysign(0.0, b) : remainder);
  return Value::real(std::round((a - remainder) / b));
}

ValueOr repeat(Budget &budget, const Value &sequence, Int count) {
  if (count < 0)
    count = 0;
  // Far above every limit, and far below an overflow of the products.
  auto times = static_cast<uint64_t>(std::min<Int>(count, Int(1) << 31));
  if (sequence.isString()) {
    const std::string &text = sequence.text();
    LLMC_RETURN_IF_ERROR(budget.spendBytes(text.size() * times));
    std::string out;
    out.reserve(text.size() * times);
    for (uint64_t i = 0; i < times && !text.empty(); ++i)
      out += text;
    return Value::string(std::move(out), sequence.isSafe());
  }
  const std::vector<Value> &items = sequence.items();
  LLMC_RETURN_IF_ERROR(budget.spendItems(items.size() * times));
  std::vector<Value> out;
  for (uint64_t i = 0; i < times && !items.empty(); ++i)
    out.insert(out.end(), items.begin(), items.end());
  return makeList(std::move(out), sequence.kind());
}

// What was a safe string stays one: the other side is escaped.
ValueOr addTexts(Budget &budget, const Value &a, const Value &b) {
  bool safe = a.isSafe() || b.isSafe();
  LLMC_RETURN_IF_ERROR(budget.spendBytes(a.text().size() + b.text().size()));
  if (!safe)
    return Value::string(a.text() + b.text());
  return Value::string((a.isSafe() ? a.text() : escapeHtml(a.text())) + (b.isSafe() ? b.text() : escapeHtml(b.text())),
                       /*safe=*/true);
}

ValueOr formatText(Budget &budget, const Value &format, const Value &values) {
  Value shown = values;
  if (format.isSafe() && values.isString())
    shown = Value::string(values.isSafe() ? values.text() : escapeHtml(values.text()));
  if (format.isSafe() && values.is(Kind::Tuple)) {
    std::vector<Value> items = values.items();
    for (Value &item : items)
      if (item.isString() && !item.isSafe())
        item = Value::string(escapeHtml(item.text()));
    LLMC_ASSIGN_OR_RETURN(shown, makeList(std::move(items), Kind::Tuple));
  }
  LLMC_ASSIGN_OR_RETURN(std::string text, percentFormat(budget, format.text(), shown));
  return Value::string(std::move(text), format.isSafe());
}

bool isSequence(const Value &v) { return v.is(Kind::List) || v.is(Kind::Tuple); }

bool sequencesEqual(Budget &budget, const std::vector<Value> &a, const std::vector<Value> &b, Status &failure) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!isEqual(budget, a[i], b[i], failure))
      return false;
  return true;
}

bool dictsEqual(Budget &budget, const Dict &a, const Dict &b, Status &failure) {
  if (a.entries.size() != b.entries.size())
    return false;
  for (const auto &[key, value] : a.entries) {
    const Value *other = b.find(key);
    if (!other || !isEqual(budget, value, *other, failure))
      return false;
  }
  return true;
}

bool fail(Status &failure, Status status) {
  if (failure.ok())
    failure = std::move(status);
  return false;
}

} // namespace

bool isTrue(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Bool:
  case Kind::Int:
    return value.asInt() != 0;
  case Kind::Float:
    return value.asDouble() != 0;
  case Kind::String:
    return !value.text().empty();
  case Kind::List:
  case Kind::Tuple:
  case Kind::DictView:
    return !value.items().empty();
  case Kind::Dict:
    return !value.dict().entries.empty();
  case Kind::Range:
    return value.as<Range>().size() > 0;
  default:
    return true;
  }
}

Status undefinedError(const Value &value) {
  return Status::error(value.shared() ? value.text() : "the value is undefined");
}

ValueOr toInteger(const Value &value) {
  if (value.isInteger())
    return Value::integer(value.asInt());
  if (value.isUndefined())
    return undefinedError(value);
  if (!value.is(Kind::Float))
    return Status::error("'" + typeName(value) + "' object cannot be read as an integer");
  double d = std::trunc(value.asDouble());
  if (!(std::fabs(d) < 1.7e38))
    return Status::error("float " + formatDouble(d) + " does not fit a 128-bit integer");
  return Value::integer(static_cast<Int>(d));
}

StatusOr<int64_t> toIndex(const Value &value, const std::string &what) {
  if (value.isUndefined())
    return undefinedError(value);
  if (!value.isInteger())
    return Status::error(what + " is of type " + typeName(value) + ", expected an integer");
  return static_cast<int64_t>(std::clamp<Int>(value.asInt(), INT64_MIN / 2, INT64_MAX / 2));
}

bool isEqual(Budget &budget, const Value &a, const Value &b, Status &failure) {
  if (!failure.ok())
    return false;
  if (Status spent = budget.spend(1); !spent.ok())
    return fail(failure, spent);
  if (a.isNumber() && b.isNumber())
    return a.isInteger() && b.isInteger() ? a.asInt() == b.asInt() : a.asDouble() == b.asDouble();
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::String:
    if (Status spent = budget.spendBytes(std::min(a.text().size(), b.text().size())); !spent.ok())
      return fail(failure, spent);
    return a.text() == b.text();
  case Kind::List:
  case Kind::Tuple:
    return a.sameObject(b) || sequencesEqual(budget, a.items(), b.items(), failure);
  case Kind::Dict:
    return a.sameObject(b) || dictsEqual(budget, a.dict(), b.dict(), failure);
  case Kind::Range: {
    const auto &r = a.as<Range>(), &s = b.as<Range>();
    int64_t n = r.size();
    return n == s.size() && (n == 0 || (r.start == s.start && (n == 1 || r.step == s.step)));
  }
  default:
    return a.sameObject(b);
  }
}

bool isLess(Budget &budget, const Value &a, const Value &b, Status &failure) {
  if (!failure.ok())
    return false;
  if (Status spent = budget.spend(1); !spent.ok())
    return fail(failure, spent);
  if (a.isUndefined() || b.isUndefined())
    return fail(failure, undefinedError(a.isUndefined() ? a : b));
  if (a.isNumber() && b.isNumber())
    return a.isInteger() && b.isInteger() ? a.asInt() < b.asInt() : a.asDouble() < b.asDouble();
  if (a.isString() && b.isString()) {
    if (Status spent = budget.spendBytes(std::min(a.text().size(), b.text().size())); !spent.ok())
      return fail(failure, spent);
    // The order of UTF-8 bytes is the order of code points.
    return a.text() < b.text();
  }
  if (a.kind() == b.kind() && isSequence(a)) {
    const std::vector<Value> &x = a.items(), &y = b.items();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!isEqual(budget, x[i], y[i], failure))
        return isLess(budget, x[i], y[i], failure);
    return x.size() < y.size();
  }
  return fail(failure,
              Status::error("'<' not supported between instances of '" + typeName(a) + "' and '" + typeName(b) + "'"));
}

// A merge sort of our own: a comparison may fail, and what a broken order does must be known.
Status sortPairs(Budget &budget, std::vector<std::pair<Value, Value>> &pairs, bool descending) {
  Status failure;
  std::vector<std::pair<Value, Value>> merged(pairs.size());
  for (size_t width = 1; width < pairs.size(); width *= 2) {
    for (size_t begin = 0; begin < pairs.size(); begin += 2 * width) {
      size_t left = begin, middle = std::min(begin + width, pairs.size());
      size_t right = middle, end = std::min(begin + 2 * width, pairs.size());
      for (size_t out = begin; out < end; ++out) {
        bool takeRight = left == middle;
        if (left < middle && right < end) {
          const Value &a = pairs[left].first, &b = pairs[right].first;
          takeRight = descending ? isLess(budget, a, b, failure) : isLess(budget, b, a, failure);
          LLMC_RETURN_IF_ERROR(failure);
        }
        merged[out] = std::move(pairs[takeRight ? right++ : left++]);
      }
    }
    pairs.swap(merged);
  }
  return Status();
}

StatusOr<bool> contains(Budget &budget, const Value &container, const Value &item) {
  switch (container.kind()) {
  case Kind::String:
    if (item.isUndefined())
      return undefinedError(item);
    if (!item.isString())
      return Status::error("'in <string>' requires string as left operand, not " + typeName(item));
    LLMC_RETURN_IF_ERROR(budget.spendBytes(container.text().size()));
    LLMC_RETURN_IF_ERROR(budget.spendSearch(container.text().size(), item.text().size()));
    return container.text().find(item.text()) != std::string::npos;
  case Kind::Dict:
    if (item.is(Kind::List) || item.is(Kind::Dict))
      return Status::error("unhashable type: '" + typeName(item) + "'");
    return container.dict().find(item) != nullptr;
  case Kind::None:
  case Kind::Bool:
  case Kind::Int:
  case Kind::Float:
  case Kind::Namespace:
    return Status::error("argument of type '" + typeName(container) + "' is not iterable");
  default:
    break;
  }
  LLMC_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(budget, container));
  Status failure;
  for (const Value &candidate : items) {
    if (isEqual(budget, candidate, item, failure))
      return true;
    LLMC_RETURN_IF_ERROR(failure);
  }
  return false;
}

ValueOr arithmetic(Budget &budget, BinaryOp op, const Value &a, const Value &b) {
  if (op == BinaryOp::Modulo && a.isString())
    return formatText(budget, a, b);
  if (a.isUndefined() || b.isUndefined())
    return undefinedError(a.isUndefined() ? a : b);
  if (a.isInteger() && b.isInteger())
    return integerArithmetic(op, a.asInt(), b.asInt());
  if (a.isNumber() && b.isNumber())
    return realArithmetic(op, a.asDouble(), b.asDouble());
  if (op == BinaryOp::Add && a.isString() && b.isString())
    return addTexts(budget, a, b);
  if (op == BinaryOp::Add && a.kind() == b.kind() && isSequence(a)) {
    LLMC_RETURN_IF_ERROR(budget.spendItems(a.items().size() + b.items().size()));
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return makeList(std::move(items), a.kind());
  }
  if (op == BinaryOp::Multiply && b.isInteger() && (a.isString() || isSequence(a)))
    return repeat(budget, a, b.asInt());
  if (op == BinaryOp::Multiply && a.isInteger() && (b.isString() || isSequence(b)))
    return repeat(budget, b, a.asInt());
  if (op == BinaryOp::Add && a.isString())
    return Status::error("can only concatenate str (not \"" + typeName(b) + "\") to str");
  return Status::error(std::string("unsupported operand types for ") + spelling(op) + ": '" + typeName(a) + "' and '" +
                       typeName(b) + "'");
}

ValueOr negate(const Value &value) {
  if (value.is(Kind::Float))
    return Value::real(-value.asDouble());
  if (value.isInteger())
    return integerArithmetic(BinaryOp::Subtract, 0, value.asInt());
  if (value.isUndefined())
    return undefinedError(value);
  return Status::error("bad operand type for unary -: '" + typeName(value) + "'");
}

} // namespace llmc::jinja
