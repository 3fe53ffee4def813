// Every golden tokenizer against the ids and texts of its reference library, exactly.
#include "test/runtime/tokenizer/GoldenFiles.h"
#include "test/runtime/tokenizer/Sha256.h"

namespace llmc::test {
namespace {

std::string joined(const std::vector<int32_t> &ids) {
  std::string out;
  for (int32_t id : ids)
    out += std::string(out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

void expectIds(const std::vector<int32_t> &found, const Json &expected) {
  if (expected.is_array()) {
    EXPECT_EQ(joined(found), joined(std::vector<int32_t>(expected)));
    return;
  }
  EXPECT_EQ(found.size(), size_t(expected["count"]));
  EXPECT_EQ(sha256(joined(found)), std::string(expected["sha256"]));
}

void expectText(const std::string &found, const Json &expected, const std::string &text) {
  if (expected.is_boolean())
    EXPECT_EQ(found, text);
  else if (expected.is_string())
    EXPECT_EQ(found, std::string(expected));
  else
    EXPECT_EQ(sha256(found), std::string(expected["sha256"]));
}

class GoldenTokenizer : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    StatusOr<Tokenizer> loaded = loadGolden(GetParam());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    tokenizer_ = *loaded;
  }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const {
    StatusOr<std::vector<int32_t>> ids = tokenizer_->encode(text, options);
    EXPECT_TRUE(ids.ok()) << (ids.ok() ? "" : ids.status().message());
    return ids.ok() ? *ids : std::vector<int32_t>();
  }
  std::string decode(const std::vector<int32_t> &ids, bool skipSpecial) const {
    StatusOr<std::string> text = tokenizer_->decode(ids, skipSpecial);
    EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.status().message());
    return text.ok() ? *text : std::string();
  }
  bool hasTokenizerJson() const { return fileExists(path("tokenizer.json")); }
  // The other references have no such modes: tiktoken knows special tokens as text only (and calls all of them that),
  // sentencepiece nothing.
  void expectIdsAsText(const std::string &text, const Json &line) const {
    const Json &noSpecial = line.contains("ids_special_as_text") ? line["ids_special_as_text"] : line["ids"];
    const Json &noAdded = line.contains("ids_added_as_text") ? line["ids_added_as_text"] : line["ids"];
    if (hasTokenizerJson()) {
      expectIds(encode(text, {.specialText = SpecialText::SpecialAsText}), noSpecial);
      expectIds(encode(text, {.specialText = SpecialText::AllAsText}), noAdded);
    } else if (fileExists(path("tiktoken.model"))) {
      expectIds(encode(text, {.specialText = SpecialText::SpecialAsText}), noSpecial);
      expectIds(encode(text, {.specialText = SpecialText::AllAsText}), noSpecial);
    }
  }
  std::string path(const std::string &file) const { return goldenPath(std::string(GetParam()) + "/" + file); }
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(GoldenTokenizer, EncodesAndDecodesTheCases) {
  std::vector<Json> cases = readLines(path("cases.jsonl"));
  ASSERT_EQ(cases.size(), strings().size());
  for (const Json &line : readLines(path("long.jsonl")))
    cases.push_back(line);
  for (const Json &line : cases) {
    SCOPED_TRACE(std::string(line["id"]));
    std::string text = line.contains("repeat") ? repeated(line["repeat"]) : strings().at(line["id"]);
    std::vector<int32_t> ids = encode(text);
    expectIds(ids, line["ids"]);
    expectIdsAsText(text, line);
    expectText(decode(ids, /*skipSpecial=*/false), line["decode"], text);
    if (hasTokenizerJson())
      expectText(decode(ids, /*skipSpecial=*/true),
                 line.contains("decode_skip_special") ? line["decode_skip_special"] : line["decode"], text);
  }
}

TEST_P(GoldenTokenizer, DecodesListsThatEncodingNeverGives) {
  for (const Json &line : readLines(path("decode.jsonl"))) {
    std::vector<int32_t> ids(line["ids"]);
    SCOPED_TRACE(std::string(line["note"]) + " " + joined(ids));
    EXPECT_EQ(decode(ids, /*skipSpecial=*/false), std::string(line["decode"]));
    if (line.contains("decode_skip_special"))
      EXPECT_EQ(decode(ids, /*skipSpecial=*/true), std::string(line["decode_skip_special"]));
  }
}

TEST_P(GoldenTokenizer, StreamsInTheReferencesChunks) {
  for (const Json &line : readLines(path("stream.jsonl"))) {
    SCOPED_TRACE(std::string(line["id"]));
    StreamDecoder stream(*tokenizer_, bool(line["skip_special"]));
    std::string all;
    std::vector<int32_t> ids(line["ids"]);
    for (size_t i = 0; i < ids.size(); ++i) {
      StatusOr<std::string> chunk = stream.push(ids[i]);
      ASSERT_TRUE(chunk.ok()) << chunk.status().message();
      const Json &expected = line["chunks"][i];
      EXPECT_EQ(*chunk, expected.is_null() ? "" : std::string(expected)) << "chunk " << i;
      all += *chunk;
    }
    StatusOr<std::string> rest = stream.flush();
    ASSERT_TRUE(rest.ok()) << rest.status().message();
    // Null where the reference's own chunks do not add up: a cut run of byte pieces, part of which was shown already.
    if (line["flush"].is_null())
      continue;
    EXPECT_EQ(*rest, std::string(line["flush"]));
    EXPECT_EQ(all + *rest, std::string(line["decode"]));
  }
}

// Chunks and flush add up for every list, and for every single id.
TEST_P(GoldenTokenizer, StreamsAddUpToTheWhole) {
  for (const Json &line : readLines(path("cases.jsonl"))) {
    if (!line["ids"].is_array())
      continue;
    SCOPED_TRACE(std::string(line["id"]));
    std::vector<int32_t> ids(line["ids"]);
    StreamDecoder stream(*tokenizer_, /*skipSpecial=*/true);
    std::string all;
    for (int32_t id : ids)
      all += *stream.push(id);
    all += *stream.flush();
    EXPECT_EQ(all, decode(ids, /*skipSpecial=*/true));
  }
}

TEST_P(GoldenTokenizer, AddsWhatThePostProcessorSays) {
  Json about = readJsonText(readText(path("about.json")), GetParam());
  if (!about.contains("prefix_ids"))
    return;
  std::vector<int32_t> expected(about["prefix_ids"]), suffix(about["suffix_ids"]), middle = encode("Hello world");
  expected.insert(expected.end(), middle.begin(), middle.end());
  expected.insert(expected.end(), suffix.begin(), suffix.end());
  EXPECT_EQ(encode("Hello world", {.addSpecial = true}), expected);
  EXPECT_EQ(tokenizer_->vocabSize(), int32_t(about["vocab_size"]));
}

TEST_P(GoldenTokenizer, ReplacesInvalidBytes) {
  for (const Json &line : readLines(goldenPath("invalid_utf8.jsonl"))) {
    std::string hex = line["bytes"], bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    SCOPED_TRACE(hex);
    EXPECT_EQ(encode(bytes), encode(std::string(line["replaced"])));
    if (line["ids"].contains(GetParam()))
      expectIds(encode(bytes), line["ids"][GetParam()]);
  }
}

const char *const folders[] = {"bloom",
                               "deepseek-llm",
                               "deepseek-v3",
                               "falcon",
                               "gemma",
                               "gpt2",
                               "gpt2-prefix",
                               "kimi-tiktoken",
                               "llama2-legacy",
                               "llama2-nonlegacy",
                               "llama3",
                               "llama3-merges",
                               "metaspace-always",
                               "metaspace-never",
                               "neox",
                               "o200k",
                               "qwen2",
                               "qwen35",
                               "spm-bpe",
                               "spm-bpe-noprefix",
                               "spm-unigram",
                               "spm-unigram-bytes",
                               "spm-unk",
                               "spm-unk-fused",
                               "starcoder",
                               "unigram-bytes",
                               "unigram-t5",
                               "wordpiece",
                               "wordpiece-cased"};

std::string testName(const testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  for (char &c : name)
    c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizer, testing::ValuesIn(folders), testName);

} // namespace
} // namespace llmc::test
