// GGUF vocabularies: against the ids of the model they belong to, and against tokenizer.json for the same tokens.
#include "runtime/tokenizer/GgufVocabulary.h"
#include "test/runtime/tokenizer/GoldenFiles.h"

namespace llmc::test {
namespace {

// The golden tokenizer.json of `folder` as its GGUF conversion would hold it.
GgufVocabulary convert(const std::string &folder, const std::string &pre) {
  Json root = readJsonText(readText(goldenPath(folder + "/tokenizer.json")), folder);
  GgufVocabulary out;
  out.model = "gpt2";
  out.pre = pre;
  auto put = [&](size_t id, const std::string &token, int32_t type) {
    if (out.tokens.size() <= id) {
      out.tokens.resize(id + 1);
      out.tokenTypes.resize(id + 1, 5);
    }
    out.tokens[id] = token;
    out.tokenTypes[id] = type;
  };
  for (const auto &entry : root["model"]["vocab"].items())
    put(entry.value(), entry.key(), 1);
  for (const Json &token : root["added_tokens"])
    put(token["id"], token["content"], token["special"] ? 3 : 4);
  for (const Json &merge : root["model"]["merges"])
    out.merges.push_back(std::string(merge[0]) + " " + std::string(merge[1]));
  return out;
}

Tokenizer fromGguf(const GgufVocabulary &vocabulary) {
  StatusOr<Tokenizer> tokenizer = Tokenizer::fromGguf(vocabulary, "test.gguf");
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.status().message());
  return *tokenizer;
}

std::string failure(const GgufVocabulary &vocabulary) {
  StatusOr<Tokenizer> tokenizer = Tokenizer::fromGguf(vocabulary, "test.gguf");
  return tokenizer.ok() ? "no error" : tokenizer.status().message();
}

TEST(Gguf, GivesTheIdsOfTheModel) {
  Json file = readJsonText(readText(goldenPath("smollm2-gguf.json")), "smollm2-gguf.json");
  StatusOr<GgufVocabulary> vocabulary = ggufVocabularyFromJson(file["vocabulary"].dump(), "smollm2-gguf.json");
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  Tokenizer tokenizer = fromGguf(*vocabulary);
  EXPECT_EQ(file["cases"].size(), 19u);
  for (const Json &line : file["cases"]) {
    std::string text = line["text"];
    EXPECT_EQ(*tokenizer.encode(text), std::vector<int32_t>(line["ids"])) << text;
    EXPECT_EQ(*tokenizer.decode(std::vector<int32_t>(line["ids"]), /*skipSpecial=*/false), text);
  }
  EXPECT_EQ(tokenizer.idToToken(*tokenizer.eosId()), "<|im_end|>");
  EXPECT_TRUE(tokenizer.isSpecial(*tokenizer.eosId()));
}

TEST(Gguf, RecipesCutAsTokenizerJsonDoes) {
  const std::pair<const char *, const char *> pairs[] = {
      {"bloom", "bloom"}, {"deepseek-v3", "deepseek-v3"}, {"falcon", "falcon"},      {"gpt2", "gpt-2"},
      {"neox", "olmo"},   {"llama3", "llama-bpe"},        {"llama3-merges", "dbrx"}, {"o200k", "gpt-4o"},
      {"qwen2", "qwen2"}, {"qwen35", "qwen35"},           {"starcoder", "starcoder"}};
  for (auto [folder, pre] : pairs) {
    Tokenizer gguf = fromGguf(convert(folder, pre)), json = *loadGolden(folder);
    for (const auto &[id, text] : strings())
      EXPECT_EQ(*gguf.encode(text, {.specialText = SpecialText::AllAsText}),
                *json.encode(text, {.specialText = SpecialText::AllAsText}))
          << folder << " " << id;
  }
}

TEST(Gguf, ScoredVocabularyFollowsSentencePiece) {
  StatusOr<GgufVocabulary> vocabulary =
      ggufVocabularyFromJson(readText(goldenPath("spm-bpe-gguf.json")), "spm-bpe-gguf.json");
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  Tokenizer gguf = fromGguf(*vocabulary);
  size_t compared = 0;
  for (const Json &line : readLines(goldenPath("spm-bpe/cases.jsonl"))) {
    // Control and user-defined pieces part a text here, each part with a prefix of its own.
    std::string text = strings().at(line["id"]);
    if (text.find('<') != text.npos || text.find("\n\n") != text.npos || !line["ids"].is_array())
      continue;
    ++compared;
    EXPECT_EQ(*gguf.encode(text), std::vector<int32_t>(line["ids"])) << text;
  }
  EXPECT_GT(compared, 55u);
  EXPECT_EQ(gguf.encode("", {.addSpecial = true})->front(), 1);
}

TEST(Gguf, JsonRoundTrip) {
  GgufVocabulary in = convert("gpt2", "gpt-2");
  in.scores = {0.5f, -1.25f};
  in.bosId = 0;
  in.addBos = true;
  StatusOr<GgufVocabulary> out = ggufVocabularyFromJson(ggufVocabularyToJson(in), "x");
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out->tokens, in.tokens);
  EXPECT_EQ(out->merges, in.merges);
  EXPECT_EQ(out->scores, in.scores);
  EXPECT_EQ(out->tokenTypes, in.tokenTypes);
  EXPECT_EQ(out->bosId, 0);
  EXPECT_EQ(out->eosId, std::nullopt);
  EXPECT_EQ(out->addBos, true);
  EXPECT_EQ(out->addEos, std::nullopt);
}

TEST(Gguf, SaysWhatIsWrong) {
  GgufVocabulary good = convert("gpt2", "gpt-2"), bad = good;
  bad.model = "rwkv";
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.model 'rwkv' is not supported (known = gpt2, llama)");
  bad = good;
  bad.pre = "foo";
  EXPECT_EQ(failure(bad).substr(0, 58), "test.gguf: tokenizer.ggml.pre 'foo' is unknown (known = de");
  bad = good;
  bad.tokens.clear();
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.tokens is empty");
  bad = good;
  bad.tokenTypes.pop_back();
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.token_type has 1411 entries, tokenizer.ggml.tokens 1412");
  bad = good;
  bad.tokenTypes[7] = 9;
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.token_type/7 is 9, expected 1 to 6");
  bad = good;
  bad.merges[3] = "q zzz";
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.merges/3: 'zzz' is not in the vocabulary");
  bad.merges[3] = "abc";
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.merges/3 is 'abc', expected two tokens with a blank between");
  bad.merges.clear();
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.merges is missing");
  bad = good;
  bad.bosId = 5000;
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.bos_token_id is 5000, the vocabulary has 1412 tokens");
  bad = good;
  bad.tokens[300] = bad.tokens[301];
  EXPECT_NE(failure(bad).find("is given twice, with ids 300 and 301"), std::string::npos) << failure(bad);
  bad = good;
  bad.tokens[300] = "\xFF";
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.tokens/300 is not valid UTF-8");
  bad = good;
  bad.model = "llama";
  EXPECT_EQ(failure(bad), "test.gguf: tokenizer.ggml.scores has 0 entries, tokenizer.ggml.tokens 1412");
}

} // namespace
} // namespace llmc::test
