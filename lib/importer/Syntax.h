// The language of model descriptions, as trees: expressions such as `heads * head_dim` and `linear(x, mlp.down, hidden)`,
// and statements `q, k = split(x)` with an optional `when condition:` before them. What a name or a call means is up to
// who evaluates: Scalar.h computes numbers and words, Wiring.h builds graphs.
//
//   + - * / %   == != < <= > >=   not and or   ( )   1.5e-6   true false   'word'   name.with.dots   f(a, b, key: c)
#pragma once
#include "runtime/support/Status.h"
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

struct Expression {
  enum class Kind { Number, Word, Name, Call, Operator };
  Kind kind = Kind::Number;
  double number = 0.0;
  std::string text; // the word, the name, the function or the operator ("neg" for a sign)
  std::vector<Expression> operands;
  std::vector<std::string> keys; // of the arguments of a call that have a name
  std::vector<Expression> named; // those arguments
};

struct Statement {
  std::vector<std::string> targets; // none: the value of the block
  std::vector<Expression> values;   // several only without targets: a block with several results
  std::unique_ptr<Expression> condition;
  std::string text; // for messages
};

StatusOr<Expression> parseExpression(std::string_view text);
StatusOr<Statement> parseStatement(std::string_view text);

// "attention(x, at)" to its name and parameters.
StatusOr<std::pair<std::string, std::vector<std::string>>> parseSignature(std::string_view text);

// The names that an expression asks for.
std::vector<std::string> namesOf(const Expression &expression);

} // namespace llmc
