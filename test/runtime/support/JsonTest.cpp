#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
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

TEST(Json, RepeatedKeyIsNamed) { EXPECT_EQ(errorOf(R"({"a": {"b": 1, "b": 2}})"), "f.json: /a/b has the key 'b' twice"); }

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

TEST(Json, IntegersAreChecked) {
  EXPECT_FALSE(asInteger(Json(1.5), "/n", 0, 10).ok());
  EXPECT_FALSE(asInteger(Json(11), "/n", 0, 10).ok());
  EXPECT_FALSE(asInteger(Json("3"), "/n", 0, 10).ok());
  EXPECT_EQ(*asInteger(Json(3.0), "/n", 0, 10), 3);
  EXPECT_EQ(asInteger(Json(-1), "/n", 0, 10).status().message(), "/n is -1, expected an integer from 0 to 10");
}
