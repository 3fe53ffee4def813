// Numbers, words and lists of model descriptions, and how expressions of them are computed.
#pragma once
#include "lib/importer/Syntax.h"
#include "runtime/support/Json.h"
#include <functional>
#include <optional>

namespace llmc {

struct Scalar {
  enum class Kind { Number, Word, List };
  Kind kind = Kind::Number;
  double number = 0.0; // flags are 0 and 1
  std::string word;
  Json list; // an array

  static Scalar of(double number) { return {Kind::Number, number, "", nullptr}; }
  static Scalar of(std::string word) { return {Kind::Word, 0.0, std::move(word), nullptr}; }
  // Numbers, bools, text and lists; null is 0.
  static StatusOr<Scalar> ofJson(const Json &json, const std::string &what);
  // Neither 0 nor empty.
  bool isTrue() const;
  // As a message or a report shows it.
  std::string print() const;
  bool operator==(const Scalar &) const = default;
};

using ScalarLookup = std::function<StatusOr<Scalar>(const std::string &name)>;

// The value of an expression without operators of models; names are asked of `lookup`. `if(c, a, b)` computes only what it needs.
StatusOr<Scalar> evaluateScalar(const Expression &expression, const ScalarLookup &lookup);
StatusOr<Scalar> evaluateScalar(std::string_view text, const ScalarLookup &lookup);

// One operator, or one function, on values at hand: what Wiring shares. Nothing when no scalar function has the name.
StatusOr<Scalar> applyOperator(const std::string &op, const std::vector<Scalar> &operands);
std::optional<StatusOr<Scalar>> applyFunction(const std::string &name, const std::vector<Scalar> &arguments);

// The two names of "a / b", when the expression is just that: such a quotient gets a message of its own.
std::optional<std::pair<std::string, std::string>> quotientOfNames(std::string_view text);

// 0.08838834764831845 and 64, not 64.000000.
std::string printNumber(double value);

} // namespace llmc
