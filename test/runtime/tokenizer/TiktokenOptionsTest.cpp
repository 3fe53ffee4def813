// What an artifact stores beside a file of ranks.
#include "runtime/tokenizer/TiktokenOptions.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::string errorOf(const std::string &json) {
  StatusOr<TiktokenOptions> options = tiktokenOptionsFromJson(json, "o.json");
  return options.ok() ? "" : options.status().message();
}

TEST(TiktokenOptions, ComeBackAsTheyWere) {
  TiktokenOptions options;
  options.pattern = "\\p{L}+|\"\u00e9";
  options.specials = {{"<a>", 7, true}, {"<b>", 9, false}};
  options.prefix = {"<b>", "<a>"};
  options.maxCharacters = 400'000;
  options.maxRunCharacters = 3;
  StatusOr<TiktokenOptions> back = tiktokenOptionsFromJson(tiktokenOptionsToJson(options), "o.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->pattern, options.pattern);
  ASSERT_EQ(back->specials.size(), 2u);
  EXPECT_EQ(back->specials[0].content, "<a>");
  EXPECT_EQ(back->specials[1].id, 9);
  EXPECT_FALSE(back->specials[1].special);
  EXPECT_EQ(back->prefix, options.prefix);
  EXPECT_EQ(back->maxCharacters, 400'000u);
  EXPECT_EQ(back->maxRunCharacters, 3u);
}

TEST(TiktokenOptions, Errors) {
  EXPECT_EQ(errorOf("{}"), "o.json: /pattern is missing");
  EXPECT_EQ(errorOf(R"({"pattern": 1})"), "o.json: /pattern is 1, expected a string");
  EXPECT_EQ(errorOf(R"({"pattern": "x", "specials": {}})"), "o.json: /specials is {}, expected a list");
  EXPECT_EQ(errorOf(R"({"pattern": "x", "specials": [{"id": 1}]})"),
            "o.json: /specials/0 is {\"id\":1}, expected an object with content and id");
  EXPECT_EQ(errorOf(R"({"pattern": "x", "specials": [{"id": -1, "content": "a"}]})"),
            "o.json: /specials/0/id is -1, expected an integer from 0 to 2147483647");
  EXPECT_EQ(errorOf(R"({"pattern": "x", "prefix": [3]})"), "o.json: /prefix/0 is 3, expected a string");
  EXPECT_EQ(errorOf(R"({"pattern": "x", "cut_characters": -1})"),
            "o.json: /cut_characters is -1, expected an integer from 0 to 2147483647");
}

TEST(TiktokenOptions, RanksAreKnownByTheirLook) {
  EXPECT_TRUE(looksLikeTiktoken("IQ== 0\nIg== 1\n"));
  EXPECT_TRUE(looksLikeTiktoken("IQ== 0\r\nIg== 1\r\n"));
  EXPECT_TRUE(looksLikeTiktoken("IQ== 0"));
  EXPECT_FALSE(looksLikeTiktoken(""));
  EXPECT_FALSE(looksLikeTiktoken("IQ==\n"));
  EXPECT_FALSE(looksLikeTiktoken("{\"version\": 1}\n"));
  EXPECT_FALSE(looksLikeTiktoken("\n\x0e\n\x05<unk>\x15 0"));
}

} // namespace
