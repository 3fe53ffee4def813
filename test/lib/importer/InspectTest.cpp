#include "lib/importer/Inspect.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {
int64_t countOf(const ModelSpec &spec, const std::string &name) {
  for (const OperatorCount &op : countOperators(spec))
    if (op.name == name)
      return op.count;
  return 0;
}
} // namespace

TEST(Inspect, LayerKinds) {
  std::vector<LayerKind> kinds = layerKinds(resolved("exaone-4"));
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].name, "sliding_attention");
  EXPECT_EQ(kinds[0].at, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(kinds[1].name, "full_attention_no_rope");
  EXPECT_EQ(kinds[1].at, (std::vector<int64_t>{3}));
}

TEST(Inspect, KindsOfTheSameNameAreNumbered) {
  ModelSpec spec = resolved("llama-2");
  spec.layers[2].attention.softcap = 30.0;
  std::vector<LayerKind> kinds = layerKinds(spec);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[1].name, "full_attention_2");
}

TEST(Inspect, Operators) {
  ModelSpec spec = resolved("smollm3"); // 4 layers, one without rope
  EXPECT_EQ(countOf(spec, "linear"), 4 * 7 + 1);
  EXPECT_EQ(countOf(spec, "rms_norm"), 4 * 2 + 1);
  EXPECT_EQ(countOf(spec, "rope"), 3 * 2);
  EXPECT_EQ(countOf(spec, "attention"), 4);
  EXPECT_EQ(countOf(spec, "softcap"), 0);
  EXPECT_EQ(countOf(resolved("gemma-2"), "softcap"), 1);
  EXPECT_EQ(countOf(resolved("gemma-3"), "rms_norm"), 4 * 6 + 1); // two before, two after, two of query and key
  EXPECT_EQ(countOf(resolved("granite"), "scale"), 2 + 4 * 2);
}

TEST(Inspect, State) {
  // 32 layers x 2 x 8 heads x 128 channels x 2 bytes
  EXPECT_EQ(stateBytesPerToken(resolved("published/llama-3.1-8b")), 131072u);
}

TEST(Inspect, Json) {
  Json json = inspectToJson(resolved("published/llama-3.2-1b"));
  EXPECT_EQ(json["family"], "llama");
  EXPECT_EQ(json["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(json["parameters"].dump(), R"({"total":1235814400,"active":1235814400})");
  EXPECT_EQ(json["bytes"], 2 * 1235814400ull); // bfloat16
  EXPECT_EQ(json["layers"].size(), 1u);
  EXPECT_EQ(json["layers"][0]["kind"], "full_attention");
  EXPECT_EQ(json["layers"][0]["count"], 16);
  EXPECT_EQ(json["layers"][0]["at"].size(), 16u);
  EXPECT_EQ(json["hidden"], 2048);
  EXPECT_EQ(json["vocabulary"], 128256);
  EXPECT_EQ(json["heads"], 32);
  EXPECT_EQ(json["kv_heads"], 8);
  EXPECT_EQ(json["head_dim"], 64);
  EXPECT_EQ(json["experts"], 0);
  EXPECT_EQ(json["latent_attention"], false);
  EXPECT_EQ(json["state"].dump(), R"({"bytes_per_token":32768,"bytes_per_sequence":0})");
  EXPECT_EQ(json["tensors"].size(), 2u + 16 * 9);
  EXPECT_EQ(json["tensors"][0].dump(), R"({"name":"model.embed_tokens.weight","shape":[128256,2048],"type":"BF16"})");
  EXPECT_TRUE(json["ignored_keys"].is_array());
  EXPECT_TRUE(json["unknown_keys"].empty());
}

TEST(Inspect, HeadersKnowTypesAndBytes) {
  ModelSpec spec = resolved("llama-2");
  std::vector<StoredTensor> stored;
  for (const ExpectedTensor &expected : expectedTensors(spec))
    stored.push_back({expected.name, expected.shape, "Q8_0", 100});
  Json json = inspectToJson(spec, stored);
  EXPECT_EQ(json["tensors"][3]["type"], "Q8_0");
  EXPECT_EQ(json["bytes"], 100 * stored.size());
}

TEST(Inspect, Text) {
  std::string text = inspectToText(resolved("exaone-4"));
  EXPECT_NE(text.find("exaone-4 (Exaone4ForCausalLM)\n"), std::string::npos);
  EXPECT_NE(text.find("  parameters  164,544\n"), std::string::npos);
  EXPECT_NE(text.find("  layers      3 x sliding_attention\n"), std::string::npos);
}
