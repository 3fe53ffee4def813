// Manifest: what is written is read back, and every rule of the reader has the case that breaks it.
#include "runtime/artifact/Manifest.h"
#include "runtime/support/Hash.h"
#include "runtime/support/Json.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include <functional>
#include <gtest/gtest.h>

namespace llmc {
namespace {

Manifest wholeManifest() {
  Manifest m = test::fakeManifest();
  m.cpuFeatures = {"avx2", "fma"};
  m.tokenizer = {"tokenizer.json", {"tokenizer.json"}, true, false};
  m.specialIds = {1, 0, {2, 7}};
  m.generation = {0.7, 40, 0.95, 0.05, 1.1};
  m.perplexity = {std::string(32, 'd'), 4088, 512, 9.5, 9.25};
  m.sections = {{programFile, 10, std::string(32, 'a')},
                {"tokenizer.json", 3, std::string(32, 'b')},
                {weightsFile, m.weightsBytes, std::string(32, 'c')}};
  return m;
}

Manifest withoutPages() {
  Manifest m = wholeManifest();
  m.pageTokens = m.numPages = 0;
  m.pageBytes = 0;
  return m;
}

Manifest ofRank() {
  Manifest m = wholeManifest();
  m.rank = {3, {2, 3}, std::string(32, 'e'), 128, 12, 2, 64, {{weightsFile, "weights-3.bin"}}};
  m.sections = {{programFile, 10, std::string(32, 'a')},
                {"tokenizer.json", 3, std::string(32, 'b')},
                {"weights-3.bin", m.weightsBytes, std::string(32, 'c')}};
  return m;
}

// The text of wholeManifest after `change`, with a hash that fits.
std::string changedText(const std::function<void(Json &)> &change) {
  Json root = *parseJson(manifestText(wholeManifest()), "m");
  change(root);
  root["hash"] = std::string(32, '0');
  std::string text = root.dump(1) + "\n";
  return text.replace(12, 32, hashHex(text));
}

std::string failure(const std::string &text) {
  StatusOr<Manifest> manifest = parseManifest(text, "m");
  return manifest.ok() ? "no failure" : manifest.status().message();
}

TEST(Manifest, RoundTrip) {
  for (const Manifest &manifest : {wholeManifest(),
                                   [] {
                                     Manifest m = wholeManifest();
                                     m.generation = {};
                                     m.specialIds = {};
                                     m.weights = {};
                                     m.perplexity = {};
                                     m.family = "caf\xc3\xa9 \"x\"";
                                     return m;
                                   }(),
                                   withoutPages(), ofRank()}) {
    std::string text = manifestText(manifest);
    StatusOr<Manifest> read = parseManifest(text, "m");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(manifestText(*read), text);
    EXPECT_EQ(read->numPages, manifest.numPages);
    EXPECT_EQ(read->stateBytes, manifest.stateBytes);
    EXPECT_EQ(read->family, manifest.family);
    EXPECT_EQ(read->specialIds.eos, manifest.specialIds.eos);
    EXPECT_EQ(read->generation.topP, manifest.generation.topP);
    ASSERT_EQ(read->perplexity.has_value(), manifest.perplexity.has_value());
    if (manifest.perplexity)
      EXPECT_EQ(read->perplexity->reference, manifest.perplexity->reference);
    EXPECT_EQ(read->memoryPlan.size(), manifest.memoryPlan.size());
  }
}

TEST(Manifest, OfOneRankOfSeveral) {
  StatusOr<Manifest> read = parseManifest(manifestText(ofRank()), "m");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->grid(), (RankGrid{2, 3}));
  EXPECT_EQ(read->fileOf(weightsFile), "weights-3.bin");
  EXPECT_EQ(read->fileOf(programFile), programFile);
  EXPECT_EQ(manifestFileOf(0), manifestFile);
  EXPECT_EQ(manifestFileOf(3), "manifest-3.json");
  auto refusal = [](const std::function<void(RankFacts &)> &change) {
    Manifest m = ofRank();
    change(*m.rank);
    Status status = checkManifest(m, "m");
    return status.ok() ? "no failure" : status.message();
  };
  EXPECT_EQ(refusal([](RankFacts &r) {
              r.grid = {1, 1};
            }),
            "m: /rank has 1 stages of 1 ranks, expected 2 to 4096 ranks in all");
  EXPECT_EQ(refusal([](RankFacts &r) { r.number = 6; }), "m: /rank/number is 6, there are 6 ranks");
  EXPECT_EQ(refusal([](RankFacts &r) { r.identity = "e"; }), "m: /rank/identity 'e' is not 32 lower-case hex digits");
  EXPECT_EQ(refusal([](RankFacts &r) { r.collectiveBytes = 1; }),
            "m: /rank/collective_bytes is 1, expected a multiple of 64");
  EXPECT_EQ(refusal([](RankFacts &r) { r.rowBlocks = 0; }),
            "m: /rank has 0 blocks of 64 rows, expected at least 1 of each");
  EXPECT_EQ(refusal([](RankFacts &r) { r.files[0].of = "other"; }), "m: /sections has no 'weights.bin'");
  EXPECT_EQ(refusal([](RankFacts &r) {
              r.files.push_back({programFile, "program-3.so"});
            }),
            "m: /rank/files/1/file 'program-3.so' is not among the sections");
}

TEST(Manifest, EveryFlippedBitIsSeen) {
  const std::string text = manifestText(wholeManifest());
  for (size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_FALSE(parseManifest(flipped, "m").ok()) << "byte " << at << ", bit " << bit;
    }
}

TEST(Manifest, EveryCutIsSeen) {
  const std::string text = manifestText(wholeManifest());
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parseManifest(std::string_view(text).substr(0, size), "m").ok()) << size;
}

TEST(Manifest, AnotherFormatSaysWhoWroteIt) {
  EXPECT_EQ(failure(changedText([](Json &m) {
              m["version"] = 7;
              m["writer"] = "llmc 9.1";
              m["unheard_of"] = 1;
            })),
            "m: format 7, written by llmc 9.1; this runtime reads format 3; compile it again");
  EXPECT_EQ(failure("{\"a\": 1}"),
            "m: /format is missing, expected \"llmc-artifact\": this is no artifact; write one with llmc compile");
}

TEST(Manifest, DamageIsAChecksumError) {
  std::string text = manifestText(wholeManifest());
  text.replace(text.find("\"fake\""), 6, "\"fade\"");
  EXPECT_EQ(failure(text).find("m: checksum differs: \""), 0u) << failure(text);
}

struct Rule {
  const char *name;
  std::function<void(Json &)> change;
  const char *message;
};

TEST(Manifest, EveryRuleHasItsMessage) {
  const Rule rules[] = {
      {"missing", [](Json &m) { m.erase("context"); }, "m: /context is missing"},
      {"unknown", [](Json &m) { m["colour"] = 1; }, "m: /colour is unknown to this runtime"},
      {"nested unknown", [](Json &m) { m["tokenizer"]["x"] = 1; }, "m: /tokenizer/x is unknown to this runtime"},
      {"type", [](Json &m) { m["family"] = 3; }, "m: /family is 3, expected a string"},
      {"no object", [](Json &m) { m["tokenizer"] = 3; }, "m: /tokenizer is 3, expected an object"},
      {"no list", [](Json &m) { m["sections"] = 3; }, "m: /sections is 3, expected a list"},
      {"zero", [](Json &m) { m["vocabulary"] = 0; }, "m: /vocabulary is 0, expected an integer from 1 to 2147483647"},
      {"rows", [](Json &m) { m["max_logit_rows"] = 17; }, "m: /max_logit_rows is 17, expected 1 to 16"},
      {"alignment", [](Json &m) { m["page_bytes"] = 65; }, "m: /page_bytes is 65, expected a multiple of 64"},
      {"state", [](Json &m) { m["state_bytes"] = 65; }, "m: /state_bytes is 65, expected a multiple of 64"},
      {"no state", [](Json &m) { m.erase("state_bytes"); }, "m: /state_bytes is missing"},
      {"states", [](Json &m) { m["state_bytes"] = INT64_MAX - 63; }, "m: the memory plan does not fit 63 bits: 26 p"},
      {"no pages", [](Json &m) { m["num_pages"] = 0; }, "m: /num_pages is 0, expected 1 to 2147483647"},
      {"no positions", [](Json &m) { m["page_tokens"] = 0; }, "m: /page_tokens is 0, expected 1 to 67108864"},
      {"empty pages", [](Json &m) { m["page_bytes"] = 0; }, "m: /page_tokens is 8, expected 0 where /page_bytes is 0"},
      {"overflow", [](Json &m) { m["page_bytes"] = INT64_MAX - 63; }, "m: the memory plan does not fit 63 bits"},
      {"kind", [](Json &m) { m["memory_plan"][0]["kind"] = "x"; }, "m: /memory_plan/0/kind 'x' is unknown"},
      {"path", [](Json &m) { m["sections"][0]["file"] = "../x"; }, "m: /sections/0/file: '../x' is no plain file name"},
      {"order", [](Json &m) { m["sections"][1]["file"] = "a"; }, "m: /sections/1/file 'a' does not come after 'pro"},
      {"hash", [](Json &m) { m["sections"][1]["hash"] = "Z"; }, "m: /sections/1/hash 'Z' is not 32 lower-case hex"},
      {"program", [](Json &m) { m["sections"].erase(0); }, "m: /sections has no 'program.so'"},
      {"tokenizer", [](Json &m) { m["tokenizer"]["files"][0] = "t"; }, "m: /tokenizer/files/0 't' is not among"},
      {"kinds", [](Json &m) { m["tokenizer"]["kind"] = "x"; }, "m: /tokenizer/kind 'x' is unknown (known = none, to"},
      {"files", [](Json &m) { m["tokenizer"]["kind"] = "tiktoken"; }, "m: /tokenizer/files has 1 entries, kind 'tik"},
      {"weights", [](Json &m) { m["weights_bytes"] = 129; }, "m: /weights_bytes is 129, section 'weights.bin' has 128"},
      {"place", [](Json &m) { m["weights"][1]["offset"] = 63; }, "m: /weights/1 'key': offset 63 is not a multiple"},
      {"overlap", [](Json &m) { m["weights"][1]["offset"] = 0; }, "m: /weights/1 'key': starts at byte 0, the one"},
      {"leaves", [](Json &m) { m["weights"][1]["bytes"] = 65; }, "m: /weights/1 'key': [64, +65) leaves the 128 bytes"},
      {"huge", [](Json &m) { m["weights"][1]["bytes"] = INT64_MAX; }, "m: /weights/1 'key': [64, +"},
      {"id", [](Json &m) { m["special_ids"]["eos"][1] = 97; }, "m: /special_ids/eos/1 is 97, the vocabulary has 97"},
      {"bos", [](Json &m) { m["special_ids"]["bos"] = 97; }, "m: /special_ids/bos is 97, the vocabulary has 97 ids"},
      {"heat", [](Json &m) { m["generation"]["temperature"] = -1; }, "m: /generation/temperature is -1.0"},
      {"perplexity", [](Json &m) { m["perplexity"]["value"] = 0.5; }, "m: /perplexity/value is 0.5"},
      {"no reference", [](Json &m) { m["perplexity"].erase("reference"); }, "m: /perplexity/reference is missing"},
      {"top_p", [](Json &m) { m["generation"]["top_p"] = 1.5; }, "m: /generation/top_p is 1.5"},
  };
  for (const Rule &rule : rules)
    EXPECT_EQ(failure(changedText(rule.change)).find(rule.message), 0u)
        << rule.name << ": " << failure(changedText(rule.change));
}

} // namespace
} // namespace llmc
