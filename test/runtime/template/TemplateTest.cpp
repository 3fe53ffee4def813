// The golden renderings: what Jinja itself gives for our templates, and what it refuses.
#include "runtime/support/File.h"
#include "runtime/template/ChatTemplate.h"
#include <gtest/gtest.h>
#include <sstream>

using namespace llmc;

namespace {

std::string golden(const std::string &file) {
  StatusOr<std::string> text = readFile(std::string(LLMC_TEST_DATA) + "/golden/" + file, 1 << 20);
  EXPECT_TRUE(text.ok()) << file;
  return text.ok() ? *text : "";
}

std::vector<Json> goldenLines(const std::string &file) {
  std::vector<Json> lines;
  std::istringstream in(golden(file));
  for (std::string line; std::getline(in, line);) {
    StatusOr<Json> json = parseJson(line, file);
    EXPECT_TRUE(json.ok()) << json.status().message();
    if (json.ok())
      lines.push_back(*json);
  }
  EXPECT_FALSE(lines.empty()) << file;
  return lines;
}

Json take(Json &object, const char *key, Json fallback) {
  auto found = object.find(key);
  if (found == object.end())
    return fallback;
  Json value = *found;
  object.erase(found);
  return value;
}

// 2026-03-05 07:08:09, the clock of the golden data.
std::tm goldenClock() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 2;
  now.tm_mday = 5;
  now.tm_hour = 7;
  now.tm_min = 8;
  now.tm_sec = 9;
  return now;
}

// A case of cases.jsonl: the keys we do not know are variables of the template.
void checkCase(Json line) {
  std::string file = take(line, "template", "").get<std::string>();
  SCOPED_TRACE(file + " " + take(line, "case", "").get<std::string>());
  ChatRequest request;
  request.messages = take(line, "messages", Json::array());
  request.tools = take(line, "tools", nullptr);
  request.documents = take(line, "documents", nullptr);
  request.addGenerationPrompt = take(line, "add_generation_prompt", false).get<bool>();
  request.continueFinalMessage = take(line, "continue_final_message", false).get<bool>();
  Json tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}, {"unk_token", "<unk>"}};
  request.specialTokens = take(line, "special_tokens", tokens);
  Json expected = take(line, "expected", nullptr), error = take(line, "error", nullptr);
  Json spans = take(line, "generation_spans", nullptr);
  request.variables = line;
  request.render.now = goldenClock();
  std::vector<std::pair<size_t, size_t>> foundSpans;
  request.render.generationSpans = &foundSpans;

  StatusOr<Template> chatTemplate = Template::parse(golden(file), "chat_template");
  ASSERT_TRUE(chatTemplate.ok()) << chatTemplate.status().message();
  StatusOr<std::string> text = renderChat(*chatTemplate, request);
  if (!error.is_null()) {
    ASSERT_FALSE(text.ok()) << *text;
    if (error["type"] == "TemplateError")
      EXPECT_EQ(text.status().message(), error["message"].get<std::string>());
    return;
  }
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, expected.get<std::string>());
  if (!spans.is_null())
    EXPECT_EQ(Json(foundSpans), spans);
}

TEST(TemplateTest, RendersTheGoldenCases) {
  for (const Json &line : goldenLines("cases.jsonl"))
    checkCase(line);
}

TEST(TemplateTest, AcceptsAndRefusesTheGoldenSyntax) {
  for (const Json &line : goldenLines("syntax.jsonl")) {
    std::string source = line["source"].get<std::string>();
    SCOPED_TRACE(source);
    StatusOr<Template> parsed = Template::parse(source, "chat_template");
    StatusOr<std::string> text = parsed.ok() ? parsed->render(Json::object()) : StatusOr<std::string>(parsed.status());
    if (line.contains("error")) {
      EXPECT_FALSE(text.ok()) << *text;
      continue;
    }
    EXPECT_TRUE(text.ok()) << text.status().message();
    if (text.ok())
      EXPECT_EQ(*text, line["expected"].get<std::string>());
  }
}

std::string failure(const std::string &source) {
  StatusOr<Template> parsed = Template::parse(source, "chat_template");
  if (!parsed.ok())
    return parsed.status().message();
  StatusOr<std::string> text = parsed->render(Json::object());
  return text.ok() ? "rendered '" + *text + "'" : text.status().message();
}

TEST(TemplateTest, MessagesNameTheLineAndTheCause) {
  EXPECT_EQ(failure("a\n{{ ''.__class__.__mro__ }}"), "chat_template line 2: no attribute '__class__'");
  EXPECT_EQ(failure("{{ x | nofilter }}"), "chat_template line 1: no filter named 'nofilter'");
  EXPECT_EQ(failure("\n\n{{ 'a' is notest }}"), "chat_template line 3: no test named 'notest'");
  EXPECT_EQ(failure("{% if true %}\n{{ 1 | nofilter }}{% endif %}"),
            "chat_template line 2: no filter named 'nofilter'");
  EXPECT_EQ(failure("\n{% if x %}"), "chat_template line 2: the block 'if' of line 2 is not closed; expected 'endif'");
  EXPECT_EQ(failure("{{ missing.field }}"), "chat_template line 1: 'missing' is undefined");
  EXPECT_EQ(failure("{{ [].append(1) }}"), "chat_template line 1: 'append' would change a list, which a template may "
                                           "not; build a new one with + instead");
  EXPECT_EQ(failure("{{ raise_exception('as it is') }}"), "as it is");
  EXPECT_EQ(failure("{{ 2 ** 200 }}"), "chat_template line 1: the result of '**' does not fit a 128-bit integer");
  EXPECT_EQ(failure("{% do x %}"), "chat_template line 1: unknown tag 'do'");
  EXPECT_EQ(failure("{% include 'x' %}"),
            "chat_template line 1: 'include' needs another template, and a chat template stands alone");
  EXPECT_EQ(failure("a\xFF"), "chat_template: byte 1 is not valid UTF-8");
}

} // namespace
