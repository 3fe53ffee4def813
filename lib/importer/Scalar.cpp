// Arithmetic on scalars, and the functions that descriptions may call.
#include "lib/importer/Scalar.h"
#include <algorithm>
#include <cmath>
#include <map>

namespace llmc {
namespace {

using Arguments = std::vector<Scalar>;
using Kind = Scalar::Kind;

StatusOr<double> numberOf(const Scalar &scalar, const std::string &what) {
  if (scalar.kind != Kind::Number)
    return Status::error(what + " takes numbers, not " + scalar.print());
  return scalar.number;
}

StatusOr<int64_t> indexOf(const Scalar &scalar, const std::string &what) {
  LLMC_ASSIGN_OR_RETURN(double number, numberOf(scalar, what));
  if (number != std::floor(number) || std::fabs(number) > 9e15)
    return Status::error(what + " takes a whole number, not " + printNumber(number));
  return static_cast<int64_t>(number);
}

StatusOr<const Json *> listOf(const Scalar &scalar, const std::string &what) {
  if (scalar.kind != Kind::List)
    return Status::error(what + " takes a list, not " + scalar.print());
  return &scalar.list;
}

// Slopes of ALiBi, Press et al. 2021: a geometric row for a power of two, interleaved with the next one's otherwise.
std::vector<double> alibiSlopes(int64_t heads, double largest) {
  auto row = [&](int64_t count, int64_t step, int64_t wanted) {
    std::vector<double> slopes;
    for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < wanted; i += step)
      slopes.push_back(std::exp2(-largest * static_cast<double>(i) / static_cast<double>(count)));
    return slopes;
  };
  int64_t power = 1;
  while (2 * power <= heads)
    power *= 2;
  std::vector<double> slopes = row(power, 1, power);
  std::vector<double> between = row(2 * power, 2, heads - power);
  slopes.insert(slopes.end(), between.begin(), between.end());
  return slopes;
}

StatusOr<Scalar> numeric(const std::string &name, const Arguments &arguments) {
  std::vector<double> x;
  for (const Scalar &argument : arguments) {
    LLMC_ASSIGN_OR_RETURN(double number, numberOf(argument, name));
    x.push_back(number);
  }
  double result = name == "sqrt"    ? std::sqrt(x[0])
                  : name == "log"   ? std::log(x[0])
                  : name == "exp"   ? std::exp(x[0])
                  : name == "floor" ? std::floor(x[0])
                  : name == "ceil"  ? std::ceil(x[0])
                  : name == "min"   ? std::min(x[0], x[1])
                  : name == "max"   ? std::max(x[0], x[1])
                                    : std::pow(x[0], x[1]);
  if (!std::isfinite(result))
    return Status::error(name + "(" + printNumber(x[0]) + (x.size() > 1 ? ", " + printNumber(x[1]) : "") +
                         ") has no finite value");
  return Scalar::of(result);
}

StatusOr<Scalar> at(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(const Json *list, listOf(arguments[0], "at"));
  LLMC_ASSIGN_OR_RETURN(int64_t index, indexOf(arguments[1], "at"));
  if (index < 0 || static_cast<size_t>(index) >= list->size())
    return Status::error("at: entry " + std::to_string(index) + " of a list of " + std::to_string(list->size()));
  return Scalar::ofJson((*list)[static_cast<size_t>(index)], "an entry of a list");
}

StatusOr<Scalar> count(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(const Json *list, listOf(arguments[0], "count"));
  double found = 0.0;
  for (const Json &entry : *list) {
    StatusOr<Scalar> scalar = Scalar::ofJson(entry, "an entry of a list");
    found += scalar.ok() && *scalar == arguments[1];
  }
  return Scalar::of(found);
}

// How many of the list's first n entries equal x: the index of a layer among those of its kind.
StatusOr<Scalar> countBefore(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(const Json *list, listOf(arguments[0], "count_before"));
  LLMC_ASSIGN_OR_RETURN(int64_t n, indexOf(arguments[2], "count_before"));
  Arguments head = {arguments[0], arguments[1]};
  head[0].list = Json::array();
  for (int64_t i = 0; i < n && static_cast<size_t>(i) < list->size(); ++i)
    head[0].list.push_back((*list)[static_cast<size_t>(i)]);
  return count(head);
}

// The last place of x among the list's first n entries: the latest layer before the n-th that is of that kind.
StatusOr<Scalar> lastBefore(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(const Json *list, listOf(arguments[0], "last_before"));
  LLMC_ASSIGN_OR_RETURN(int64_t n, indexOf(arguments[2], "last_before"));
  for (int64_t i = std::min(n, static_cast<int64_t>(list->size())); i-- > 0;) {
    StatusOr<Scalar> scalar = Scalar::ofJson((*list)[static_cast<size_t>(i)], "an entry of a list");
    if (scalar.ok() && *scalar == arguments[1])
      return Scalar::of(static_cast<double>(i));
  }
  return Status::error("last_before: none of the first " + std::to_string(n) + " entries of a list is " +
                       arguments[1].print());
}

StatusOr<Scalar> contains(const Arguments &arguments) {
  if (arguments[0].kind == Kind::Word && arguments[1].kind == Kind::Word)
    return Scalar::of(arguments[0].word.find(arguments[1].word) != std::string::npos ? 1.0 : 0.0);
  LLMC_ASSIGN_OR_RETURN(Scalar found, count(arguments));
  return Scalar::of(found.number > 0.0 ? 1.0 : 0.0);
}

StatusOr<Scalar> length(const Arguments &arguments) {
  if (arguments[0].kind == Kind::Word)
    return Scalar::of(static_cast<double>(arguments[0].word.size()));
  LLMC_ASSIGN_OR_RETURN(const Json *list, listOf(arguments[0], "length"));
  return Scalar::of(static_cast<double>(list->size()));
}

StatusOr<Scalar> letter(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(int64_t index, indexOf(arguments[1], "letter"));
  const std::string &word = arguments[0].word;
  if (arguments[0].kind != Kind::Word || index < 0 || static_cast<size_t>(index) >= word.size())
    return Status::error("letter: number " + std::to_string(index) + " of " + arguments[0].print());
  return Scalar::of(word.substr(static_cast<size_t>(index), 1));
}

StatusOr<Scalar> slopes(const Arguments &arguments) {
  LLMC_ASSIGN_OR_RETURN(int64_t heads, indexOf(arguments[0], "alibi_slopes"));
  LLMC_ASSIGN_OR_RETURN(double largest, numberOf(arguments[1], "alibi_slopes"));
  if (heads < 1 || heads > 65536)
    return Status::error("alibi_slopes: " + std::to_string(heads) + " heads, expected 1 to 65536");
  Scalar result;
  result.kind = Kind::List;
  result.list = alibiSlopes(heads, largest);
  return result;
}

struct Function {
  size_t arguments;
  std::function<StatusOr<Scalar>(const Arguments &)> compute;
};

const std::map<std::string, Function> &functions() {
  auto number = [](const char *name, size_t arguments) {
    return std::pair(std::string(name),
                     Function{arguments, [name](const Arguments &list) { return numeric(name, list); }});
  };
  static const std::map<std::string, Function> table = {number("sqrt", 1),
                                                        number("log", 1),
                                                        number("exp", 1),
                                                        number("floor", 1),
                                                        number("ceil", 1),
                                                        number("min", 2),
                                                        number("max", 2),
                                                        number("pow", 2),
                                                        {"at", {2, at}},
                                                        {"count", {2, count}},
                                                        {"count_before", {3, countBefore}},
                                                        {"last_before", {3, lastBefore}},
                                                        {"contains", {2, contains}},
                                                        {"length", {1, length}},
                                                        {"letter", {2, letter}},
                                                        {"alibi_slopes", {2, slopes}}};
  return table;
}

} // namespace

std::string printNumber(double value) {
  if (value == std::floor(value) && std::fabs(value) < 9e15)
    return std::to_string(static_cast<int64_t>(value));
  return Json(value).dump();
}

StatusOr<Scalar> Scalar::ofJson(const Json &json, const std::string &what) {
  if (json.is_null())
    return of(0.0);
  if (json.is_boolean())
    return of(json.get<bool>() ? 1.0 : 0.0);
  if (json.is_number())
    return of(json.get<double>());
  if (json.is_string())
    return of(json.get<std::string>());
  if (!json.is_array())
    return Status::error(what + " is " + brief(json) + ", expected a number, text or a list");
  Scalar scalar;
  scalar.kind = Kind::List;
  scalar.list = json;
  return scalar;
}

bool Scalar::isTrue() const {
  return kind == Kind::Number ? number != 0.0 : kind == Kind::Word ? !word.empty() : !list.empty();
}

std::string Scalar::print() const {
  return kind == Kind::Number ? printNumber(number) : kind == Kind::Word ? "'" + word + "'" : brief(list);
}

namespace {

// A list of numbers, each times the factor.
StatusOr<Scalar> scaled(Scalar list, double factor) {
  for (Json &entry : list.list) {
    if (!entry.is_number())
      return Status::error(brief(entry) + " of a list times " + printNumber(factor) + " has no value");
    entry = entry.get<double>() * factor;
  }
  return list;
}

} // namespace

StatusOr<Scalar> applyOperator(const std::string &op, const std::vector<Scalar> &x) {
  if (op == "==" || op == "!=")
    return Scalar::of((x[0] == x[1]) == (op == "==") ? 1.0 : 0.0);
  if (op == "not")
    return Scalar::of(x[0].isTrue() ? 0.0 : 1.0);
  if (op == "+" && x[0].kind == Kind::Word && x[1].kind == Kind::Word)
    return Scalar::of(x[0].word + x[1].word);
  if (op == "*" && x[0].kind == Kind::List && x[1].kind == Kind::Number)
    return scaled(x[0], x[1].number);
  std::vector<double> n;
  for (const Scalar &operand : x) {
    LLMC_ASSIGN_OR_RETURN(double number, numberOf(operand, op));
    n.push_back(number);
  }
  if (op == "neg")
    return Scalar::of(-n[0]);
  if (op == "<" || op == ">=")
    return Scalar::of((n[0] < n[1]) == (op == "<") ? 1.0 : 0.0);
  if (op == ">" || op == "<=")
    return Scalar::of((n[0] > n[1]) == (op == ">") ? 1.0 : 0.0);
  if ((op == "/" || op == "%") && n[1] == 0.0)
    return Status::error(printNumber(n[0]) + " " + op + " 0 has no value");
  double result = op == "+"   ? n[0] + n[1]
                  : op == "-" ? n[0] - n[1]
                  : op == "*" ? n[0] * n[1]
                  : op == "/" ? n[0] / n[1]
                              : n[0] - n[1] * std::floor(n[0] / n[1]);
  if (!std::isfinite(result))
    return Status::error(printNumber(n[0]) + " " + op + " " + printNumber(n[1]) + " has no finite value");
  return Scalar::of(result);
}

std::optional<StatusOr<Scalar>> applyFunction(const std::string &name, const std::vector<Scalar> &arguments) {
  auto found = functions().find(name);
  if (found == functions().end())
    return std::nullopt;
  if (arguments.size() != found->second.arguments)
    return StatusOr<Scalar>(Status::error(name + " takes " + std::to_string(found->second.arguments) +
                                          " arguments, not " + std::to_string(arguments.size())));
  return found->second.compute(arguments);
}

StatusOr<Scalar> evaluateScalar(const Expression &expression, const ScalarLookup &lookup) {
  using ExpressionKind = Expression::Kind;
  switch (expression.kind) {
  case ExpressionKind::Number:
    return Scalar::of(expression.number);
  case ExpressionKind::Word:
    return Scalar::of(expression.text);
  case ExpressionKind::Name:
    return lookup(expression.text);
  case ExpressionKind::Call:
  case ExpressionKind::Operator:
    break;
  }
  auto operand = [&](size_t i) { return evaluateScalar(expression.operands[i], lookup); };
  bool isIf = expression.kind == ExpressionKind::Call && expression.text == "if" && expression.operands.size() == 3;
  if (isIf || expression.text == "and" || expression.text == "or") {
    LLMC_ASSIGN_OR_RETURN(Scalar condition, operand(0));
    if (isIf)
      return operand(condition.isTrue() ? 1 : 2);
    if (condition.isTrue() == (expression.text == "or"))
      return Scalar::of(condition.isTrue() ? 1.0 : 0.0);
    LLMC_ASSIGN_OR_RETURN(Scalar other, operand(1));
    return Scalar::of(other.isTrue() ? 1.0 : 0.0);
  }
  std::vector<Scalar> operands;
  for (size_t i = 0; i < expression.operands.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Scalar value, operand(i));
    operands.push_back(std::move(value));
  }
  if (expression.kind == ExpressionKind::Operator)
    return applyOperator(expression.text, operands);
  if (std::optional<StatusOr<Scalar>> result = applyFunction(expression.text, operands);
      result && expression.named.empty())
    return *result;
  std::string known;
  for (const auto &function : functions())
    known += ", " + function.first;
  return Status::error("no function '" + expression.text + "' (known = if" + known + ")");
}

StatusOr<Scalar> evaluateScalar(std::string_view text, const ScalarLookup &lookup) {
  LLMC_ASSIGN_OR_RETURN(Expression expression, parseExpression(text));
  return evaluateScalar(expression, lookup);
}

std::optional<std::pair<std::string, std::string>> quotientOfNames(std::string_view text) {
  StatusOr<Expression> expression = parseExpression(text);
  if (!expression.ok() || expression->text != "/" || expression->operands.size() != 2)
    return std::nullopt;
  const Expression &above = expression->operands[0], &below = expression->operands[1];
  if (above.kind != Expression::Kind::Name || below.kind != Expression::Kind::Name)
    return std::nullopt;
  return std::pair(above.text, below.text);
}

} // namespace llmc
