#include "lib/importer/Syntax.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

// A tree as text: operators and calls in brackets, so that it shows what binds to what.
std::string print(const Expression &expression) {
  using Kind = Expression::Kind;
  if (expression.kind == Kind::Number)
    return std::to_string(static_cast<int>(expression.number));
  if (expression.kind == Kind::Name)
    return expression.text;
  if (expression.kind == Kind::Word)
    return "'" + expression.text + "'";
  std::string text = "[" + expression.text;
  for (const Expression &operand : expression.operands)
    text += " " + print(operand);
  for (size_t i = 0; i < expression.named.size(); ++i)
    text += " " + expression.keys[i] + ":" + print(expression.named[i]);
  return text + "]";
}

std::string tree(std::string_view text) {
  StatusOr<Expression> expression = parseExpression(text);
  return expression.ok() ? print(*expression) : expression.status().message();
}

// "when condition: a, b = value; value"
std::string statement(std::string_view text) {
  StatusOr<Statement> parsed = parseStatement(text);
  if (!parsed.ok())
    return parsed.status().message();
  EXPECT_EQ(parsed->text, text);
  std::string result = parsed->condition ? "when " + print(*parsed->condition) + ": " : "";
  for (const std::string &target : parsed->targets)
    result += target + " ";
  result += parsed->targets.empty() ? "" : "= ";
  for (size_t i = 0; i < parsed->values.size(); ++i)
    result += (i ? "; " : "") + print(parsed->values[i]);
  return result;
}

std::string signature(std::string_view text) {
  StatusOr<std::pair<std::string, std::vector<std::string>>> parsed = parseSignature(text);
  if (!parsed.ok())
    return parsed.status().message();
  std::string result = parsed->first;
  for (const std::string &parameter : parsed->second)
    result += " " + parameter;
  return result;
}

} // namespace

TEST(Syntax, Precedence) {
  EXPECT_EQ(tree("1 + 2 * 3"), "[+ 1 [* 2 3]]");
  EXPECT_EQ(tree("(1 + 2) * 3"), "[* [+ 1 2] 3]");
  EXPECT_EQ(tree("8 - 2 - 1"), "[- [- 8 2] 1]") << "from the left";
  EXPECT_EQ(tree("a / b % c"), "[% [/ a b] c]");
  EXPECT_EQ(tree("-a * b"), "[* [neg a] b]");
  EXPECT_EQ(tree("a + 1 == b * 2"), "[== [+ a 1] [* b 2]]");
  EXPECT_EQ(tree("a <= 1 and b > 2 or c != 3"), "[or [and [<= a 1] [> b 2]] [!= c 3]]");
  EXPECT_EQ(tree("not a == b and c"), "[and [not [== a b]] c]");
  EXPECT_EQ(tree("not (a or b)"), "[not [or a b]]");
}

TEST(Syntax, NamesAndWords) {
  EXPECT_EQ(tree("attention.query_norm"), "attention.query_norm");
  EXPECT_EQ(tree("'sliding attention'"), "'sliding attention'");
  EXPECT_EQ(tree("''"), "''");
  EXPECT_EQ(tree("order + android + nothing"), "[+ [+ order android] nothing]") << "they begin like operators";
  EXPECT_EQ(parseExpression("1.5e-6")->number, 1.5e-6);
}

TEST(Syntax, Calls) {
  EXPECT_EQ(tree("f()"), "[f]");
  EXPECT_EQ(tree("linear(norm(x), mlp.up, 4 * hidden, bias: mlp_bias)"),
            "[linear [norm x] mlp.up [* 4 hidden] bias:mlp_bias]");
  EXPECT_EQ(tree("f(a: 1, b: g(2))"), "[f a:1 b:[g 2]]");
  EXPECT_EQ(tree("f(a, 'b', c == d)"), "[f a 'b' [== c d]]");
}

TEST(Syntax, NamesOfAnExpression) {
  EXPECT_EQ(namesOf(*parseExpression("f(a, k: b.c) + if(d > 1, 'word', a)")),
            (std::vector<std::string>{"a", "b.c", "d", "a"}))
      << "neither functions nor arguments nor words";
}

TEST(Syntax, Statements) {
  EXPECT_EQ(statement("h + 1"), "[+ h 1]");
  EXPECT_EQ(statement("x = norm(h)"), "x = [norm h]");
  EXPECT_EQ(statement("q, k = split(x)"), "q k = [split x]");
  EXPECT_EQ(statement("heads(q, 4), heads(k, 2)"), "[heads q 4]; [heads k 2]");
  EXPECT_EQ(statement("when rotated: q = turn(q)"), "when rotated: q = [turn q]");
  EXPECT_EQ(statement("when cap > 0 and not tied: f(x, c: cap)"), "when [and [> cap 0] [not tied]]: [f x c:cap]");
  EXPECT_EQ(statement("a == b"), "[== a b]") << "no assignment";
  EXPECT_EQ(statement("whenever = 1"), "whenever = 1") << "no condition";
}

TEST(Syntax, Signatures) {
  EXPECT_EQ(signature("begin()"), "begin");
  EXPECT_EQ(signature("attention(x, at)"), "attention x at");
  EXPECT_EQ(signature("layer"), "'layer': expected '(' at column 6");
  EXPECT_EQ(signature("layer(h"), "'layer(h': expected ',' or ')' at column 8");
  EXPECT_EQ(signature("layer(1)"), "'layer(1)': expected a name at column 7");
  EXPECT_EQ(signature("layer(h) x"), "'layer(h) x': unexpected text at column 10");
}

TEST(Syntax, ErrorsNameTheColumn) {
  EXPECT_EQ(tree(""), "'': expected a number, a name or a word in quotes at column 1");
  EXPECT_EQ(tree("1 +"), "'1 +': expected a number, a name or a word in quotes at column 4");
  EXPECT_EQ(tree("(1"), "'(1': expected ')' at column 3");
  EXPECT_EQ(tree("1 2"), "'1 2': unexpected text at column 3");
  EXPECT_EQ(tree("a = 1"), "'a = 1': unexpected text at column 3");
  EXPECT_EQ(tree("f(a b)"), "'f(a b)': expected ',' or ')' at column 5");
  EXPECT_EQ(tree("f(a: 1, 2)"), "'f(a: 1, 2)': an argument without a name follows one with a name at column 10");
  EXPECT_EQ(tree("'open"), "''open': the word has no end at column 1");
  EXPECT_EQ(statement("when a b = 1"), "'when a b = 1': expected ':' after the condition at column 8");
  EXPECT_EQ(statement("a = b, c"), "'a = b, c': unexpected text at column 6") << "one value for a name";
}

TEST(Syntax, NestingIsBounded) {
  EXPECT_EQ(tree(std::string(60, '(') + "1" + std::string(60, ')')), "1");
  for (const char *open : {"(", "-", "not ", "f("}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i)
      text += open;
    EXPECT_NE(tree(text).find("nested deeper than 64"), std::string::npos) << open;
  }
}

// A sum is a tree that leans to one side, as deep as it is long.
TEST(Syntax, LengthIsBounded) {
  std::string sum = "1", condition = "1";
  for (int i = 0; i < 100'000; ++i)
    sum += "+1", condition += " or 1";
  EXPECT_NE(tree(sum).find("more than 1024 operands"), std::string::npos);
  EXPECT_NE(tree(condition).find("more than 1024 operands"), std::string::npos);
}
