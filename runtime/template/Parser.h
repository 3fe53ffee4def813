// From tokens to the tree. Recursion is bounded: what nests deeper than maxSyntaxDepth is an error.
#pragma once
#include "runtime/template/Ast.h"
#include "runtime/template/Lexer.h"
#include <algorithm>

namespace llmc::jinja {

// The failure's message starts with "line N: ".
StatusOr<std::shared_ptr<const Ast>> parseTemplate(std::string_view source);

// The part of the parser that reads expressions; statements (Parser.cpp) build on it.
class ExpressionParser {
protected:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  using Parsed = StatusOr<ExpressionPtr>;

  const Token &current() const { return tokens_[next_]; }
  const Token &ahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  Token take() { return next_ + 1 < tokens_.size() ? tokens_[next_++] : tokens_[next_]; }
  bool isOperator(std::string_view op) const { return current().kind == TokenKind::Operator && current().text == op; }
  bool isName(std::string_view name) const { return current().kind == TokenKind::Name && current().text == name; }
  bool skipOperator(std::string_view op);
  bool skipName(std::string_view name);
  Status expectOperator(std::string_view op);
  StatusOr<std::string> expectName();
  Status unexpected() const;

  enum class Conditionals { Allowed, Excluded };
  Parsed parseExpression(Conditionals conditionals = Conditionals::Allowed);
  Parsed parseTuple(Conditionals conditionals = Conditionals::Allowed, bool parenthesized = false);
  // Filters, tests and calls after `operand`; for a filter block, `operand` is null and the pipe is already read.
  Parsed parseFilters(ExpressionPtr operand, bool first);
  Parsed parsePostfix(ExpressionPtr operand);
  Status parseCallArguments(CallArguments &arguments);

  // Counts one level of nesting for as long as it lives.
  class Nested {
  public:
    explicit Nested(int &depth) : depth_(depth) { ++depth_; }
    ~Nested() { --depth_; }
    Status check() const;

  private:
    int &depth_;
  };
  int depth_ = 0;
  // Inside an if, an unknown filter or test is an error only when it is reached.
  bool soft_ = false;
  // Messages about the others, in order.
  std::vector<std::string> unknown_;
  // The macros around, whose use of caller, varargs and kwargs must be known.
  std::vector<MacroSignature *> macros_;

private:
  Parsed parseConditional();
  Parsed parseOr();
  Parsed parseAnd();
  Parsed parseNot();
  Parsed parseCompare();
  Parsed parseSum();
  Parsed parseConcat();
  Parsed parseProduct();
  Parsed parsePower();
  Parsed parseUnary(bool withFilters);
  Parsed parsePrimary();
  Parsed parseName();
  Parsed parseList();
  Parsed parseDict();
  Parsed parseSubscript(ExpressionPtr operand);
  Parsed parseSubscriptPart(ExpressionPtr &operand, bool &isSlice);
  Parsed parseTest(ExpressionPtr operand);
  using ParseFunction = Parsed (ExpressionParser::*)();
  Parsed parseChain(Expression::Kind kind, ParseFunction operand, std::string_view separator);
  bool atTupleEnd() const;
  bool startsTestArgument() const;
  StatusOr<std::string> parseDottedName();
  // The node with its depth set from its operands; an error when it is too deep.
  Parsed finish(ExpressionPtr node);
  ExpressionPtr make(Expression::Kind kind, ExpressionPtr first = nullptr) const;

  std::vector<Token> tokens_;
  size_t next_ = 0;
};

} // namespace llmc::jinja
