// Expressions, with Jinja's precedence: not Python's around "~", unary minus and "**".
#include "runtime/template/Parser.h"
#include "runtime/template/Runtime.h"
#include <algorithm>

namespace llmc::jinja {

Status ExpressionParser::Nested::check() const {
  return depth_ <= maxSyntaxDepth
             ? Status()
             : Status::error("expressions or blocks nest deeper than " + std::to_string(maxSyntaxDepth));
}

bool ExpressionParser::skipOperator(std::string_view op) {
  if (!isOperator(op))
    return false;
  take();
  return true;
}

bool ExpressionParser::skipName(std::string_view name) {
  if (!isName(name))
    return false;
  take();
  return true;
}

Status ExpressionParser::expectOperator(std::string_view op) {
  if (skipOperator(op))
    return Status();
  return Status::error("expected '" + std::string(op) + "', got " + describe(current()));
}

StatusOr<std::string> ExpressionParser::expectName() {
  if (current().kind != TokenKind::Name)
    return Status::error("expected a name, got " + describe(current()));
  return take().text;
}

Status ExpressionParser::unexpected() const { return Status::error("unexpected " + describe(current())); }

ExpressionPtr ExpressionParser::make(Expression::Kind kind, ExpressionPtr first) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = first ? first->line : current().line;
  if (first)
    node->operands.push_back(std::move(first));
  return node;
}

ExpressionParser::Parsed ExpressionParser::finish(ExpressionPtr node) {
  int deepest = 0;
  auto look = [&](const ExpressionPtr &e) { deepest = std::max(deepest, e ? e->depth : 0); };
  for (const ExpressionPtr &e : node->operands)
    look(e);
  for (const ExpressionPtr &e : node->arguments.positional)
    look(e);
  for (const auto &[name, e] : node->arguments.keyword)
    look(e);
  look(node->arguments.listed);
  look(node->arguments.mapped);
  node->depth = deepest + 1;
  if (node->depth > maxSyntaxDepth)
    return Status::error("expressions nest deeper than " + std::to_string(maxSyntaxDepth));
  return node;
}

bool ExpressionParser::atTupleEnd() const {
  return current().kind == TokenKind::VariableEnd || current().kind == TokenKind::BlockEnd || isOperator(")") ||
         isName("recursive");
}

ExpressionParser::Parsed ExpressionParser::parseTuple(Conditionals conditionals, bool parenthesized) {
  ExpressionPtr tuple = make(Expression::Kind::Tuple);
  bool isTuple = false;
  while (!atTupleEnd()) {
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr item, parseExpression(conditionals));
    tuple->operands.push_back(std::move(item));
    if (!skipOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && tuple->operands.size() == 1)
    return std::move(tuple->operands[0]);
  // Nothing at all is a tuple only between parentheses.
  if (tuple->operands.empty() && !parenthesized)
    return Status::error("expected an expression, got " + describe(current()));
  return finish(std::move(tuple));
}

ExpressionParser::Parsed ExpressionParser::parseExpression(Conditionals conditionals) {
  Nested nested(depth_);
  LLMC_RETURN_IF_ERROR(nested.check());
  return conditionals == Conditionals::Allowed ? parseConditional() : parseOr();
}

ExpressionParser::Parsed ExpressionParser::parseConditional() {
  bool outerSoft = soft_;
  size_t unknownBefore = unknown_.size();
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr value, parseOr());
  // None of the three parts needs to be reached, so none of their filters needs to exist.
  if (isName("if"))
    unknown_.resize(unknownBefore);
  while (skipName("if")) {
    soft_ = true;
    ExpressionPtr node = make(Expression::Kind::Conditional, std::move(value));
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr condition, parseOr());
    node->operands.push_back(std::move(condition));
    ExpressionPtr otherwise;
    if (skipName("else")) {
      LLMC_ASSIGN_OR_RETURN(otherwise, parseExpression());
    }
    node->operands.push_back(std::move(otherwise));
    soft_ = outerSoft;
    LLMC_ASSIGN_OR_RETURN(value, finish(std::move(node)));
  }
  return value;
}

ExpressionParser::Parsed ExpressionParser::parseChain(Expression::Kind kind, ParseFunction operand,
                                                      std::string_view separator) {
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr first, (this->*operand)());
  ExpressionPtr node;
  while (isName(separator) || isOperator(separator)) {
    take();
    if (!node)
      node = make(kind, std::move(first));
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr next, (this->*operand)());
    node->operands.push_back(std::move(next));
  }
  return node ? finish(std::move(node)) : Parsed(std::move(first));
}

ExpressionParser::Parsed ExpressionParser::parseOr() {
  return parseChain(Expression::Kind::Or, &ExpressionParser::parseAnd, "or");
}
ExpressionParser::Parsed ExpressionParser::parseAnd() {
  return parseChain(Expression::Kind::And, &ExpressionParser::parseNot, "and");
}
ExpressionParser::Parsed ExpressionParser::parseConcat() {
  return parseChain(Expression::Kind::Concat, &ExpressionParser::parseProduct, "~");
}

ExpressionParser::Parsed ExpressionParser::parseNot() {
  if (!isName("not"))
    return parseCompare();
  Nested nested(depth_);
  LLMC_RETURN_IF_ERROR(nested.check());
  take();
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr operand, parseNot());
  return finish(make(Expression::Kind::Not, std::move(operand)));
}

ExpressionParser::Parsed ExpressionParser::parseCompare() {
  static const std::pair<const char *, CompareOp> operators[] = {
      {"==", CompareOp::Equal},     {"!=", CompareOp::NotEqual}, {"<", CompareOp::Less},
      {"<=", CompareOp::LessEqual}, {">", CompareOp::Greater},   {">=", CompareOp::GreaterEqual}};
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr first, parseSum());
  ExpressionPtr node;
  for (;;) {
    std::optional<CompareOp> op;
    for (const auto &[spelling, candidate] : operators)
      if (isOperator(spelling))
        op = candidate;
    if (isName("in"))
      op = CompareOp::In;
    if (isName("not") && ahead().kind == TokenKind::Name && ahead().text == "in") {
      op = CompareOp::NotIn;
      take();
    }
    if (!op)
      return node ? finish(std::move(node)) : Parsed(std::move(first));
    take();
    if (!node)
      node = make(Expression::Kind::Compare, std::move(first));
    node->comparisons.push_back(*op);
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr next, parseSum());
    node->operands.push_back(std::move(next));
  }
}

namespace {
using Spelling = std::pair<const char *, BinaryOp>;
constexpr Spelling sums[] = {{"+", BinaryOp::Add}, {"-", BinaryOp::Subtract}};
constexpr Spelling products[] = {
    {"*", BinaryOp::Multiply}, {"/", BinaryOp::Divide}, {"//", BinaryOp::FloorDivide}, {"%", BinaryOp::Modulo}};
} // namespace

ExpressionParser::Parsed ExpressionParser::parseSum() {
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr first, parseConcat());
  ExpressionPtr node;
  while (isOperator("+") || isOperator("-")) {
    if (!node)
      node = make(Expression::Kind::Arithmetic, std::move(first));
    std::string op = take().text;
    for (const auto &[spelling, binary] : sums)
      if (op == spelling)
        node->operators.push_back(binary);
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr next, parseConcat());
    node->operands.push_back(std::move(next));
  }
  return node ? finish(std::move(node)) : Parsed(std::move(first));
}

ExpressionParser::Parsed ExpressionParser::parseProduct() {
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr first, parsePower());
  ExpressionPtr node;
  while (isOperator("*") || isOperator("/") || isOperator("//") || isOperator("%")) {
    if (!node)
      node = make(Expression::Kind::Arithmetic, std::move(first));
    std::string op = take().text;
    for (const auto &[spelling, binary] : products)
      if (op == spelling)
        node->operators.push_back(binary);
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr next, parsePower());
    node->operands.push_back(std::move(next));
  }
  return node ? finish(std::move(node)) : Parsed(std::move(first));
}

ExpressionParser::Parsed ExpressionParser::parsePower() {
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr first, parseUnary(/*withFilters=*/true));
  ExpressionPtr node;
  while (skipOperator("**")) {
    if (!node)
      node = make(Expression::Kind::Arithmetic, std::move(first));
    node->operators.push_back(BinaryOp::Power);
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr next, parseUnary(/*withFilters=*/true));
    node->operands.push_back(std::move(next));
  }
  return node ? finish(std::move(node)) : Parsed(std::move(first));
}

ExpressionParser::Parsed ExpressionParser::parseUnary(bool withFilters) {
  ExpressionPtr node;
  if (isOperator("-") || isOperator("+")) {
    Nested nested(depth_);
    LLMC_RETURN_IF_ERROR(nested.check());
    bool minus = take().text == "-";
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr operand, parseUnary(/*withFilters=*/false));
    LLMC_ASSIGN_OR_RETURN(node,
                          finish(make(minus ? Expression::Kind::Negate : Expression::Kind::Plus, std::move(operand))));
  } else {
    LLMC_ASSIGN_OR_RETURN(node, parsePrimary());
  }
  LLMC_ASSIGN_OR_RETURN(node, parsePostfix(std::move(node)));
  if (withFilters)
    return parseFilters(std::move(node), /*first=*/false);
  return node;
}

ExpressionParser::Parsed ExpressionParser::parsePrimary() {
  ExpressionPtr node = make(Expression::Kind::Constant);
  switch (current().kind) {
  case TokenKind::Name:
    return parseName();
  case TokenKind::String: {
    std::string text = take().text;
    while (current().kind == TokenKind::String)
      text += take().text;
    node->constant = Value::string(std::move(text));
    return node;
  }
  case TokenKind::Integer:
    node->constant = Value::integer(take().integer);
    return node;
  case TokenKind::Float:
    node->constant = Value::real(take().real);
    return node;
  default:
    break;
  }
  if (skipOperator("(")) {
    LLMC_ASSIGN_OR_RETURN(node, parseTuple(Conditionals::Allowed, /*parenthesized=*/true));
    LLMC_RETURN_IF_ERROR(expectOperator(")"));
    return node;
  }
  if (isOperator("["))
    return parseList();
  if (isOperator("{"))
    return parseDict();
  return unexpected();
}

ExpressionParser::Parsed ExpressionParser::parseName() {
  ExpressionPtr node = make(Expression::Kind::Constant);
  std::string name = take().text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    node->constant = Value::boolean((name[0] | 32) == 't');
    return node;
  }
  if (name == "none" || name == "None") {
    node->constant = Value::none();
    return node;
  }
  for (MacroSignature *macro : macros_) {
    macro->usesCaller |= name == "caller";
    macro->usesVarargs |= name == "varargs";
    macro->usesKwargs |= name == "kwargs";
  }
  node->kind = Expression::Kind::Name;
  node->name = std::move(name);
  return node;
}

ExpressionParser::Parsed ExpressionParser::parseList() {
  ExpressionPtr list = make(Expression::Kind::List);
  take();
  while (!isOperator("]")) {
    if (!list->operands.empty()) {
      LLMC_RETURN_IF_ERROR(expectOperator(","));
      if (isOperator("]"))
        break;
    }
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr item, parseExpression());
    list->operands.push_back(std::move(item));
  }
  take();
  return finish(std::move(list));
}

ExpressionParser::Parsed ExpressionParser::parseDict() {
  ExpressionPtr dict = make(Expression::Kind::Dict);
  take();
  while (!isOperator("}")) {
    if (!dict->operands.empty()) {
      LLMC_RETURN_IF_ERROR(expectOperator(","));
      if (isOperator("}"))
        break;
    }
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr key, parseExpression());
    LLMC_RETURN_IF_ERROR(expectOperator(":"));
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
    dict->operands.push_back(std::move(key));
    dict->operands.push_back(std::move(value));
  }
  take();
  return finish(std::move(dict));
}

ExpressionParser::Parsed ExpressionParser::parsePostfix(ExpressionPtr operand) {
  for (;;) {
    if (isOperator(".") || isOperator("[")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseSubscript(std::move(operand)));
    } else if (isOperator("(")) {
      ExpressionPtr call = make(Expression::Kind::Call, std::move(operand));
      call->line = current().line;
      LLMC_RETURN_IF_ERROR(parseCallArguments(call->arguments));
      LLMC_ASSIGN_OR_RETURN(operand, finish(std::move(call)));
    } else {
      return operand;
    }
  }
}

ExpressionParser::Parsed ExpressionParser::parseSubscript(ExpressionPtr operand) {
  int line = current().line;
  if (skipOperator(".")) {
    if (current().kind == TokenKind::Integer) {
      ExpressionPtr index = make(Expression::Kind::Constant);
      index->constant = Value::integer(take().integer);
      ExpressionPtr item = make(Expression::Kind::Item, std::move(operand));
      item->operands.push_back(std::move(index));
      return finish(std::move(item));
    }
    if (current().kind != TokenKind::Name)
      return Status::error("expected a name or a number after '.', got " + describe(current()));
    ExpressionPtr attribute = make(Expression::Kind::Attribute, std::move(operand));
    attribute->line = line;
    attribute->name = take().text;
    return finish(std::move(attribute));
  }
  take(); // [
  std::vector<ExpressionPtr> parts;
  bool isSlice = false;
  do {
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr part, parseSubscriptPart(operand, isSlice));
    parts.push_back(std::move(part));
    if (isSlice)
      break;
  } while (skipOperator(","));
  LLMC_RETURN_IF_ERROR(expectOperator("]"));
  if (isSlice && parts.size() == 1)
    return std::move(parts[0]);
  if (isSlice)
    return Status::error("a slice cannot stand among several indices");
  ExpressionPtr item = make(Expression::Kind::Item, std::move(operand));
  item->line = line;
  if (parts.size() == 1) {
    item->operands.push_back(std::move(parts[0]));
  } else {
    ExpressionPtr tuple = make(Expression::Kind::Tuple);
    tuple->operands = std::move(parts);
    LLMC_ASSIGN_OR_RETURN(tuple, finish(std::move(tuple)));
    item->operands.push_back(std::move(tuple));
  }
  return finish(std::move(item));
}

// An index, or a whole slice node that has taken `operand` over.
ExpressionParser::Parsed ExpressionParser::parseSubscriptPart(ExpressionPtr &operand, bool &isSlice) {
  ExpressionPtr first;
  if (!isOperator(":")) {
    LLMC_ASSIGN_OR_RETURN(first, parseExpression());
    if (!isOperator(":"))
      return first;
  }
  isSlice = true;
  ExpressionPtr slice = make(Expression::Kind::Slice, std::move(operand));
  slice->operands.push_back(std::move(first));
  for (int i = 0; i < 2; ++i) {
    ExpressionPtr bound;
    if (skipOperator(":") && !isOperator(":") && !isOperator("]") && !isOperator(",")) {
      LLMC_ASSIGN_OR_RETURN(bound, parseExpression());
    }
    slice->operands.push_back(std::move(bound));
  }
  return finish(std::move(slice));
}

Status ExpressionParser::parseCallArguments(CallArguments &arguments) {
  LLMC_RETURN_IF_ERROR(expectOperator("("));
  for (bool first = true; !isOperator(")"); first = false) {
    if (!first) {
      LLMC_RETURN_IF_ERROR(expectOperator(","));
      if (isOperator(")"))
        break;
    }
    bool hasStar = arguments.listed || arguments.mapped;
    if (isOperator("*") && !hasStar) {
      take();
      LLMC_ASSIGN_OR_RETURN(arguments.listed, parseExpression());
    } else if (isOperator("**") && !arguments.mapped) {
      take();
      LLMC_ASSIGN_OR_RETURN(arguments.mapped, parseExpression());
    } else if (current().kind == TokenKind::Name && ahead().kind == TokenKind::Operator && ahead().text == "=" &&
               !arguments.mapped) {
      std::string name = take().text;
      take();
      LLMC_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
      for (const auto &[given, e] : arguments.keyword)
        if (given == name)
          return Status::error("keyword argument repeated: " + name);
      arguments.keyword.emplace_back(std::move(name), std::move(value));
    } else if (!hasStar && arguments.keyword.empty()) {
      LLMC_ASSIGN_OR_RETURN(ExpressionPtr value, parseExpression());
      arguments.positional.push_back(std::move(value));
    } else {
      return Status::error("invalid syntax for function call expression");
    }
  }
  return expectOperator(")");
}

StatusOr<std::string> ExpressionParser::parseDottedName() {
  LLMC_ASSIGN_OR_RETURN(std::string name, expectName());
  while (skipOperator(".")) {
    LLMC_ASSIGN_OR_RETURN(std::string part, expectName());
    name += "." + part;
  }
  return name;
}

ExpressionParser::Parsed ExpressionParser::parseFilters(ExpressionPtr operand, bool first) {
  for (;; first = false) {
    if (first || skipOperator("|")) {
      bool isBlock = first && !operand;
      ExpressionPtr filter = make(Expression::Kind::Filter, std::move(operand));
      if (isBlock)
        filter->operands.push_back(nullptr);
      filter->line = current().line;
      LLMC_ASSIGN_OR_RETURN(filter->name, parseDottedName());
      if (!soft_ && !findFilter(filter->name))
        unknown_.push_back("line " + std::to_string(filter->line) + ": no filter named '" + filter->name + "'");
      if (isOperator("(")) {
        LLMC_RETURN_IF_ERROR(parseCallArguments(filter->arguments));
      }
      LLMC_ASSIGN_OR_RETURN(operand, finish(std::move(filter)));
    } else if (isName("is")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseTest(std::move(operand)));
    } else if (isOperator("(")) {
      ExpressionPtr call = make(Expression::Kind::Call, std::move(operand));
      LLMC_RETURN_IF_ERROR(parseCallArguments(call->arguments));
      LLMC_ASSIGN_OR_RETURN(operand, finish(std::move(call)));
    } else {
      return operand;
    }
  }
}

bool ExpressionParser::startsTestArgument() const {
  switch (current().kind) {
  case TokenKind::Name:
    return !isName("else") && !isName("or") && !isName("and");
  case TokenKind::String:
  case TokenKind::Integer:
  case TokenKind::Float:
    return true;
  default:
    return isOperator("[") || isOperator("{");
  }
}

ExpressionParser::Parsed ExpressionParser::parseTest(ExpressionPtr operand) {
  ExpressionPtr test = make(Expression::Kind::Test, std::move(operand));
  test->line = current().line;
  take(); // is
  bool negated = skipName("not");
  LLMC_ASSIGN_OR_RETURN(test->name, parseDottedName());
  if (!soft_ && !findPredicate(test->name))
    unknown_.push_back("line " + std::to_string(test->line) + ": no test named '" + test->name + "'");
  if (isOperator("(")) {
    LLMC_RETURN_IF_ERROR(parseCallArguments(test->arguments));
  } else if (startsTestArgument()) {
    if (isName("is"))
      return Status::error("tests cannot be chained with 'is'");
    LLMC_ASSIGN_OR_RETURN(ExpressionPtr argument, parsePrimary());
    LLMC_ASSIGN_OR_RETURN(argument, parsePostfix(std::move(argument)));
    test->arguments.positional.push_back(std::move(argument));
  }
  LLMC_ASSIGN_OR_RETURN(ExpressionPtr done, finish(std::move(test)));
  if (!negated)
    return done;
  return finish(make(Expression::Kind::Not, std::move(done)));
}

} // namespace llmc::jinja
