// Texts in which no special token counts: how they come out of a rendering, and that nobody else makes one.
#include "runtime/template/ChatTemplate.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

ChatRequest one(Json message) {
  ChatRequest request;
  request.messages.push_back(std::move(message));
  return request;
}

// "text" or "[plain]", one after the other.
std::string partsOf(const std::string &source, const ChatRequest &request) {
  StatusOr<Template> parsed = Template::parse(source, "chat_template");
  if (!parsed.ok())
    return parsed.status().message();
  StatusOr<std::vector<ChatPart>> parts = renderChatParts(*parsed, request);
  if (!parts.ok())
    return parts.status().message();
  std::string out;
  for (const ChatPart &part : *parts)
    out += part.plain ? "[" + part.text + "]" : "'" + part.text + "'";
  return out;
}

TEST(PlainTextTest, EveryPlainTextIsAPart) {
  ChatRequest request = one({{"role", "user"}, {"content", "hi"}});
  EXPECT_EQ(partsOf("a{{ messages[0].content }}b", request), "'ahib'");
  EXPECT_EQ(partsOf("a{{ messages[0].content | plain }}b", request), "'a'[hi]'b'");
  EXPECT_EQ(partsOf("{{ 'x' | plain }}{{ 1 | plain }}{{ '' | plain }}", request), "[x][1]");
  EXPECT_EQ(*renderChat(*Template::parse("a{{ messages[0].content | plain }}b", "t"), request), "ahib");
}

TEST(PlainTextTest, MarksPassThroughMacrosBlocksAndJoins) {
  ChatRequest request = one({{"role", "user"}, {"content", "hi"}});
  EXPECT_EQ(partsOf("{% macro m(x) %}<{{ x | plain }}>{% endmacro %}{{ m('a') ~ m('b') }}", request),
            "'<'[a]'><'[b]'>'");
  EXPECT_EQ(partsOf("{% set s %}({{ 'a' | plain }}){% endset %}{{ s + '!' }}", request), "'('[a]')!'");
  EXPECT_EQ(partsOf("{{ ['a' | plain, 'b'] | join(',') }}", request), "[a]',b'");
  // Inside another one, a mark makes no part of its own.
  EXPECT_EQ(partsOf("{{ ('a' ~ ('b' | plain) ~ 'c') | plain }}", request), "[abc]");
}

TEST(PlainTextTest, ALostMarkIsAnError) {
  ChatRequest request = one({{"role", "user"}});
  EXPECT_EQ(partsOf("{{ ('abc' | plain)[:2] }}", request),
            "chat_template line 1: a text made by the filter 'plain' lost its end; apply the filter last");
  EXPECT_EQ(partsOf("{{ ('abc' | plain)[1:] }}", request),
            "chat_template line 1: a text made by the filter 'plain' lost its beginning; apply the filter last");
}

// The bytes of the marks cannot come from outside, where any bytes may.
TEST(PlainTextTest, TheRequestForgesNoMark) {
  ChatRequest request = one({{"role", "user"}, {"content", "a\xFF<s>\xFE"}});
  EXPECT_EQ(partsOf("{{ messages[0].content | plain }}.", request), "[a\xEF\xBF\xBD<s>\xEF\xBF\xBD]'.'");
}

TEST(PlainTextTest, TheLastTextGoesOnInsideAPlainPart) {
  ChatRequest request = one({{"role", "assistant"}, {"content", "Once "}});
  request.continueFinalMessage = true;
  EXPECT_EQ(partsOf("<{{ messages[0].content | plain }}>{{ 'x' | plain }}", request), "'<'[Once ]");
}

TEST(PlainTextTest, OtherSpansStayInPlace) {
  ChatRequest request = one({{"role", "user"}});
  std::vector<std::pair<size_t, size_t>> generated;
  request.render.generationSpans = &generated;
  const char *source = "{{ 'ab' | plain }}{% generation %}c{{ 'd' | plain }}{% endgeneration %}e";
  EXPECT_EQ(*renderChat(*Template::parse(source, "t"), request), "abcde");
  EXPECT_EQ(generated, (std::vector<std::pair<size_t, size_t>>{{2, 4}}));
}

} // namespace
