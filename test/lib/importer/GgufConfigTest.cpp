// The same families from GGUF metadata.
#include "lib/importer/CheckWeights.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

using Metadata = std::vector<std::pair<std::string, Json>>;

// A small model of `architecture` with the keys that every file has.
Metadata metadataOf(const std::string &architecture) {
  Metadata metadata = {{"general.architecture", architecture},
                       {"general.name", "small"},
                       {"tokenizer.ggml.tokens", Json::array({"a", "b", "c"})}};
  auto add = [&](const std::string &key, const Json &value) { metadata.emplace_back(architecture + "." + key, value); };
  add("block_count", 4);
  add("context_length", 4096);
  add("embedding_length", 64);
  add("feed_forward_length", 96);
  add("attention.head_count", 4);
  add("attention.head_count_kv", 2);
  add("attention.layer_norm_rms_epsilon", 1e-5);
  add("rope.freq_base", 500000.0);
  return metadata;
}

StatusOr<std::vector<float>> halves(const std::string &) { return std::vector<float>(8, 2.0f); }

StatusOr<ModelSpec> resolve(Metadata metadata, std::set<std::string> tensors = {"output.weight"}) {
  return resolveModel(descriptions(), GgufConfig(std::move(metadata), std::move(tensors), halves, "model.gguf"));
}
ModelSpec resolvedGguf(Metadata metadata, std::set<std::string> tensors = {"output.weight"}) {
  StatusOr<ModelSpec> spec = resolve(std::move(metadata), std::move(tensors));
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? *spec : ModelSpec();
}
std::string ggufError(Metadata metadata) {
  StatusOr<ModelSpec> spec = resolve(std::move(metadata));
  return spec.ok() ? "" : spec.status().message();
}

} // namespace

TEST(GgufConfig, Llama) {
  ModelSpec spec = resolvedGguf(metadataOf("llama"));
  EXPECT_EQ(spec.family, "llama");
  EXPECT_EQ(spec.vocabulary, 3) << "counted from the tokens";
  EXPECT_EQ(spec.layers, 4);
  EXPECT_EQ(spec.weights[2].sources[0].tensor, "blk.0.attn_q.weight");
  EXPECT_EQ(spec.weights[2].sources[0].unpermuteHeadRows, 16);
  EXPECT_EQ(spec.weights[3].sources[0].unpermuteHeadRows, 16); // key
  EXPECT_EQ(spec.weights[4].sources[0].unpermuteHeadRows, 0);  // value
  EXPECT_EQ(factOf(spec, "heads"), "4 (stated as llama.attention.head_count)");
}

TEST(GgufConfig, EveryFamilyThatServesIt) {
  int served = 0;
  for (const ModelDescription &family : descriptions().families)
    for (const std::string &architecture : family.gguf.architectures) {
      SCOPED_TRACE(architecture);
      ++served;
      EXPECT_EQ(resolvedGguf(metadataOf(architecture)).family, family.family);
    }
  EXPECT_GE(served, 11);
}

TEST(GgufConfig, TheHeadIsTiedWhenNoneIsStored) {
  EXPECT_TRUE(resolvedGguf(metadataOf("llama"), {}).tiedHead);
  EXPECT_FALSE(resolvedGguf(metadataOf("llama")).tiedHead);
}

TEST(GgufConfig, GemmaNormsHoldTheOneAlready) {
  ModelSpec spec = resolvedGguf(metadataOf("gemma3"));
  EXPECT_EQ(spec.weights[1].add, 0.0);
  EXPECT_EQ(attributeOf<double>(spec.graph.step, "embedding", "scale"), 8.0);
  EXPECT_EQ(attributeOf<std::string>(kindOf(spec), "gated_activation", "activation"), "gelu_tanh");
}

TEST(GgufConfig, Gemma3Slides) {
  Metadata metadata = metadataOf("gemma3");
  metadata.emplace_back("gemma3.attention.sliding_window", 16);
  metadata[3].second = 12; // block_count
  ModelSpec spec = resolvedGguf(metadata);
  EXPECT_EQ(windowsOf(spec), (std::vector<int64_t>{16, 16, 16, 16, 16, 0, 16, 16, 16, 16, 16, 0}));
  EXPECT_EQ(ropesOf(spec)[5], "full");
  EXPECT_EQ(ropesOf(spec)[0], "sliding");
}

TEST(GgufConfig, StoredDivisorsScaleTheRope) {
  ModelSpec plain = resolvedGguf(metadataOf("llama"));
  ModelSpec scaled = resolvedGguf(metadataOf("llama"), {"output.weight", "rope_freqs.weight"});
  ASSERT_EQ(plain.ropes["full"].frequencies.size(), 8u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(scaled.ropes["full"].frequencies[i], plain.ropes["full"].frequencies[i] / 2.0f);
  EXPECT_NE(std::find(scaled.ignorableTensors.begin(), scaled.ignorableTensors.end(), "rope_freqs.weight"),
            scaled.ignorableTensors.end())
      << "read, so not left over";
}

TEST(GgufConfig, Errors) {
  Metadata experts = metadataOf("llama");
  experts.emplace_back("llama.expert_count", 8);
  EXPECT_EQ(ggufError(experts), "model.gguf has a key that family 'llama' does not know and that may change the maths: "
                                "llama.expert_count; describe or ignore it in the family's model description");
  Metadata heads = metadataOf("llama");
  heads[7].second = Json::array({4, 4, 2, 2});
  EXPECT_EQ(ggufError(heads), "llama.attention.head_count is [4,4,2,2], expected an integer from 1 to 65536");
  Metadata values = metadataOf("llama");
  values.emplace_back("llama.attention.value_length", 32);
  EXPECT_EQ(ggufError(values), "llama.attention.value_length is 32, but only 16 (head_dim) is supported");
  Metadata scaling = metadataOf("llama");
  scaling.emplace_back("llama.rope.scaling.type", "spiral");
  EXPECT_EQ(ggufError(scaling), "llama.rope.scaling.type 'spiral' is unknown (known = linear, longrope, none, yarn)");
  EXPECT_EQ(ggufError({{"general.architecture", "llamma"}}).substr(0, 51),
            "architecture 'llamma' is unknown (nearest = llama, ");
  Metadata none = metadataOf("llama");
  none.erase(none.begin() + 3);
  EXPECT_EQ(ggufError(none), "model.gguf has no 'block_count' (number of layers)");
  EXPECT_NE(ggufError({{"general.name", "x"}}), "");
}
