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

TEST(Inspect, Operators) {
  ModelSpec spec = resolved("smollm3"); // 4 layers, one without rope
  EXPECT_EQ(countOf(spec, "linear"), 4 * 7 + 1);
  EXPECT_EQ(countOf(spec, "rms_norm"), 4 * 2 + 1);
  EXPECT_EQ(countOf(spec, "rope"), 3 * 2);
  EXPECT_EQ(countOf(spec, "attention"), 4);
  EXPECT_EQ(countOf(spec, "softcap"), 0);
  EXPECT_EQ(countOf(resolved("gemma-2"), "softcap"), 1);
  EXPECT_EQ(countOf(resolved("gemma-3"), "rope_table"), 2);
  EXPECT_EQ(countOf(resolved("gemma-3"), "rms_norm"), 4 * 6 + 1); // two before, two after, two of query and key
  EXPECT_EQ(countOf(resolved("granite"), "scale"), 1 + 4 * 2);    // the logits; what both parts of a layer add
}

TEST(Inspect, State) {
  // 32 layers x 2 x 8 heads x 128 channels x 2 bytes
  StateBytes bytes = stateBytes(resolved("published/llama-3.1-8b"));
  EXPECT_EQ(bytes.perToken, 131072u);
  EXPECT_EQ(bytes.perSequence, 0u);
}

TEST(Inspect, StateOfMixedLayers) {
  Json family = tinyFamily();
  family["blocks"]["layer(h)"] = {"x = linear(norm(h), mix, hidden)",
                                  "when layer % 2 == 1: x = attend(heads(x, 2), heads(x, 2), latent: 3, scale: 1)",
                                  "when layer % 2 == 0: x = short_conv(x, taps, 4)",
                                  "when layer % 2 == 0: x = linear_attention(heads(x, 2), heads(x, 2), heads(x, 2))",
                                  "h + merge(x)"};
  family["blocks"]["kind()"] = {"if(layer % 2 == 1, 'full_attention', 'linear_attention')"};
  family["config"]["weights"]["taps"] = "conv.weight";
  family["config"]["values"]["hidden"] = {{"value", 6}};
  ModelSpec spec = resolvedTiny(family);
  StateBytes bytes = stateBytes(spec);
  EXPECT_EQ(bytes.perToken, 2u * 2 * 3 * 2);                  // 2 layers x 2 heads x 3 channels x bfloat16
  // 2 layers x (6 x 3 inputs of the convolution, bfloat16, and 2 x 3 x 3 sums, float32)
  EXPECT_EQ(bytes.perSequence, 2u * (6 * 3 * 2 + 2 * 3 * 3 * 4));
  EXPECT_EQ(bytes.recurrentElements, 2u * (6 * 3 + 2 * 3 * 3));
  EXPECT_EQ(inspectToJson(spec)["latent_attention"], true);
}

TEST(Inspect, OfExpertsATokenMeetsThoseOfItsRouter) {
  Json family = tinyFamily();
  family["blocks"]["layer(h)"] = {"w, chosen = router(linear(h, gate, 6), 2)",
                                  "h + combine(expert_linear(h, experts, 6, hidden, chosen), w)"};
  family["config"]["weights"]["gate"] = "gate.weight";
  family["config"]["weights"]["experts"] = {{"tensor", "experts.{expert}.weight"}, {"stack", 6}};
  ModelSpec spec = resolvedTiny(family);
  ParameterCounts counts = countParameters(spec);
  EXPECT_EQ(counts.total, 2u * 16 * 8 + 4 * (6 * 8 + 6 * 8 * 8));
  EXPECT_EQ(counts.active, 16u * 8 + 4 * (6 * 8 + 2 * 8 * 8)) << "2 of 6, the head, and not the embedding";
  EXPECT_EQ(inspectToJsonText(spec), inspectToJson(spec).dump());
  EXPECT_EQ(inspectToJson(spec)["experts"], 6);
  EXPECT_EQ(inspectToJson(spec)["tensors"].size(), 2u + 4 * (1 + 6));
}

TEST(Inspect, Json) {
  Json json = inspectToJson(resolved("published/llama-3.2-1b"));
  EXPECT_EQ(json["family"], "llama");
  EXPECT_EQ(json["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(json["parameters"].dump(), R"({"total":1235814400,"active":1235814400,"text":1235814400})");
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

TEST(Inspect, ATiedEmbeddingIsAHead) {
  ParameterCounts counts = countParameters(resolved("published/llama-3.2-1b"));
  EXPECT_EQ(counts.active, counts.total);
  counts = countParameters(resolved("published/llama-3-8b"));
  EXPECT_EQ(counts.active, counts.total - 128256ull * 4096);
}

TEST(Inspect, PartsThatAreNotRun) {
  Json family = tinyFamily();
  family["config"]["parts"] = {
      {"vision", {{"key", "architectures"}, {"operators", {{"patch_embedding", "linear"}}}}},
      {"audio", {{"key", "no_such_key"}, {"operators", {{"conv", "over time"}}}}}};
  family["config"]["ignored_tensors"] = {{"mtp.*", "layers that predict more tokens are not run"},
                                         {"*.buffer", "computed"},
                                         {"vision.*", "text only, no image input"}};
  std::vector<MissingPart> missing = resolvedTiny(family).missing;
  ASSERT_EQ(missing.size(), 2u) << "a part that is described says more than the names of its tensors";
  EXPECT_EQ(missing[0].name, "vision: patch_embedding");
  EXPECT_EQ(missing[0].reason, "linear");
  EXPECT_EQ(missing[1].name, "mtp.*");
}

TEST(Inspect, Text) {
  std::string text = inspectToText(resolved("exaone-4"));
  EXPECT_NE(text.find("exaone-4 (Exaone4ForCausalLM)\n"), std::string::npos);
  EXPECT_NE(text.find("  parameters  164,544, active for a token "), std::string::npos);
  EXPECT_NE(text.find("  layers      3 x sliding_attention\n"), std::string::npos);
}
