#include "lib/importer/Expression.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {
StatusOr<double> evaluate(std::string_view text) {
  return evaluateExpression(text, [](const std::string &name) -> StatusOr<double> {
    if (name == "heads")
      return 32.0;
    if (name == "hidden")
      return 4096.0;
    return Status::error("no value '" + name + "'");
  });
}
double valueOf(std::string_view text) {
  StatusOr<double> value = evaluate(text);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? *value : 0.0;
}
std::string errorOf(std::string_view text) {
  StatusOr<double> value = evaluate(text);
  return value.ok() ? "" : value.status().message();
}
} // namespace

TEST(Expression, Arithmetic) {
  EXPECT_EQ(valueOf("hidden / heads"), 128.0);
  EXPECT_EQ(valueOf("2 + 3 * 4"), 14.0);
  EXPECT_EQ(valueOf("(2 + 3) * -4"), -20.0);
  EXPECT_EQ(valueOf("8 - 2 - 1"), 5.0); // from the left
  EXPECT_EQ(valueOf("1 / sqrt(hidden)"), 1.0 / 64.0);
  EXPECT_EQ(valueOf("0.5 * 3"), 1.5);
  EXPECT_EQ(valueOf("if(heads == 32, 7, 9)"), 7.0);
  EXPECT_EQ(valueOf("if(heads == 31, 7, 9)"), 9.0);
}

TEST(Expression, ErrorsNameTheColumn) {
  EXPECT_EQ(errorOf("1 +"), "expression '1 +': expected a number or a name at column 4");
  EXPECT_EQ(errorOf("(1"), "expression '(1': expected ')' at column 3");
  EXPECT_EQ(errorOf("1 2"), "expression '1 2': unexpected text at column 3");
  EXPECT_EQ(errorOf("a = 1"), "no value 'a'");
  EXPECT_EQ(errorOf("1 = 1"), "expression '1 = 1': expected '==' at column 3");
  EXPECT_EQ(errorOf("cube(2)"),
            "expression 'cube(2)': unknown function 'cube' of 1 (known = sqrt(x), if(c, a, b)) at column 8");
  EXPECT_EQ(errorOf("1 / 0"), "expression '1 / 0' has no finite value");
  EXPECT_EQ(errorOf("sqrt(0 - 1)"), "expression 'sqrt(0 - 1)' has no finite value");
}

TEST(Expression, NestingIsBounded) {
  EXPECT_EQ(valueOf(std::string(30, '(') + "1" + std::string(30, ')')), 1.0);
  EXPECT_NE(errorOf(std::string(100'000, '(')).find("nested deeper than 32"), std::string::npos);
}

TEST(Expression, QuotientOfNames) {
  auto quotient = quotientOfNames("hidden / heads");
  ASSERT_TRUE(quotient.has_value());
  EXPECT_EQ(quotient->first, "hidden");
  EXPECT_EQ(quotient->second, "heads");
  EXPECT_FALSE(quotientOfNames("hidden / 2").has_value());
  EXPECT_FALSE(quotientOfNames("hidden / heads / heads").has_value());
}
