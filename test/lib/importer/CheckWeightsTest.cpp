#include "lib/importer/CheckWeights.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

// Exactly what a model expects, as bfloat16.
std::vector<StoredTensor> storedFor(const ModelSpec &spec) {
  std::vector<StoredTensor> stored;
  for (const ExpectedTensor &expected : expectedTensors(spec))
    stored.push_back({expected.name, expected.shape, "BF16", 0});
  return stored;
}
StoredTensor &named(std::vector<StoredTensor> &stored, const std::string &name) {
  for (StoredTensor &tensor : stored)
    if (tensor.name == name)
      return tensor;
  ADD_FAILURE() << "no tensor " << name;
  return stored.front();
}
void drop(std::vector<StoredTensor> &stored, const std::string &name) {
  std::erase_if(stored, [&](const StoredTensor &tensor) { return tensor.name == name; });
}
std::string errorOf(ModelSpec spec, const std::vector<StoredTensor> &stored, const TensorsEqual &equal = nullptr) {
  Status status = checkWeights(spec, stored, equal);
  return status.ok() ? "" : status.message();
}

} // namespace

TEST(CheckWeights, EveryFamilyAcceptsWhatItExpects) {
  for (const char *name : {"llama-2", "llama-3.2", "mistral-swa", "qwen2", "qwen3", "gemma", "gemma-2", "gemma-3",
                           "phi-3", "olmo2", "smollm3", "granite", "exaone-4", "published/gemma-3-4b"}) {
    ModelSpec spec = resolved(name);
    EXPECT_EQ(errorOf(spec, storedFor(spec)), "") << name;
  }
}

TEST(CheckWeights, SlicesExpectTheWholeTensor) {
  for (const ExpectedTensor &expected : expectedTensors(resolved("phi-3")))
    if (expected.name == "model.layers.0.self_attn.qkv_proj.weight") {
      EXPECT_EQ(expected.shape, (std::vector<int64_t>{192, 64})); // 3 x 4 heads x 16
      return;
    }
  FAIL() << "not expected at all";
}

TEST(CheckWeights, StacksExpectATensorOfEveryExpert) {
  ModelSpec spec = resolved("llama-2");
  spec.weights.push_back({"experts", {3, 8, 4}, {{.tensor = "e.{expert}.w", .stack = 3}}, 0.0});
  spec.weights.push_back({"turned", {6, 5}, {{.tensor = "turned", .order = {1, 0}}}, 0.0});
  spec.weights.push_back({"kernel", {6, 4}, {{.tensor = "kernel", .dims = {6, 4}}}, 0.0});
  std::vector<StoredTensor> stored = storedFor(spec);
  EXPECT_EQ(named(stored, "e.2.w").shape, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(named(stored, "turned").shape, (std::vector<int64_t>{5, 6}));
  named(stored, "kernel").shape = {6, 1, 4}; // as many elements
  EXPECT_EQ(errorOf(spec, stored), "");
  named(stored, "kernel").shape = {6, 5};
  EXPECT_EQ(errorOf(spec, stored),
            "'kernel' has shape [6, 5], but the config makes it [6, 4] or as many elements in another shape");
  named(stored, "kernel").shape = {6, 4};
  named(stored, "e.1.w").shape = {4, 8};
  EXPECT_EQ(errorOf(spec, stored), "'e.1.w' has shape [4, 8], but the config makes it [8, 4]");
  drop(stored, "e.1.w");
  EXPECT_EQ(errorOf(spec, stored), "no 'e.1.w' is stored");
}

TEST(CheckWeights, Missing) {
  ModelSpec spec = resolved("llama-2");
  std::vector<StoredTensor> stored = storedFor(spec);
  drop(stored, "model.layers.2.self_attn.q_proj.weight");
  EXPECT_EQ(errorOf(spec, stored), "layer 2 of 4 has no 'self_attn.q_proj.weight'");
  drop(stored, "model.norm.weight");
  EXPECT_EQ(errorOf(spec, stored), "layer 2 of 4 has no 'self_attn.q_proj.weight' (and 1 more)");
  stored = storedFor(spec);
  drop(stored, "model.embed_tokens.weight");
  EXPECT_EQ(errorOf(spec, stored), "no 'model.embed_tokens.weight' is stored");
}

TEST(CheckWeights, AWholeLayerMissing) {
  Json config = changed("llama-2", {{"num_hidden_layers", 24}});
  ModelSpec spec = resolved(config);
  std::vector<StoredTensor> stored = storedFor(spec);
  std::erase_if(stored, [](const StoredTensor &tensor) { return tensor.name.find(".17.") != std::string::npos; });
  EXPECT_EQ(errorOf(spec, stored), "layer 17 of 24 has no 'input_layernorm.weight' (and 8 more)");
}

TEST(CheckWeights, Shapes) {
  ModelSpec spec = resolved("llama-2");
  std::vector<StoredTensor> stored = storedFor(spec);
  named(stored, "model.embed_tokens.weight").shape = {352, 64};
  EXPECT_EQ(errorOf(spec, stored), "vocab_size is 320, 'model.embed_tokens.weight' has 352 rows");
  stored = storedFor(spec);
  named(stored, "model.layers.1.mlp.down_proj.weight").shape = {96, 64};
  EXPECT_EQ(errorOf(spec, stored),
            "'model.layers.1.mlp.down_proj.weight' has shape [96, 64], but the config makes it [64, 96]");
  stored = storedFor(spec);
  named(stored, "model.layers.1.mlp.down_proj.weight").type = "I8";
  EXPECT_EQ(errorOf(spec, stored),
            "'model.layers.1.mlp.down_proj.weight' is stored as I8, and no scale beside it says how to "
            "read it");
}

TEST(CheckWeights, TablesOfIndicesAreIntegers) {
  ModelSpec spec = resolved("deepseek-v4");
  const std::string table = "layers.0.ffn.gate.tid2eid";
  std::vector<StoredTensor> stored = storedFor(spec);
  for (const char *type : {"I64", "I32"}) {
    named(stored, table).type = type;
    EXPECT_EQ(errorOf(spec, stored), "") << type;
  }
  named(stored, table).type = "I8";
  EXPECT_EQ(errorOf(spec, stored), "'" + table + "' is stored as I8, and no scale beside it says how to read it");
}

TEST(CheckWeights, LeftOver) {
  ModelSpec spec = resolved("llama-2");
  std::vector<StoredTensor> stored = storedFor(spec);
  stored.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {8}, "F32", 0});
  EXPECT_EQ(errorOf(spec, stored), "") << "known and computed from the config";
  stored.push_back({"model.layers.4.mlp.down_proj.weight", {64, 96}, "BF16", 0});
  EXPECT_EQ(errorOf(spec, stored),
            "tensor 'model.layers.4.mlp.down_proj.weight' is stored, but nothing in family 'llama' "
            "reads it");
}

TEST(CheckWeights, HeadThatTheConfigDoesNotDecide) {
  ModelSpec spec = resolved(without("llama-2", "tie_word_embeddings"));
  std::vector<StoredTensor> stored = storedFor(spec);
  drop(stored, "lm_head.weight");
  ASSERT_TRUE(checkWeights(spec, stored).ok());
  EXPECT_TRUE(spec.tiedHead);
  EXPECT_EQ(spec.weights.back().name, "final_norm");
  EXPECT_EQ(operandOf(spec.graph.step, "linear", 1).name, "embedding") << "in the graph too";
  EXPECT_EQ(spec.notes.back(),
            "no 'lm_head.weight' is stored and the config does not say whether the head is tied: it is");
}

TEST(CheckWeights, UntiedWithoutAHead) {
  ModelSpec spec = resolved("llama-2");
  std::vector<StoredTensor> stored = storedFor(spec);
  drop(stored, "lm_head.weight");
  EXPECT_EQ(errorOf(spec, stored),
            "tie_word_embeddings is false, but no 'lm_head.weight' is stored; set it to true if the "
            "embedding is the head");
}

TEST(CheckWeights, TiedYetAHeadIsStored) {
  ModelSpec spec = resolved("llama-3.2");
  std::vector<StoredTensor> stored = storedFor(spec);
  stored.push_back({"lm_head.weight", {320, 64}, "BF16", 0});
  auto answer = [](bool same) {
    return [same](const std::string &, const std::string &) -> StatusOr<bool> { return same; };
  };
  EXPECT_EQ(errorOf(spec, stored, answer(true)), "");
  EXPECT_EQ(errorOf(spec, stored, answer(false)),
            "the head is tied to 'model.embed_tokens.weight', and 'lm_head.weight' is stored too and differs; "
            "tie_word_embeddings has to be false for it to count");
  ASSERT_TRUE(checkWeights(spec, stored).ok());
  EXPECT_EQ(spec.notes.back(),
            "the head is tied to 'model.embed_tokens.weight', and 'lm_head.weight' is stored too; taken to be equal");
}

// The text model of another one may say more than the whole, and the two may disagree.
TEST(CheckWeights, TiesInsideAndOutside) {
  Json config = configOf("published/gemma-3-4b");
  config["text_config"]["tie_word_embeddings"] = false;
  EXPECT_TRUE(resolved(config).tiedHeadStated) << "said inside alone";
  EXPECT_FALSE(resolved(config).tiedHead);
  config["tie_word_embeddings"] = true;
  ModelSpec spec = resolved(config);
  EXPECT_EQ(spec.notes.back(), "/tie_word_embeddings is true, /text_config/tie_word_embeddings is false: whether a "
                               "head is stored decides");
  std::vector<StoredTensor> stored = storedFor(spec);
  ModelSpec untied = spec;
  ASSERT_EQ(errorOf(untied, stored), "");
  ASSERT_TRUE(checkWeights(untied, stored).ok());
  EXPECT_FALSE(untied.tiedHead);
  std::erase_if(stored, [](const StoredTensor &tensor) { return tensor.name.find("lm_head") != std::string::npos; });
  ASSERT_TRUE(checkWeights(spec, stored).ok());
  EXPECT_TRUE(spec.tiedHead);
}

TEST(CheckWeights, OtherSpellingOfThePrefix) {
  ModelSpec spec = resolved("published/gemma-3-4b");
  std::vector<StoredTensor> stored = storedFor(spec);
  for (StoredTensor &tensor : stored)
    tensor.name = "model.language_model." + tensor.name.substr(std::string("language_model.model.").size());
  stored.push_back({"model.vision_tower.vision_model.encoder.layers.0.layer_norm1.weight", {1152}, "BF16", 0});
  ASSERT_EQ(errorOf(spec, stored), "");
  ASSERT_TRUE(checkWeights(spec, stored).ok());
  EXPECT_EQ(spec.weights[0].sources[0].tensor, "model.language_model.embed_tokens.weight");
  WeightSource stack{.tensor = "language_model.model.e.{expert}.w", .stack = 2};
  spec.weights.push_back({"experts", {2, 8, 4}, {stack}, 0.0});
  stored.push_back({"model.language_model.e.0.w", {8, 4}, "BF16", 0});
  stored.push_back({"model.language_model.e.1.w", {8, 4}, "BF16", 0});
  ASSERT_EQ(errorOf(spec, stored), "");
  ASSERT_TRUE(checkWeights(spec, stored).ok());
  EXPECT_EQ(spec.weights.back().sources[0].tensor, "model.language_model.e.{expert}.w");
}

TEST(CheckWeights, PackedWeights) {
  ModelSpec spec = resolved("published/qwen3-4b-awq");
  std::vector<StoredTensor> stored = storedFor(spec);
  named(stored, "model.layers.0.self_attn.q_proj.weight").name = "model.layers.0.self_attn.q_proj.qweight";
  EXPECT_EQ(errorOf(spec, stored),
            "layer 0 of 36 has no 'self_attn.q_proj.weight'; the files pack weights as 'awq', where "
            "plain tensors are expected");
}

TEST(CheckWeights, AStackOfExperts) {
  Json family = tinyFamily();
  family["blocks"]["layer(h)"] = {"w, chosen = router(linear(h, gate, 6), 2)",
                                  "h + combine(expert_linear(h, experts, 6, hidden, chosen), w)"};
  family["config"]["weights"]["gate"] = "gate.weight";
  family["config"]["weights"]["experts"] = {{"tensor", "experts.{expert}.weight"}, {"stack", 6}};
  ModelSpec spec = resolvedTiny(family);
  std::vector<StoredTensor> stored = storedFor(spec);
  EXPECT_EQ(named(stored, "layers.3.experts.5.weight").shape, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(errorOf(spec, stored), "");
  drop(stored, "layers.3.experts.5.weight");
  EXPECT_EQ(errorOf(spec, stored), "layer 3 of 4 has no 'experts.5.weight'");
}

TEST(CheckWeights, AViewMayBeStoredInAnotherShape) {
  Json family = tinyFamily();
  family["config"]["weights"]["mix"] = {{"tensor", "mix.weight"}, {"dims", {8, 2, 4}}, {"order", {0, 2, 1}}};
  ModelSpec spec = resolvedTiny(family);
  std::vector<StoredTensor> stored = storedFor(spec);
  named(stored, "layers.1.mix.weight").shape = {8, 8};
  EXPECT_EQ(errorOf(spec, stored), "");
  named(stored, "layers.1.mix.weight").shape = {8, 9};
  EXPECT_EQ(errorOf(spec, stored),
            "'layers.1.mix.weight' has shape [8, 9], but the config makes it [8, 2, 4] or as many "
            "elements in another shape");
}
