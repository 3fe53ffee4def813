// What stands after "is" in a template. Jinja calls these tests; here a test is something else.
#include "runtime/template/Methods.h"
#include "runtime/template/Operations.h"
#include "runtime/template/PythonFormat.h"
#include "runtime/template/Runtime.h"

namespace llmc::jinja {
namespace {

using Answer = StatusOr<bool>;

ValueOr argument(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(auto bound, bindArguments("the test", arguments, {"other"}, 1));
  return *bound[0];
}

Answer isDefined(Runtime &, const Value &v, const Arguments &) { return !v.isUndefined(); }
Answer isUndefined(Runtime &, const Value &v, const Arguments &) { return v.isUndefined(); }
Answer isNone(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::None); }
Answer isBoolean(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::Bool); }
Answer isTrueItself(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::Bool) && v.asBool(); }
Answer isFalseItself(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::Bool) && !v.asBool(); }
Answer isInteger(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::Int); }
Answer isFloat(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::Float); }
Answer isNumber(Runtime &, const Value &v, const Arguments &) { return v.isNumber(); }
Answer isString(Runtime &, const Value &v, const Arguments &) { return v.isString(); }
Answer isMapping(Runtime &, const Value &v, const Arguments &) { return v.is(Kind::Dict); }
Answer isEscaped(Runtime &, const Value &v, const Arguments &) { return v.isSafe(); }

Answer isSequence(Runtime &, const Value &v, const Arguments &) {
  return v.isUndefined() || v.isString() || v.is(Kind::List) || v.is(Kind::Tuple) || v.is(Kind::Dict) ||
         v.is(Kind::Range);
}
Answer isIterable(Runtime &r, const Value &v, const Arguments &a) {
  LLMC_ASSIGN_OR_RETURN(bool sequence, isSequence(r, v, a));
  return sequence || v.is(Kind::Iterator) || v.is(Kind::DictView) || v.is(Kind::Loop);
}
Answer isCallable(Runtime &, const Value &v, const Arguments &) {
  return v.isUndefined() || v.is(Kind::Macro) || v.is(Kind::Function) || v.is(Kind::Method) || v.is(Kind::Joiner) ||
         v.is(Kind::Loop);
}

Answer remainderIsZero(Runtime &r, const Value &v, const Value &divisor) {
  LLMC_ASSIGN_OR_RETURN(Value remainder, arithmetic(r.budget, BinaryOp::Modulo, v, divisor));
  return remainder.isNumber() && remainder.asDouble() == 0;
}
Answer isEven(Runtime &r, const Value &v, const Arguments &) { return remainderIsZero(r, v, Value::integer(2)); }
Answer isOdd(Runtime &r, const Value &v, const Arguments &) {
  LLMC_ASSIGN_OR_RETURN(Value remainder, arithmetic(r.budget, BinaryOp::Modulo, v, Value::integer(2)));
  return remainder.isNumber() && remainder.asDouble() == 1;
}
Answer isDivisibleBy(Runtime &r, const Value &v, const Arguments &a) {
  LLMC_ASSIGN_OR_RETURN(Value other, argument(a));
  return remainderIsZero(r, v, other);
}

Answer hasCase(Runtime &r, const Value &v, const char *method) {
  LLMC_ASSIGN_OR_RETURN(std::string text, pythonStr(r.budget, v));
  LLMC_ASSIGN_OR_RETURN(Value answer, callStringMethod(r.budget, Value::string(text), method, Arguments()));
  return answer.asBool();
}
Answer isLowerCase(Runtime &r, const Value &v, const Arguments &) { return hasCase(r, v, "islower"); }
Answer isUpperCase(Runtime &r, const Value &v, const Arguments &) { return hasCase(r, v, "isupper"); }

Answer isSameAs(Runtime &r, const Value &v, const Arguments &a) {
  LLMC_ASSIGN_OR_RETURN(Value other, argument(a));
  if (v.kind() != other.kind())
    return false;
  bool scalar = v.isNumber() || v.isString() || v.is(Kind::None);
  Status failure;
  bool same = scalar ? isEqual(r.budget, v, other, failure) : v.sameObject(other);
  LLMC_RETURN_IF_ERROR(failure);
  return same;
}

Answer equals(Runtime &r, const Value &v, const Arguments &a) {
  LLMC_ASSIGN_OR_RETURN(Value other, argument(a));
  Status failure;
  bool answer = isEqual(r.budget, v, other, failure);
  LLMC_RETURN_IF_ERROR(failure);
  return answer;
}
Answer differs(Runtime &r, const Value &v, const Arguments &a) {
  LLMC_ASSIGN_OR_RETURN(bool same, equals(r, v, a));
  return !same;
}
Answer ordered(Runtime &r, const Value &v, const Arguments &a, bool less, bool orEqual) {
  LLMC_ASSIGN_OR_RETURN(Value other, argument(a));
  Status failure;
  bool answer = less ? isLess(r.budget, v, other, failure) : isLess(r.budget, other, v, failure);
  if (!answer && orEqual)
    answer = isEqual(r.budget, v, other, failure);
  LLMC_RETURN_IF_ERROR(failure);
  return answer;
}
Answer isBelow(Runtime &r, const Value &v, const Arguments &a) { return ordered(r, v, a, true, false); }
Answer isAtMost(Runtime &r, const Value &v, const Arguments &a) { return ordered(r, v, a, true, true); }
Answer isAbove(Runtime &r, const Value &v, const Arguments &a) { return ordered(r, v, a, false, false); }
Answer isAtLeast(Runtime &r, const Value &v, const Arguments &a) { return ordered(r, v, a, false, true); }
Answer isIn(Runtime &r, const Value &v, const Arguments &a) {
  LLMC_ASSIGN_OR_RETURN(Value container, argument(a));
  return contains(r.budget, container, v);
}
Answer isFilter(Runtime &, const Value &v, const Arguments &) { return v.isString() && findFilter(v.text()); }
Answer isTest(Runtime &, const Value &v, const Arguments &) { return v.isString() && findPredicate(v.text()); }

} // namespace

Predicate findPredicate(const std::string &name) {
  static const std::unordered_map<std::string, Predicate> table = {
      {"!=", differs},
      {"<", isBelow},
      {"<=", isAtMost},
      {"==", equals},
      {">", isAbove},
      {">=", isAtLeast},
      {"boolean", isBoolean},
      {"callable", isCallable},
      {"defined", isDefined},
      {"divisibleby", isDivisibleBy},
      {"eq", equals},
      {"equalto", equals},
      {"escaped", isEscaped},
      {"even", isEven},
      {"false", isFalseItself},
      {"filter", isFilter},
      {"float", isFloat},
      {"ge", isAtLeast},
      {"greaterthan", isAbove},
      {"gt", isAbove},
      {"in", isIn},
      {"integer", isInteger},
      {"iterable", isIterable},
      {"le", isAtMost},
      {"lessthan", isBelow},
      {"lower", isLowerCase},
      {"lt", isBelow},
      {"mapping", isMapping},
      {"ne", differs},
      {"none", isNone},
      {"number", isNumber},
      {"odd", isOdd},
      {"sameas", isSameAs},
      {"sequence", isSequence},
      {"string", isString},
      {"test", isTest},
      {"true", isTrueItself},
      {"undefined", isUndefined},
      {"upper", isUpperCase},
  };
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

StatusOr<bool> applyPredicate(Runtime &runtime, const std::string &name, const Value &value,
                              const Arguments &arguments) {
  LLMC_RETURN_IF_ERROR(runtime.budget.step());
  Predicate predicate = findPredicate(name);
  if (!predicate)
    return Status::error("no test named '" + name + "'");
  return predicate(runtime, value, arguments);
}

} // namespace llmc::jinja
