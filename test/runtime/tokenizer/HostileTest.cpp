// Bad files and hostile texts: one clear error each, in bounded time.
#include "runtime/tokenizer/GgufVocabulary.h"
#include "test/runtime/tokenizer/GoldenFiles.h"
#include <ctime>
#include <functional>

namespace llmc::test {
namespace {

// A small byte-level tokenizer: a, b, ab and blanks; the tests spoil one thing each.
Json smallTokenizer() {
  return readJsonText(R"({"added_tokens": [{"id": 5, "content": "<s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": "u", "vocab": {"a": 0, "b": 1, "ab": 2, "u": 3}, "merges": [["a", "b"]]}})",
                      "small");
}

std::string failure(const std::function<void(Json &)> &spoil) {
  Json root = smallTokenizer();
  spoil(root);
  StatusOr<Tokenizer> tokenizer = Tokenizer::fromTokenizerJson(root.dump(), "t.json");
  return tokenizer.ok() ? "no error" : tokenizer.status().message();
}

Tokenizer fromJson(const Json &root) {
  StatusOr<Tokenizer> tokenizer = Tokenizer::fromTokenizerJson(root.dump(), "t.json");
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.status().message());
  return *tokenizer;
}

// Processor time: the machine that runs the tests may be busy.
double seconds(const std::function<void()> &work) {
  std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Hostile, TheSmallTokenizerWorks) {
  Tokenizer tokenizer = fromJson(smallTokenizer());
  EXPECT_EQ(*tokenizer.encode("abx<s>"), (std::vector<int32_t>{2, 3, 5}));
  EXPECT_EQ(tokenizer.vocabSize(), 6);
  EXPECT_EQ(tokenizer.tokenToId("<s>"), 5);
  EXPECT_EQ(tokenizer.idToToken(4), std::nullopt);
  EXPECT_EQ(tokenizer.idToToken(-1), std::nullopt);
}

TEST(Hostile, VocabularyAndMerges) {
  EXPECT_EQ(failure([](Json &t) {
              t["model"]["merges"].push_back({"a", "q"});
            }),
            "t.json: /model/merges/1: 'q' is not in the vocabulary");
  EXPECT_EQ(failure([](Json &t) { t["model"]["merges"].push_back("b a"); }),
            "t.json: /model/merges/1: 'ba' is not in the vocabulary");
  EXPECT_EQ(failure([](Json &t) { t["model"]["merges"].push_back("a b c"); }),
            "t.json: /model/merges/1 is \"a b c\", expected two tokens: [\"a\", \"b\"] or \"a b\"");
  EXPECT_EQ(failure([](Json &t) { t["model"]["merges"].push_back(7); }),
            "t.json: /model/merges/1 is 7, expected two tokens: [\"a\", \"b\"] or \"a b\"");
  EXPECT_EQ(failure([](Json &t) { t["model"].erase("merges"); }), "t.json: /model/merges is missing or no list");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"]["c"] = 1; }),
            "t.json: /model/vocab: id 1 is given twice, to 'b' and to 'c'");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"]["c"] = -1; }),
            "t.json: /model/vocab/c is -1, expected an integer from 0 to 16777215");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"]["c"] = 16777216; }),
            "t.json: /model/vocab/c is 16777216, expected an integer from 0 to 16777215");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"]["c"] = 18446744073709551615u; }),
            "t.json: /model/vocab/c is 18446744073709551615, expected an integer from 0 to 16777215");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"]["c"] = 1.5; }),
            "t.json: /model/vocab/c is 1.5, expected an integer from 0 to 16777215");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"]["c"] = "1"; }),
            "t.json: /model/vocab/c is \"1\", expected an integer from 0 to 16777215");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"] = Json::object(); }), "t.json: /model/vocab is empty");
  EXPECT_EQ(failure([](Json &t) { t["model"]["vocab"] = 3; }),
            "t.json: /model/vocab is missing or no object of tokens and ids");
  EXPECT_EQ(failure([](Json &t) { t["model"]["unk_token"] = "?"; }),
            "t.json: /model/unk_token '?' is not in the vocabulary");
  EXPECT_EQ(failure([](Json &t) { t["model"]["dropout"] = 0.1; }),
            "t.json: /model/dropout is 0.1, expected null or 0: ids must not be random");
  EXPECT_EQ(failure([](Json &t) { t["model"]["type"] = "WordLevel"; }),
            "t.json: /model/type: tokenizer model 'WordLevel' is not supported (known = BPE, Unigram, WordPiece)");
  EXPECT_EQ(failure([](Json &t) { t.erase("model"); }), "t.json: /model is missing or no object");
}

TEST(Hostile, AddedTokens) {
  auto withToken = [](Json token) { return failure([&](Json &t) { t["added_tokens"].push_back(token); }); };
  EXPECT_EQ(withToken({{"id", 6}, {"content", ""}}),
            "t.json: /added_tokens/1/content is empty, an added token needs a text");
  EXPECT_EQ(withToken({{"content", "x"}}), "t.json: /added_tokens/1 has no 'id'");
  EXPECT_EQ(withToken({{"id", 6}}), "t.json: /added_tokens/1 has no 'content'");
  EXPECT_EQ(withToken({{"id", -6}, {"content", "x"}}),
            "t.json: /added_tokens/1/id is -6, expected an integer from 0 to 16777215");
  EXPECT_EQ(withToken({{"id", 2}, {"content", "x"}}),
            "t.json: /added_tokens/1: id 2 is given twice, to 'ab' and to 'x'");
  EXPECT_EQ(withToken({{"id", 9}, {"content", "ab"}}),
            "t.json: /added_tokens/1/id is 9, but /model/vocab gives 'ab' the id 2");
  EXPECT_EQ(withToken({{"id", 9}, {"content", std::string(1025, 'x')}}),
            "t.json: /added_tokens/1/content has 1025 bytes, limit 1024");
  EXPECT_EQ(withToken({{"id", 9}, {"content", std::string(1024, 'x')}}), "no error");
  EXPECT_EQ(failure([](Json &t) { t["added_tokens"] = 1; }), "t.json: /added_tokens is 1, expected a list");
}

TEST(Hostile, UnknownParts) {
  auto message = failure([](Json &t) { t["normalizer"] = {{"type", "Foo"}}; });
  EXPECT_EQ(message.substr(0, 49), "t.json: /normalizer/type 'Foo' is unknown (known ");
  message = failure([](Json &t) { t["pre_tokenizer"] = {{"type", "UnicodeScripts"}}; });
  EXPECT_EQ(message.substr(0, 63), "t.json: /pre_tokenizer/type 'UnicodeScripts' is unknown (known ");
  message = failure([](Json &t) { t["decoder"] = {{"type", "CTC"}}; });
  EXPECT_EQ(message.substr(0, 46), "t.json: /decoder/type 'CTC' is unknown (known ");
  message = failure([](Json &t) { t["post_processor"] = {{"type", "Foo"}}; });
  EXPECT_EQ(message.substr(0, 53), "t.json: /post_processor/type 'Foo' is unknown (known ");
  message = failure([](Json &t) {
    t["post_processor"] = {{"type", "TemplateProcessing"},
                           {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                           {"special_tokens", {{"<s>", {{"ids", {6}}}}}}};
  });
  EXPECT_EQ(message, "t.json: /post_processor/special_tokens/<s>/ids/0 is 6, expected an integer from 0 to 5");
}

Json splitAt(const std::string &pattern) {
  Json root = smallTokenizer();
  root["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
  return root;
}

TEST(Hostile, PatternsThatGoBackWithoutEnd) {
  for (const char *pattern : {"(a+)+$", "(a|aa)+$", "(.*a){20}c", "a*a*a*a*a*a*b"}) {
    Tokenizer tokenizer = fromJson(splitAt(pattern));
    double time = seconds([&] {
      StatusOr<std::vector<int32_t>> ids = tokenizer.encode(std::string(20000, 'a') + "b!");
      if (!ids.ok())
        EXPECT_NE(ids.status().message().find("/pre_tokenizer/pattern/Regex on the text from byte"), std::string::npos)
            << ids.status().message();
    });
    EXPECT_LT(time, 30) << pattern;
  }
  StatusOr<std::vector<int32_t>> ids = fromJson(splitAt("(a+)+$")).encode(std::string(5000, 'a') + "b!");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.status().message().find("goes back too often"), std::string::npos) << ids.status().message();
}

TEST(Hostile, PatternsThatAreNone) {
  for (const char *pattern : {"(", "[a", "a{2,1}(", "\\p{Foo}", "(?<n>a)\\k<m>", "[b-a]"}) {
    StatusOr<Tokenizer> tokenizer = Tokenizer::fromTokenizerJson(splitAt(pattern).dump(), "t.json");
    ASSERT_FALSE(tokenizer.ok()) << pattern;
    EXPECT_EQ(tokenizer.status().message().rfind("t.json: /pre_tokenizer/pattern/Regex is not a valid pattern: ", 0),
              0u)
        << tokenizer.status().message();
  }
}

TEST(Hostile, NestedAndRepeatedSteps) {
  Json step = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i)
    step = {{"type", "Sequence"}, {"normalizers", {step}}};
  EXPECT_EQ(failure([&](Json &t) { t["normalizer"] = step; }), "no error");
  Json many = {{"type", "Sequence"}, {"pretokenizers", Json::array()}};
  for (int i = 0; i < 100; ++i)
    many["pretokenizers"].push_back({{"type", "Digits"}});
  EXPECT_EQ(failure([&](Json &t) { t["pre_tokenizer"] = many; }),
            "t.json: /pre_tokenizer/pretokenizers/65: more than 64 steps");
  // Each step multiplies the text by up to 64.
  Json growing = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 10; ++i)
    growing["normalizers"].push_back(
        {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(60, 'a')}});
  Json root = smallTokenizer();
  root["normalizer"] = growing;
  StatusOr<std::vector<int32_t>> ids = fromJson(root).encode("a");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().message(), "the normalizer makes 216000 bytes of 1, limit 4128");
}

// Doubling the text at most about doubles the time: merging is n log n, and nothing else is worse.
TEST(Hostile, LongWordsTakeLinearTime) {
  for (const char *folder : {"gpt2", "llama2-legacy", "gemma", "llama3", "unigram-bytes", "spm-bpe", "wordpiece"}) {
    Tokenizer tokenizer = *loadGolden(folder);
    for (const char *unit : {"a", " ", "ab", "\xC3\xA9", "\xCC\x81", "\xCC\x81\xCC\xA3", "A", "7", "\n"}) {
      std::string text;
      while (text.size() < (1 << 19))
        text += unit;
      EXPECT_LT(seconds([&] { EXPECT_TRUE(tokenizer.encode(text).ok()) << folder << " " << unit; }), 20)
          << folder << " " << unit;
    }
  }
}

TEST(Hostile, StreamOfBytesThatAreNoText) {
  Tokenizer tokenizer = *loadGolden("gpt2");
  int32_t id = *tokenizer.tokenToId("\xC4\xB0"); // a letter that stands for a byte above 0x7F
  StreamDecoder stream(tokenizer, /*skipSpecial=*/false);
  std::string all;
  EXPECT_LT(seconds([&] {
              for (int i = 0; i < 20000; ++i)
                all += *stream.push(id);
              all += *stream.flush();
            }),
            20);
  EXPECT_EQ(all, *tokenizer.decode(std::vector<int32_t>(20000, id), /*skipSpecial=*/false));
}

TEST(Hostile, SentencePieceFiles) {
  std::string good = readText(goldenPath("spm-bpe/tokenizer.model"));
  auto message = [](const std::string &bytes) {
    StatusOr<Tokenizer> tokenizer = Tokenizer::fromSentencePiece(bytes, "t.model");
    return tokenizer.ok() ? "no error" : tokenizer.status().message();
  };
  EXPECT_EQ(message(""), "t.model: the file has no pieces; this is no sentencepiece model");
  EXPECT_EQ(message("\x0A\xFF"), "t.model: byte 2: the data ends inside a number; the file is incomplete");
  EXPECT_EQ(message("\x0A\x05"
                    "ab"),
            "t.model: byte 2: a field of 5 bytes does not fit in the 2 that follow");
  EXPECT_EQ(message("\x0F"), "t.model: byte 1: wire type 7 is unknown (known = 0, 1, 2, 5)");
  EXPECT_EQ(message("\x08\x01"), "t.model: field 1 is no message; this is no sentencepiece model");
  EXPECT_EQ(message(std::string("\x0A\x03\x0A\x01"
                                "a",
                                5)),
            "t.model: the file has no unknown piece (type 2)");
  EXPECT_EQ(message(std::string("\x0A\x05\x0A\x01"
                                "a\x18\x07",
                                7)),
            "t.model: piece 0 has the type 7, expected 1 to 6");
  EXPECT_EQ(message(std::string("\x0A\x00", 2)), "t.model: piece 0 is empty");
  EXPECT_EQ(message(good + good).substr(0, 46), "t.model: pieces: token '<unk>' is given twice,");
  for (size_t size = 1; size < good.size(); size += 97) // A cut file is refused or, cut between fields, still whole.
    (void)message(good.substr(0, size)).empty();
}

TEST(Hostile, TiktokenFiles) {
  std::string good = readText(goldenPath("kimi-tiktoken/tiktoken.model"));
  auto options = [](const std::string &pattern) {
    TiktokenOptions out;
    out.pattern = pattern;
    return out;
  };
  auto message = [&](const std::string &text, std::optional<TiktokenOptions> given = {}) {
    StatusOr<Tokenizer> tokenizer = Tokenizer::fromTiktoken(text, given ? *given : options("a"), "t");
    return tokenizer.ok() ? "no error" : tokenizer.status().message();
  };
  EXPECT_EQ(message(good), "no error");
  EXPECT_EQ(message("AA== 0\n"), "t: byte 1 has no rank: the file must list all 256 single bytes");
  EXPECT_EQ(message("AA==\n"), "t: line 1 is 'AA==', expected base64 and a rank");
  EXPECT_EQ(message("AA== -1\n"), "t: line 1 is 'AA== -1', expected base64 and a rank");
  EXPECT_EQ(message("AA== 99999999999999999999\n"),
            "t: line 1 is 'AA== 99999999999999999999', expected base64 and a rank");
  EXPECT_EQ(message("AA== 99999999\n"), "t: line 1: id 99999999 is not in 0 to 16777215");
  EXPECT_EQ(message("A?== 0\n"), "t: line 1 is not valid base64");
  EXPECT_EQ(message(" 0\n"), "t: line 1: the token is empty");
  EXPECT_NE(message(good + "AA== 5000\n").find("is given twice, with ids 0 and 5000"), std::string::npos);
  EXPECT_EQ(message(good, options("(")).substr(0, 43), "t: pattern/pattern/Regex is not a valid pat");
  TiktokenOptions spoiled = options("a");
  spoiled.specials = {{"<s>", 7}};
  EXPECT_EQ(message(good, spoiled).substr(0, 38), "t: special tokens: id 7 is given twice");
  spoiled = options("a");
  spoiled.bosId = 77777;
  EXPECT_EQ(message(good, spoiled), "t: BOS or EOS has the id 77777, which no token has");
}

} // namespace
} // namespace llmc::test
