// Operators, comparison, iteration and look-up over values.
#pragma once
#include "runtime/template/Value.h"
#include <optional>

namespace llmc::jinja {

enum class BinaryOp : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };

bool isTrue(const Value &value);
// What using an undefined value says: its name or the attribute that is missing.
Status undefinedError(const Value &value);
// The whole part of a number or boolean.
ValueOr toInteger(const Value &value);
// An index, count or width: clamped to 64 bits, an error when `value` is no integer.
StatusOr<int64_t> toIndex(const Value &value, const std::string &what);

// Predicates for algorithms: after a failure, `failure` is set and the answer is false.
bool isEqual(Budget &budget, const Value &a, const Value &b, Status &failure);
bool isLess(Budget &budget, const Value &a, const Value &b, Status &failure);
// Sorts by the first of each pair, stable; `descending` keeps equal ones in their order too.
Status sortPairs(Budget &budget, std::vector<std::pair<Value, Value>> &pairs, bool descending);
StatusOr<bool> contains(Budget &budget, const Value &container, const Value &item);

ValueOr arithmetic(Budget &budget, BinaryOp op, const Value &a, const Value &b);
ValueOr negate(const Value &value);

// The items a for loop sees; an iterator is used up by it.
StatusOr<std::vector<Value>> iterate(Budget &budget, const Value &value);
StatusOr<int64_t> length(const Value &value);

// a.name: methods before keys. a[key]: keys before methods. What is missing is undefined, not a failure.
ValueOr getAttribute(Budget &budget, const Value &object, const std::string &name);
ValueOr getItem(Budget &budget, const Value &object, const Value &key);
struct Slice {
  std::optional<Value> start, stop, step;
};
ValueOr getSlice(Budget &budget, const Value &object, const Slice &slice);

} // namespace llmc::jinja
