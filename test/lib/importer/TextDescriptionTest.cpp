// The files of models/text/, and those that are none.
#include "lib/importer/TextDescription.h"
#include "runtime/template/Template.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::string errorOf(const std::string &json) {
  test::TemporaryFolder folder;
  folder.write("text/x.json", json);
  StatusOr<TextDescriptions> texts = TextDescriptions::load(folder.path());
  return texts.ok() ? "" : texts.status().message();
}

TEST(TextDescription, TheOnesOfTheProgramAreSound) {
  StatusOr<TextDescriptions> texts = TextDescriptions::load();
  ASSERT_TRUE(texts.ok()) << texts.status().message();
  const TextDescription *chat = texts->chatFormat({"kimi_k3", ""});
  ASSERT_NE(chat, nullptr);
  StatusOr<Template> parsed = Template::parse(chat->chatTemplate, chat->chatTemplateFile);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(texts->chatFormat({"kimi_k2", "TikTokenTokenizer"}), nullptr) << "its template is published";
  // Of the model type, or of the class where the type is another's.
  EXPECT_NE(texts->tiktoken({"kimi_k3", ""}), nullptr);
  EXPECT_EQ(texts->tiktoken({"deepseek_v3", "TikTokenTokenizer"}), texts->tiktoken({"kimi_k3", ""}));
  EXPECT_EQ(texts->tiktoken({"deepseek_v3", ""}), nullptr);
  EXPECT_EQ(texts->tiktoken({"", ""}), nullptr);
}

// 163586 ends a turn, 163585 does not; both are named.
TEST(TextDescription, IdsOfKimiK3) {
  StatusOr<TextDescriptions> texts = TextDescriptions::load();
  ASSERT_TRUE(texts.ok());
  const std::map<std::string, int32_t> *specials = texts->specialTokens({"kimi_k3", ""});
  ASSERT_NE(specials, nullptr);
  EXPECT_EQ(specials->size(), 16u);
  EXPECT_EQ(specials->at("<|end_of_msg|>"), 163586);
  EXPECT_EQ(specials->at("[EOS]"), 163585);
  EXPECT_EQ(specials->at("[PAD]"), 163839);
}

TEST(TextDescription, AFolderReplacesAndAdds) {
  test::TemporaryFolder folder;
  folder.write("text/kimi-k3.json", R"({"model_types": ["kimi_k3"], "chat_template": "own.jinja"})");
  folder.write("text/own.jinja", "own");
  folder.write("text/new.json", R"({"tokenizer_classes": ["New"], "tiktoken": {"file": "new.tiktoken",
                                    "pattern": ["a", "b|c"], "special_ids": 3, "filler": "<{n}>", "cut_characters": 5}})");
  StatusOr<TextDescriptions> texts = TextDescriptions::load(folder.path());
  ASSERT_TRUE(texts.ok()) << texts.status().message();
  EXPECT_EQ(texts->chatFormat({"kimi_k3", ""})->chatTemplate, "own");
  EXPECT_EQ(texts->specialTokens({"kimi_k3", ""}), nullptr) << "replaced as a whole";
  const TiktokenRules *rules = texts->tiktoken({"", "New"});
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->pattern, "a|b|c");
  EXPECT_EQ(rules->cutCharacters, 5);
  EXPECT_EQ(rules->cutRunCharacters, 0);
  std::vector<std::string> files = texts->tiktokenFiles();
  EXPECT_NE(std::find(files.begin(), files.end(), "new.tiktoken"), files.end());
  EXPECT_NE(texts->knownTokenizerClasses().find("New"), std::string::npos);
}

TEST(TextDescription, Errors) {
  EXPECT_NE(errorOf("{").find("models/text/x.json"), std::string::npos);
  EXPECT_EQ(errorOf(R"({"patern": 1})"),
            "models/text/x.json has the member 'patern' (known = about, model_types, tokenizer_classes, tiktoken, "
            "special_tokens, chat_template)");
  EXPECT_EQ(errorOf(R"({"model_types": "a"})"), "models/text/x.json: /model_types is \"a\", expected a list of texts");
  EXPECT_EQ(errorOf(R"({"chat_template": "none.jinja"})"),
            "models/text/x.json: /chat_template is 'none.jinja', which is not beside it");
  EXPECT_EQ(errorOf(R"({"tiktoken": []})"), "models/text/x.json: /tiktoken is [], expected an object");
  EXPECT_EQ(errorOf(R"({"tiktoken": {}})"), "models/text/x.json: /tiktoken/pattern is missing");
  EXPECT_EQ(errorOf(R"({"tiktoken": {"pattern": ["x"], "special_ids": 2, "filler": "<x>"}})"),
            "models/text/x.json: /tiktoken/filler is '<x>', expected a name with {id} or {n} in it");
  EXPECT_EQ(errorOf(R"({"tiktoken": {"cut": 1}})"),
            "models/text/x.json: /tiktoken has the member 'cut' (known = file, pattern, special_ids, filler, prefix, "
            "cut_characters, cut_run_characters)");
  EXPECT_EQ(errorOf(R"({"special_tokens": {"<a>": -1}})"),
            "models/text/x.json: /special_tokens/<a> is -1, expected an integer from 0 to 2147483647");
}

} // namespace
