#include "lib/importer/Scalar.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

StatusOr<Scalar> evaluate(std::string_view text) {
  return evaluateScalar(text, [](const std::string &name) -> StatusOr<Scalar> {
    if (name == "heads")
      return Scalar::of(32.0);
    if (name == "hidden")
      return Scalar::of(4096.0);
    if (name == "pattern")
      return Scalar::of(std::string("LLLG"));
    if (name == "types")
      return Scalar::ofJson(Json::array({"conv", "full", "conv", "conv", "full"}), name);
    if (name == "widths")
      return Scalar::ofJson(Json::array({7, 8, true, nullptr}), name);
    return Status::error("no value '" + name + "'");
  });
}
double valueOf(std::string_view text) {
  StatusOr<Scalar> value = evaluate(text);
  EXPECT_TRUE(value.ok()) << value.status().message();
  EXPECT_TRUE(!value.ok() || value->kind == Scalar::Kind::Number) << value->print();
  return value.ok() ? value->number : 0.0;
}
std::string wordOf(std::string_view text) {
  StatusOr<Scalar> value = evaluate(text);
  EXPECT_TRUE(value.ok()) << value.status().message();
  EXPECT_TRUE(!value.ok() || value->kind == Scalar::Kind::Word) << value->print();
  return value.ok() ? value->word : "";
}
std::string errorOf(std::string_view text) {
  StatusOr<Scalar> value = evaluate(text);
  return value.ok() ? "" : value.status().message();
}

} // namespace

TEST(Scalar, Arithmetic) {
  EXPECT_EQ(valueOf("hidden / heads"), 128.0);
  EXPECT_EQ(valueOf("2 + 3 * 4"), 14.0);
  EXPECT_EQ(valueOf("(2 + 3) * -4"), -20.0);
  EXPECT_EQ(valueOf("8 - 2 - 1"), 5.0);
  EXPECT_EQ(valueOf("0.5 * 3"), 1.5);
  EXPECT_EQ(valueOf("7 % 4"), 3.0);
  EXPECT_EQ(valueOf("-1 % 4"), 3.0) << "of the next lower multiple";
}

TEST(Scalar, Comparisons) {
  EXPECT_EQ(valueOf("heads == 32"), 1.0);
  EXPECT_EQ(valueOf("heads != 32"), 0.0);
  EXPECT_EQ(valueOf("heads < 32"), 0.0);
  EXPECT_EQ(valueOf("heads <= 32"), 1.0);
  EXPECT_EQ(valueOf("heads > 31"), 1.0);
  EXPECT_EQ(valueOf("heads >= 33"), 0.0);
  EXPECT_EQ(valueOf("pattern == 'LLLG'"), 1.0);
  EXPECT_EQ(valueOf("pattern == 32"), 0.0) << "a word is no number";
}

TEST(Scalar, AndOrNotComputeWhatTheyNeed) {
  EXPECT_EQ(valueOf("heads and 5"), 1.0) << "flags are 0 and 1";
  EXPECT_EQ(valueOf("heads and 0"), 0.0);
  EXPECT_EQ(valueOf("0 or pattern"), 1.0) << "a word that is not empty";
  EXPECT_EQ(valueOf("not ''"), 1.0);
  EXPECT_EQ(valueOf("0 and nowhere"), 0.0);
  EXPECT_EQ(valueOf("1 or nowhere"), 1.0);
  EXPECT_EQ(errorOf("1 and nowhere"), "no value 'nowhere'");
}

TEST(Scalar, IfComputesOneSide) {
  EXPECT_EQ(valueOf("if(heads == 32, 7, nowhere)"), 7.0);
  EXPECT_EQ(valueOf("if(heads == 31, nowhere, 9)"), 9.0);
  EXPECT_EQ(wordOf("if(types, 'listed', '')"), "listed");
}

TEST(Scalar, Words) {
  EXPECT_EQ(wordOf("'full' + '_' + letter(pattern, 3)"), "full_G");
  EXPECT_EQ(valueOf("length(pattern)"), 4.0);
  EXPECT_EQ(valueOf("contains(pattern, 'LG')"), 1.0);
  EXPECT_EQ(valueOf("contains(pattern, 'GL')"), 0.0);
}

TEST(Scalar, Lists) {
  EXPECT_EQ(wordOf("at(types, 1)"), "full");
  EXPECT_EQ(valueOf("at(widths, 2)"), 1.0) << "true";
  EXPECT_EQ(valueOf("at(widths, 3)"), 0.0) << "null";
  EXPECT_EQ(valueOf("count(types, 'conv')"), 3.0);
  EXPECT_EQ(valueOf("count_before(types, 'conv', 3)"), 2.0) << "the index of layer 3 among its kind";
  EXPECT_EQ(valueOf("count_before(types, 'conv', 99)"), 3.0);
  EXPECT_EQ(valueOf("last_before(types, 'conv', 3)"), 2.0);
  EXPECT_EQ(valueOf("last_before(types, 'conv', 99)"), 3.0);
  EXPECT_EQ(valueOf("contains(types, 'full')"), 1.0);
  EXPECT_EQ(valueOf("contains(widths, 9)"), 0.0);
  EXPECT_EQ(valueOf("length(types)"), 5.0);
}

TEST(Scalar, Functions) {
  EXPECT_EQ(valueOf("1 / sqrt(hidden)"), 1.0 / 64.0);
  EXPECT_EQ(valueOf("log(exp(2))"), 2.0);
  EXPECT_EQ(valueOf("floor(2.7) + ceil(2.2)"), 5.0);
  EXPECT_EQ(valueOf("min(heads, 8)"), 8.0);
  EXPECT_EQ(valueOf("max(heads, 8)"), 32.0);
  EXPECT_EQ(valueOf("pow(2, -3)"), 0.125);
}

// Press et al. 2021: 2^(-8 i / n), and for other counts every second slope of twice the next lower power of two.
TEST(Scalar, AlibiSlopes) {
  Json eight = evaluate("alibi_slopes(8, 8)")->list;
  ASSERT_EQ(eight.size(), 8u);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(eight[static_cast<size_t>(i)], std::exp2(-1.0 - i));
  Json twelve = evaluate("alibi_slopes(12, 8)")->list;
  ASSERT_EQ(twelve.size(), 12u);
  EXPECT_EQ(twelve[7], std::exp2(-8.0));
  EXPECT_EQ(twelve[8], std::exp2(-0.5));
  EXPECT_EQ(twelve[11], std::exp2(-3.5));
  EXPECT_EQ(errorOf("alibi_slopes(0, 8)"), "alibi_slopes: 0 heads, expected 1 to 65536");
}

TEST(Scalar, Errors) {
  EXPECT_EQ(errorOf("cube(2)"),
            "no function 'cube' (known = if, alibi_slopes, at, ceil, contains, count, count_before, "
            "exp, floor, last_before, length, letter, log, max, min, pow, sqrt)");
  EXPECT_EQ(errorOf("1 / 0"), "1 / 0 has no value");
  EXPECT_EQ(errorOf("3 % 0"), "3 % 0 has no value");
  EXPECT_EQ(errorOf("1e300 * 1e300"), "1e+300 * 1e+300 has no finite value");
  EXPECT_EQ(errorOf("sqrt(0 - 1)"), "sqrt(-1) has no finite value");
  EXPECT_EQ(errorOf("pow(0, -1)"), "pow(0, -1) has no finite value");
  EXPECT_EQ(errorOf("min(1)"), "min takes 2 arguments, not 1");
  EXPECT_EQ(errorOf("pattern * 2"), "* takes numbers, not 'LLLG'");
  EXPECT_EQ(errorOf("'a' < 'b'"), "< takes numbers, not 'a'");
  EXPECT_EQ(errorOf("sqrt('a')"), "sqrt takes numbers, not 'a'");
  EXPECT_EQ(errorOf("at(types, 5)"), "at: entry 5 of a list of 5");
  EXPECT_EQ(errorOf("last_before(types, 'full', 1)"), "last_before: none of the first 1 entries of a list is 'full'");
  EXPECT_EQ(errorOf("at(types, -1)"), "at: entry -1 of a list of 5");
  EXPECT_EQ(errorOf("at(types, 0.5)"), "at takes a whole number, not 0.5");
  EXPECT_EQ(errorOf("at(heads, 0)"), "at takes a list, not 32");
  EXPECT_EQ(errorOf("letter(pattern, 4)"), "letter: number 4 of 'LLLG'");
  EXPECT_EQ(errorOf("length(3)"), "length takes a list, not 3");
  EXPECT_EQ(errorOf("1 +").substr(0, 7), "'1 +': ");
  EXPECT_EQ(Scalar::ofJson(Json::object(), "/rope").status().message(),
            "/rope is {}, expected a number, text or a list");
}

TEST(Scalar, Prints) {
  EXPECT_EQ(printNumber(64.0), "64");
  EXPECT_EQ(printNumber(0.08838834764831845), "0.08838834764831845");
  EXPECT_EQ(Scalar::of(std::string("L")).print(), "'L'");
  EXPECT_EQ(evaluate("widths")->print(), "[7,8,true,null]");
}

TEST(Scalar, QuotientOfNames) {
  auto quotient = quotientOfNames("hidden / heads");
  ASSERT_TRUE(quotient.has_value());
  EXPECT_EQ(quotient->first, "hidden");
  EXPECT_EQ(quotient->second, "heads");
  EXPECT_FALSE(quotientOfNames("hidden / 2").has_value());
  EXPECT_FALSE(quotientOfNames("hidden / heads / heads").has_value());
}

TEST(Scalar, ListsAreScaled) {
  EXPECT_EQ(valueOf("at(alibi_slopes(2, 8) * 4, 0)"), 0.25);
  EXPECT_EQ(errorOf("types * 2"), "\"conv\" of a list times 2 has no value");
}
