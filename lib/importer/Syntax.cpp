// A recursive descent parser; descriptions may be a user's own, so nesting is bounded.
#include "lib/importer/Syntax.h"
#include <cctype>
#include <cstdlib>
#include <optional>

namespace llmc {
namespace {

constexpr int maxNesting = 64;
constexpr int maxOperands = 1024; // a sum is a tree as deep as it is long

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<Expression> wholeExpression() {
    LLMC_ASSIGN_OR_RETURN(Expression expression, disjunction());
    LLMC_RETURN_IF_ERROR(end());
    return expression;
  }

  StatusOr<Statement> wholeStatement() {
    Statement statement;
    statement.text = std::string(text_);
    if (takeWord("when")) {
      LLMC_ASSIGN_OR_RETURN(Expression condition, disjunction());
      statement.condition = std::make_unique<Expression>(std::move(condition));
      if (!take(":"))
        return fail("expected ':' after the condition");
    }
    LLMC_ASSIGN_OR_RETURN(statement.targets, targets());
    do {
      LLMC_ASSIGN_OR_RETURN(Expression value, disjunction());
      statement.values.push_back(std::move(value));
    } while (statement.targets.empty() && take(","));
    LLMC_RETURN_IF_ERROR(end());
    return statement;
  }

  StatusOr<std::pair<std::string, std::vector<std::string>>> wholeSignature() {
    std::pair<std::string, std::vector<std::string>> signature;
    LLMC_ASSIGN_OR_RETURN(signature.first, name());
    if (!take("("))
      return fail("expected '('");
    while (!take(")")) {
      if (!signature.second.empty() && !take(","))
        return fail("expected ',' or ')'");
      LLMC_ASSIGN_OR_RETURN(std::string parameter, name());
      signature.second.push_back(std::move(parameter));
    }
    LLMC_RETURN_IF_ERROR(end());
    return signature;
  }

private:
  static bool isNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  void skipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
  }
  char peek() {
    skipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view token) {
    skipSpace();
    if (text_.substr(at_, token.size()) != token)
      return false;
    at_ += token.size();
    return true;
  }
  // A word of the language, not the beginning of a longer name.
  bool takeWord(std::string_view word) {
    skipSpace();
    size_t after = at_ + word.size();
    if (text_.substr(at_, word.size()) != word || (after < text_.size() && isNameChar(text_[after])))
      return false;
    at_ = after;
    return true;
  }
  Status fail(const std::string &why) const {
    return Status::error("'" + std::string(text_) + "': " + why + " at column " + std::to_string(at_ + 1));
  }
  Status end() { return peek() == '\0' ? Status() : fail("unexpected text"); }

  StatusOr<std::string> name() {
    char first = peek();
    if (!std::isalpha(static_cast<unsigned char>(first)))
      return fail("expected a name");
    size_t begin = at_;
    while (at_ < text_.size() && (isNameChar(text_[at_]) || text_[at_] == '.'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // `a, b =`, or nothing when no assignment follows.
  StatusOr<std::vector<std::string>> targets() {
    size_t begin = at_;
    std::vector<std::string> names;
    do {
      StatusOr<std::string> target = name();
      if (!target.ok())
        break;
      names.push_back(std::move(*target));
    } while (take(","));
    skipSpace();
    if (!names.empty() && take("=") && text_.substr(at_, 1) != "=")
      return names;
    at_ = begin;
    return std::vector<std::string>();
  }

  template <typename... Operands> static Expression make(std::string op, Operands... operands) {
    Expression expression;
    expression.kind = Expression::Kind::Operator;
    expression.text = std::move(op);
    (expression.operands.push_back(std::move(operands)), ...);
    return expression;
  }

  StatusOr<Expression> disjunction() {
    LLMC_ASSIGN_OR_RETURN(Expression left, conjunction());
    while (takeWord("or")) {
      LLMC_ASSIGN_OR_RETURN(Expression right, conjunction());
      left = make("or", std::move(left), std::move(right));
    }
    return left;
  }

  StatusOr<Expression> conjunction() {
    LLMC_ASSIGN_OR_RETURN(Expression left, comparison());
    while (takeWord("and")) {
      LLMC_ASSIGN_OR_RETURN(Expression right, comparison());
      left = make("and", std::move(left), std::move(right));
    }
    return left;
  }

  StatusOr<Expression> comparison() {
    LLMC_ASSIGN_OR_RETURN(Expression left, sum());
    for (const char *op : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(op)) {
        LLMC_ASSIGN_OR_RETURN(Expression right, sum());
        return make(op, std::move(left), std::move(right));
      }
    return left;
  }

  StatusOr<Expression> sum() {
    LLMC_ASSIGN_OR_RETURN(Expression left, product());
    while (true) {
      std::string op = take("+") ? "+" : take("-") ? "-" : "";
      if (op.empty())
        return left;
      LLMC_ASSIGN_OR_RETURN(Expression right, product());
      left = make(op, std::move(left), std::move(right));
    }
  }

  StatusOr<Expression> product() {
    LLMC_ASSIGN_OR_RETURN(Expression left, primary());
    while (true) {
      std::string op = take("*") ? "*" : take("/") ? "/" : take("%") ? "%" : "";
      if (op.empty())
        return left;
      LLMC_ASSIGN_OR_RETURN(Expression right, primary());
      left = make(op, std::move(left), std::move(right));
    }
  }

  StatusOr<Expression> primary() {
    if (++nesting_ > maxNesting)
      return fail("nested deeper than " + std::to_string(maxNesting));
    if (++operands_ > maxOperands)
      return fail("more than " + std::to_string(maxOperands) + " operands");
    StatusOr<Expression> value = primaryUnchecked();
    --nesting_;
    return value;
  }

  StatusOr<Expression> primaryUnchecked() {
    char c = peek();
    if (take("(")) {
      LLMC_ASSIGN_OR_RETURN(Expression inner, disjunction());
      if (!take(")"))
        return fail("expected ')'");
      return inner;
    }
    if (take("-")) {
      LLMC_ASSIGN_OR_RETURN(Expression operand, primary());
      return make("neg", std::move(operand));
    }
    if (takeWord("not")) {
      LLMC_ASSIGN_OR_RETURN(Expression operand, comparison());
      return make("not", std::move(operand));
    }
    if (c == '\'')
      return word();
    if (std::isdigit(static_cast<unsigned char>(c)))
      return number();
    if (!std::isalpha(static_cast<unsigned char>(c)))
      return fail("expected a number, a name or a word in quotes");
    Expression expression;
    if (takeWord("false"))
      return expression;
    if (takeWord("true")) {
      expression.number = 1.0;
      return expression;
    }
    LLMC_ASSIGN_OR_RETURN(expression.text, name());
    expression.kind = Expression::Kind::Name;
    if (!take("("))
      return expression;
    expression.kind = Expression::Kind::Call;
    LLMC_RETURN_IF_ERROR(arguments(expression));
    return expression;
  }

  Status arguments(Expression &call) {
    bool first = true;
    while (!take(")")) {
      if (!first && !take(","))
        return fail("expected ',' or ')'");
      first = false;
      std::string key = argumentName();
      LLMC_ASSIGN_OR_RETURN(Expression value, disjunction());
      if (!key.empty()) {
        call.keys.push_back(std::move(key));
        call.named.push_back(std::move(value));
      } else if (call.named.empty())
        call.operands.push_back(std::move(value));
      else {
        return fail("an argument without a name follows one with a name");
      }
    }
    return {};
  }

  // `key:` before an argument, or empty.
  std::string argumentName() {
    size_t begin = at_;
    StatusOr<std::string> key = name();
    if (key.ok() && take(":"))
      return *key;
    at_ = begin;
    return "";
  }

  StatusOr<Expression> word() {
    size_t close = text_.find('\'', at_ + 1);
    if (close == std::string_view::npos)
      return fail("the word has no end");
    Expression expression;
    expression.kind = Expression::Kind::Word;
    expression.text = std::string(text_.substr(at_ + 1, close - at_ - 1));
    at_ = close + 1;
    return expression;
  }

  StatusOr<Expression> number() {
    std::string digits(text_.substr(at_, 64));
    char *after = nullptr;
    Expression expression;
    expression.number = std::strtod(digits.c_str(), &after);
    at_ += static_cast<size_t>(after - digits.c_str());
    return expression;
  }

  std::string_view text_;
  size_t at_ = 0;
  int nesting_ = 0, operands_ = 0;
};

void collectNames(const Expression &expression, std::vector<std::string> &names) {
  if (expression.kind == Expression::Kind::Name)
    names.push_back(expression.text);
  for (const Expression &operand : expression.operands)
    collectNames(operand, names);
  for (const Expression &argument : expression.named)
    collectNames(argument, names);
}

} // namespace

StatusOr<Expression> parseExpression(std::string_view text) { return Parser(text).wholeExpression(); }

StatusOr<Statement> parseStatement(std::string_view text) { return Parser(text).wholeStatement(); }

StatusOr<std::pair<std::string, std::vector<std::string>>> parseSignature(std::string_view text) {
  return Parser(text).wholeSignature();
}

std::vector<std::string> namesOf(const Expression &expression) {
  std::vector<std::string> names;
  collectNames(expression, names);
  return names;
}

} // namespace llmc
