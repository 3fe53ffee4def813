#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;

namespace {
std::string errorOf(const std::string &text) {
  StatusOr<Json> parsed = parseJson(text, "f.json");
  return parsed.ok() ? "" : parsed.status().message();
}
} // namespace

TEST(Json, KeepsTheOrderOfKeys) {
  StatusOr<Json> parsed = parseJson(R"({"b": 1, "a": [true, null, "x"]})", "f.json");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->dump(), R"({"b":1,"a":[true,null,"x"]})");
}

TEST(Json, DepthAtTheLimitAndOneAbove) {
  auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parseJson(nested(limits::jsonDepth), "f", JsonRoot::Any).ok());
  EXPECT_FALSE(parseJson(nested(limits::jsonDepth + 1), "f", JsonRoot::Any).ok());
  EXPECT_FALSE(parseJson(nested(1'000'000), "f", JsonRoot::Any).ok());
}

TEST(Json, RepeatedKeyIsNamed) {
  EXPECT_EQ(errorOf(R"({"a": {"b": 1, "b": 2}})"), "f.json: /a/b has the key 'b' twice");
}

TEST(Json, SyntaxErrorHasLineAndColumn) {
  EXPECT_NE(errorOf("{\n  \"a\": x}").find("line 2, column 8"), std::string::npos) << errorOf("{\n  \"a\": x}");
  EXPECT_NE(errorOf("{").find("ends too early"), std::string::npos);
  EXPECT_EQ(errorOf(""), "f.json: file is empty");
}

TEST(Json, BareInfinityAndNan) {
  StatusOr<Json> parsed = parseJson(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": "Infinity"})", "f.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ((*parsed)["a"].get<double>(), INFINITY);
  EXPECT_EQ((*parsed)["b"].get<double>(), -INFINITY);
  EXPECT_TRUE(std::isnan((*parsed)["c"].get<double>()));
  EXPECT_EQ((*parsed)["d"], "Infinity");
}

TEST(Json, InfinityAsTransformersWritesIt) {
  StatusOr<Json> parsed = parseJson(R"([{"__float__": "Infinity"}, {"__float__": "-Infinity"}, {"__float__": "NaN"},
                                        {"__float__": "1"}, {"__float__": "NaN", "a": 1}])",
                                    "f", JsonRoot::Any);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*asNumber((*parsed)[0], "/0"), INFINITY);
  EXPECT_EQ(*asNumber((*parsed)[1], "/1"), -INFINITY);
  EXPECT_TRUE(std::isnan(*asNumber((*parsed)[2], "/2")));
  EXPECT_EQ(asNumber((*parsed)[3], "/3").status().message(), "/3 is {\"__float__\":\"1\"}, expected a number");
  EXPECT_FALSE(asNumber((*parsed)[4], "/4").ok());
}

TEST(Json, IntegersAreChecked) {
  EXPECT_FALSE(asInteger(Json(1.5), "/n", 0, 10).ok());
  EXPECT_FALSE(asInteger(Json(11), "/n", 0, 10).ok());
  EXPECT_FALSE(asInteger(Json("3"), "/n", 0, 10).ok());
  EXPECT_EQ(*asInteger(Json(3.0), "/n", 0, 10), 3);
  EXPECT_EQ(asInteger(Json(-1), "/n", 0, 10).status().message(), "/n is -1, expected an integer from 0 to 10");
}

TEST(Json, RepeatedKeyIsNamedAfterOtherKeys) {
  EXPECT_EQ(errorOf(R"({"x": [0, {"b": 1, "c": 2, "a": 0, "c": 3, "b": 4}]})"), "f.json: /x/1/c has the key 'c' twice");
  EXPECT_EQ(parseJson(R"({"w": {}, "w": {}})", "f", JsonRoot::Object, "tensor").status().message(),
            "f: tensor 'w' appears twice in the header");
}

TEST(Json, DepthSaysWhere) {
  EXPECT_EQ(errorOf(std::string(100'000, '[')).substr(0, 48), "f.json: nested deeper than 64 at line 1, column ");
  EXPECT_NE(errorOf(std::string(100'000, '[')).find("column 65"), std::string::npos);
  // Brackets inside strings are text.
  EXPECT_TRUE(parseJson("[\"" + std::string(1000, '[') + "\"]", "f", JsonRoot::Any).ok());
}

TEST(Json, InvalidUtf8HasItsOffset) {
  EXPECT_NE(errorOf("{\"a\": \"\xFF\"}").find("f.json: not valid UTF-8 at byte 7 at line 1, column 8"),
            std::string::npos)
      << errorOf("{\"a\": \"\xFF\"}");
  EXPECT_FALSE(errorOf("{\"\xC0\x80\": 1}").empty()) << "overlong NUL";
  EXPECT_FALSE(errorOf("{\"\xED\xA0\x80\": 1}").empty()) << "surrogate";
  EXPECT_FALSE(errorOf("{\"a\": \"\\ud800\"}").empty()) << "escaped lone surrogate";
  EXPECT_NE(errorOf("\xEF\xBB\xBF{}").find("byte order mark"), std::string::npos);
}

TEST(Json, FindsInvalidUtf8) {
  EXPECT_EQ(findInvalidUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), std::nullopt);
  EXPECT_EQ(findInvalidUtf8("ab\x80"), 2u);
  EXPECT_EQ(findInvalidUtf8("ab\xE2\x82"), 2u) << "cut";
  EXPECT_EQ(findInvalidUtf8("\xE0\x80\x80"), 0u) << "overlong";
  EXPECT_EQ(findInvalidUtf8("\xF4\x90\x80\x80"), 0u) << "above U+10FFFF";
  EXPECT_EQ(findInvalidUtf8("\xF4\x8F\xBF\xBF"), std::nullopt) << "U+10FFFF";
}

TEST(Json, NulIsNotTheEnd) {
  EXPECT_NE(errorOf(std::string("{}\0{\"a\": 1}", 11)).find("NUL byte"), std::string::npos);
  EXPECT_NE(errorOf(std::string("{\"a\0\": 1}", 9)), "");
}

TEST(Json, TextAfterTheValueIsRefused) { EXPECT_NE(errorOf("{} PK").find("not valid JSON"), std::string::npos); }

TEST(Json, NumbersTooLargeForADouble) {
  EXPECT_NE(errorOf(R"({"a": {"b": 1e999}})").find("/a/b: number does not fit a double"), std::string::npos)
      << errorOf(R"({"a": {"b": 1e999}})");
}

// The numbers that stand in for NaN and Infinity are numbers when the file holds them.
TEST(Json, StandInsAreNoNames) {
  StatusOr<Json> parsed =
      parseJson("[1e1, NaN, 1e1, 1234.5e6, Infinity, -1234.5e6, 3, -Infinity, NaN]", "f", JsonRoot::Any);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ((*parsed)[0], 10.0);
  EXPECT_TRUE(std::isnan((*parsed)[1].get<double>()));
  EXPECT_EQ((*parsed)[2], 10.0);
  EXPECT_EQ((*parsed)[3], 1234.5e6);
  EXPECT_EQ((*parsed)[4], INFINITY);
  EXPECT_EQ((*parsed)[5], -1234.5e6);
  EXPECT_EQ((*parsed)[7], -INFINITY);
  EXPECT_TRUE(std::isnan((*parsed)[8].get<double>()));
  for (const char *text : {"[-NaN]", "[1NaN]", "[NaN1]", "[+Infinity]", "[Infinity2]", "[nan]", "[--Infinity]"})
    EXPECT_FALSE(parseJson(text, "f", JsonRoot::Any).ok()) << text;
}

TEST(Json, ValuesAtTheLimitAndOneAbove) {
  auto array = [](uint64_t values) { // the array counts too
    std::string text = "[";
    for (uint64_t i = 1; i < values; ++i)
      text += "0,";
    text.back() = ']';
    return text;
  };
  EXPECT_TRUE(parseJson(array(limits::jsonValues), "f", JsonRoot::Any).ok());
  EXPECT_EQ(parseJson(array(limits::jsonValues + 1), "f", JsonRoot::Any).status().message(),
            "f: more than 8388608 values");
}

// A megabyte of anything takes well under a second: what was quadratic would take minutes.
TEST(Json, MegabytesOfBadInputAreQuick) {
  constexpr size_t n = 1 << 20;
  std::string manyKeys = "{";
  for (int i = 0; i < 80'000; ++i)
    manyKeys += "\"k" + std::to_string(i) + "\":0,";
  std::vector<std::string> texts = {std::string(n, ' '),         std::string(n, '"'),   std::string(n, '\\'),
                                    "\"" + std::string(n, '\\'), std::string(n, '['),   std::string(n, '-'),
                                    std::string(n, '9'),         std::string(n, 'N'),   "[" + std::string(n, '\n'),
                                    manyKeys + "\"k0\":0}",      std::string(n, '\xFF')};
  std::string nans = "[";
  for (size_t i = 0; i < n / 4; ++i)
    nans += "NaN,";
  texts.push_back(nans);
  auto start = std::chrono::steady_clock::now();
  for (const std::string &text : texts)
    EXPECT_FALSE(parseJson(text, "f", JsonRoot::Any).ok());
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 10.0);
}

TEST(Json, UnsignedIsStrict) {
  EXPECT_EQ(*asUnsigned(Json(uint64_t{1} << 63), "/n", UINT64_MAX), uint64_t{1} << 63);
  EXPECT_EQ(asUnsigned(Json(5u), "/n", 4).status().message(), "/n is 5, expected an integer from 0 to 4");
  EXPECT_FALSE(asUnsigned(Json(-1), "/n", 4).ok());
  EXPECT_FALSE(asUnsigned(Json(2.0), "/n", 4).ok());
}

TEST(Json, BriefIsBrief) {
  EXPECT_EQ(brief(Json(std::nan(""))), "NaN");
  EXPECT_EQ(brief(Json(std::string(100, 'x'))).size(), 60u);
  EXPECT_EQ(brief(Json(std::vector<int>(1000))), "an array of 1000 values");
  EXPECT_EQ(brief(Json("\xFF")), "\"\\ufffd\"");
}

TEST(Json, NamesInMessagesArePrintable) {
  EXPECT_EQ(inQuotes("a\n\x1B[1m\xFF\xC3\xA9"), "'a\\x0a\\x1b[1m\\xff\xC3\xA9'");
  EXPECT_LT(inQuotes(std::string(1'000'000, 'a')).size(), 200u);
}
