// Text in, text out, over the fake model and a tokenizer of single characters: prompts, stop strings, and the C
// interface.
#include "runtime/engine/TextGeneration.h"
#include "runtime/engine/ArtifactText.h"
#include "runtime/llmc_rt.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <cstring>
#include <gtest/gtest.h>

namespace llmc {
namespace {

using namespace test;

class TextGenerationTest : public ::testing::Test {
protected:
  void SetUp() override { writeFakeArtifact(folder, fakeTextManifest(), fakeTextFiles()); }
  void load() {
    StatusOr<std::unique_ptr<Engine>> loaded = Engine::load(folder, {1});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    engine = std::move(*loaded);
    StatusOr<ArtifactText> found = ArtifactText::load(engine->artifact());
    ASSERT_TRUE(found.ok()) << found.status().message();
    text = std::move(*found);
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/fake.llmc";
  std::unique_ptr<Engine> engine;
  std::optional<ArtifactText> text;
};

// Greedy answer of the fake model without any end.
std::vector<int32_t> expectedIds(std::vector<int32_t> ids, int tokens) {
  size_t prompt = ids.size();
  for (int i = 0; i < tokens; ++i) {
    std::vector<float> logits = fakeLogitsAfter(ids);
    ids.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end()};
}

TEST_F(TextGenerationTest, PromptsBecomeIds) {
  load();
  EXPECT_EQ(*text->idsOfText("Hi"), (std::vector<int32_t>{95, 'H' - 32, 'i' - 32}));
  EXPECT_EQ(*text->renderChat(ArtifactText::question("Hi")), "<s>[Hi]:");
  EXPECT_EQ(text->idsOfChat(ArtifactText::question("Hi"))->size(), 6u); // <s> is one id
}

// What the makers call BOS and EOS need not be the texts of the first ids that say so.
TEST_F(TextGenerationTest, SpecialTokensByName) {
  Files files = fakeTextFiles();
  files[chatTemplateFile] = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}";
  files[specialTokensFile] = R"({"bos_token": "!", "eos_token": "</s>"})";
  writeFakeArtifact(folder, fakeTextManifest(), files);
  load();
  EXPECT_EQ(*text->renderChat(ArtifactText::question("Hi")), "!Hi</s>");
}

// A tokenizer of ranks: 256 single bytes, and what follows them.
std::string byteRanks() {
  const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (unsigned byte = 0; byte < 256; ++byte)
    text += std::string{letters[byte >> 2], letters[(byte & 3) << 4], '=', '='} + " " + std::to_string(byte) + "\n";
  return text;
}

TEST_F(TextGenerationTest, RanksAndPlainTexts) {
  Manifest manifest = fakeTextManifest();
  manifest.vocabulary = 258;
  manifest.tokenizer = {tiktokenKind, {"ranks", "ranks.json"}, false, false};
  manifest.specialIds = {};
  Files files = fakeTextFiles();
  files.erase("tokenizer.json");
  files["ranks"] = byteRanks();
  files["ranks.json"] = R"({"pattern": "\\w+|\\W", "prefix": ["<b>", "<a>"], "specials": [{"content": "<a>", "id": 256},
                            {"content": "<b>", "id": 257}, {"content": "<c>", "id": 258}]})";
  files[chatTemplateFile] = "<a>{{ messages[0].content | plain }}<b>";
  writeFakeArtifact(folder, manifest, files);
  StatusOr<LoadedArtifact> artifact = LoadedArtifact::openForInspection(folder);
  ASSERT_TRUE(artifact.ok()) << artifact.status().message();
  StatusOr<ArtifactText> found = ArtifactText::load(*artifact);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(*found->idsOfChat(ArtifactText::question("<b>x")), (std::vector<int32_t>{256, '<', 'b', '>', 'x', 257}));
  // The model has no row 258: what spells it is text.
  EXPECT_EQ(*found->idsOfText("<b><c>"), (std::vector<int32_t>{257, 256, 257, '<', 'c', '>'}));
}

TEST_F(TextGenerationTest, WithoutTokenizerOrTemplate) {
  writeFakeArtifact(folder, fakeManifest(), fakeFiles());
  load();
  EXPECT_EQ(text->idsOfText("Hi").status().message(), folder + ": has no tokenizer; give token ids with --ids");
  EXPECT_EQ(text->renderChat(ArtifactText::question("Hi")).status().message(),
            folder + ": has no chat template; use --raw");
  TextGeneration generation(*engine, std::nullopt);
  EXPECT_EQ(generation.add({{{20, 21}, 3}, {"x"}}).status().message(),
            "stop strings need a tokenizer, and the artifact has none");
}

struct Collected {
  std::string text;
  size_t tokens = 0;
  Finish finish = Finish::None;
};

Collected collect(TextGeneration &generation, SequenceId id) {
  Collected out;
  while (!generation.idle())
    for (const TextEvent &event : generation.step())
      if (event.sequence == id) {
        EXPECT_EQ(out.finish, Finish::None) << "an event after the last";
        out.text += event.text;
        ++out.tokens;
        out.finish = event.finish;
      }
  return out;
}

TEST_F(TextGenerationTest, TextAndStopStrings) {
  load();
  TextGeneration generation(*engine, *text->tokenizer());
  std::vector<int32_t> prompt = *text->idsOfText("Hello");
  std::string whole = fakeText(expectedIds(prompt, 20));
  StatusOr<SequenceId> plain = generation.add({{prompt, 20, {}, {}, /*ignoreEos=*/true}, {}});
  Collected got = collect(generation, *plain);
  EXPECT_EQ(got.text, whole);
  EXPECT_EQ(got.finish, Finish::Length);
  EXPECT_EQ(got.tokens, 20u);

  std::string stop = whole.substr(6, 3);
  StatusOr<SequenceId> stopped = generation.add({{prompt, 20, {}, {}, true}, {"never seen", stop}});
  got = collect(generation, *stopped);
  EXPECT_EQ(got.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(got.finish, Finish::Stop);
  EXPECT_LT(got.tokens, 20u);
  EXPECT_TRUE(engine->idle()); // the engine does not go on behind our back

  // A text that only begins a stop string comes out in the end.
  StatusOr<SequenceId> begun = generation.add({{prompt, 20, {}, {}, true}, {whole.substr(18) + "~~never"}});
  got = collect(generation, *begun);
  EXPECT_EQ(got.text, whole);
  EXPECT_EQ(got.finish, Finish::Length);
}

TEST_F(TextGenerationTest, CInterface) {
  llmc_rt_options options;
  llmc_rt_init_options(&options);
  options.threads = 2;
  EXPECT_EQ(llmc_rt_load("/nowhere", &options), nullptr);
  EXPECT_STREQ(llmc_rt_error(), "/nowhere: no such folder; an artifact is the folder that llmc compile wrote");
  llmc_rt_engine *rt = llmc_rt_load(folder.c_str(), &options);
  ASSERT_NE(rt, nullptr) << llmc_rt_error();
  EXPECT_EQ(llmc_rt_vocabulary(rt), 97);
  EXPECT_EQ(llmc_rt_context(rt), 100);

  const int32_t *ids = nullptr;
  size_t numIds = 0;
  ASSERT_TRUE(llmc_rt_tokenize(rt, "Hello", 5, /*chat=*/0, &ids, &numIds)) << llmc_rt_error();
  std::vector<int32_t> prompt(ids, ids + numIds);
  llmc_rt_request request;
  llmc_rt_init_request(&request);
  request.max_new_tokens = 12;
  request.ignore_eos = 1;
  int64_t sequence = -1;
  ASSERT_TRUE(llmc_rt_add(rt, prompt.data(), prompt.size(), &request, &sequence)) << llmc_rt_error();
  std::string got;
  int finish = LLMC_RT_RUNNING;
  while (!llmc_rt_idle(rt)) {
    const llmc_rt_event *events = nullptr;
    size_t numEvents = 0;
    ASSERT_TRUE(llmc_rt_step(rt, &events, &numEvents)) << llmc_rt_error();
    for (size_t i = 0; i < numEvents; ++i) {
      EXPECT_EQ(events[i].sequence, sequence);
      EXPECT_EQ(std::strlen(events[i].text), events[i].text_bytes);
      got += events[i].text;
      finish = events[i].finish;
    }
  }
  EXPECT_EQ(got, fakeText(expectedIds(prompt, 12)));
  EXPECT_EQ(finish, LLMC_RT_LENGTH);
  EXPECT_FALSE(llmc_rt_cancel(rt, sequence));

  request.temperature = -1;
  EXPECT_FALSE(llmc_rt_add(rt, prompt.data(), prompt.size(), &request, &sequence));
  EXPECT_STREQ(llmc_rt_error(), "temperature is -1, expected 0 to 100");
  request.struct_bytes = 0;
  EXPECT_FALSE(llmc_rt_add(rt, prompt.data(), prompt.size(), &request, &sequence));
  llmc_rt_free(rt);
  llmc_rt_free(nullptr);
}

} // namespace
} // namespace llmc
