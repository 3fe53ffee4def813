// Published configs and shrunk ones to facts.
#include "lib/importer/Inspect.h"
#include "lib/importer/StoredForms.h"
#include "test/lib/importer/ImporterTesting.h"
#include <cmath>

using namespace llmc;
using namespace llmc::fixture;

namespace {

struct Published {
  const char *name;
  const char *family;
  uint64_t parameters; // of the text, each tensor once
  int64_t heads, kvHeads, headDim;
  bool tied;
};

const Published published[] = {
    {"llama-2-7b", "llama", 6'738'415'616, 32, 32, 128, false},
    {"llama-3-8b", "llama", 8'030'261'248, 32, 8, 128, false},
    {"llama-3.1-8b", "llama", 8'030'261'248, 32, 8, 128, false},
    {"llama-3.2-1b", "llama", 1'235'814'400, 32, 8, 64, true},
    {"smollm-1.7b", "llama", 1'711'376'384, 32, 32, 64, true},
    {"eeve-10.8b-solar", "llama", 10'804'924'416, 32, 8, 128, false},
    {"granite-3b-code-128k", "llama", 3'482'503'680, 32, 32, 80, true},
    {"mistral-7b-v0.1", "mistral", 7'241'732'096, 32, 8, 128, false},
    {"mistral-nemo-12b", "mistral", 12'247'782'400, 32, 8, 128, false}, // head_dim is not hidden / heads = 160
    {"qwen1.5-4b-chat", "qwen2", 3'950'369'280, 20, 20, 128, false},
    {"qwen2-7b", "qwen2", 7'615'616'512, 28, 4, 128, false},
    {"cogito-qwen-14b", "qwen2", 14'765'947'904, 40, 8, 128, false},
    {"qwen3-0.6b", "qwen3", 596'049'920, 16, 8, 128, true}, // head_dim is not hidden / heads = 64
    {"qwen3-4b-awq", "qwen3", 4'022'468'096, 32, 8, 128, true},
    {"qwen3-0.6b-gptq-int8", "qwen3", 596'049'920, 16, 8, 128, true},
    {"qwen3-32b", "qwen3", 32'762'123'264, 64, 8, 128, false},
    {"gemma-2b", "gemma", 2'506'172'416, 8, 1, 256, true},
    {"gemma-7b", "gemma", 8'537'680'896, 16, 16, 256, true},
    {"gemma-2-2b", "gemma-2", 2'614'341'888, 8, 4, 256, true},
    {"gemma-3-1b", "gemma-3", 999'885'952, 4, 1, 256, true},
    {"gemma-3-4b", "gemma-3", 3'880'263'168, 8, 4, 256, true},
    {"phi-3-mini-4k", "phi-3", 3'821'079'552, 32, 32, 96, false},
    {"phi-3.5-mini", "phi-3", 3'821'079'552, 32, 32, 96, false},
    {"phi-4-mini-reasoning", "phi-3", 3'836'021'760, 24, 8, 128, true},
    {"olmo2-7b", "olmo2", 7'298'617'344, 32, 32, 128, false},
    {"smollm3-3b", "smollm3", 3'075'098'624, 16, 4, 128, true},
    {"granite-3.3-8b", "granite", 8'170'864'640, 32, 8, 128, true},
    {"exaone-4.0-32b", "exaone-4", 32'003'216'384, 40, 8, 128, false},
};

// Products of the first layer that add a bias.
int64_t biasedLinears(const ModelSpec &spec) {
  std::vector<GraphNode> linears = nodesOf(kindOf(spec), "linear");
  return std::count_if(linears.begin(), linears.end(), [](const GraphNode &node) { return node.operands.size() == 3; });
}

using Ops = std::vector<std::string>;
using Ropes = std::vector<std::string>;
Ops firstOps(const ModelSpec &spec, size_t count) {
  Ops ops = opsOf(kindOf(spec));
  ops.resize(std::min(ops.size(), count));
  return ops;
}
Ops lastOps(const ModelSpec &spec, size_t count) {
  Ops ops = opsOf(kindOf(spec));
  ops.erase(ops.begin(), ops.end() - static_cast<int64_t>(std::min(ops.size(), count)));
  return ops;
}

} // namespace

TEST(ResolveModel, PublishedModels) {
  for (const Published &model : published) {
    SCOPED_TRACE(model.name);
    ModelSpec spec = resolved(std::string("published/") + model.name);
    if (spec.layers == 0)
      continue;
    EXPECT_EQ(spec.family, model.family);
    EXPECT_EQ(countParameters(spec).text, model.parameters);
    GraphValue query = operandOf(kindOf(spec), "attention", 0), cache = operandOf(kindOf(spec), "attention", 1);
    EXPECT_EQ(query.heads, model.heads);
    EXPECT_EQ(query.channels, model.headDim);
    EXPECT_EQ(cache.state, (StateShape{true, model.kvHeads, model.headDim, model.headDim, false}));
    EXPECT_EQ(spec.tiedHead, model.tied);
    EXPECT_TRUE(spec.unknownKeys.empty());
  }
}

TEST(ResolveModel, LlamaIsPlain) {
  ModelSpec spec = resolved("llama-2");
  EXPECT_EQ(spec.hidden, 64);
  EXPECT_EQ(spec.vocabulary, 320);
  EXPECT_EQ(spec.context, 4096);
  EXPECT_EQ(spec.layers, 4);
  EXPECT_EQ(spec.graph.kindOfLayer, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(opsOf(kindOf(spec)),
            (std::vector<std::string>{
                "rms_norm", "linear",      "linear",    "linear",           "split_heads", "split_heads", "rope",
                "rope",     "split_heads", "kv_append", "attention",        "merge_heads", "linear",      "add",
                "rms_norm", "linear",      "linear",    "gated_activation", "linear",      "add"}));
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "rms_norm", "eps"), 1e-5);
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "attention", "scale"), 0.25); // 1 / sqrt(16)
  EXPECT_EQ(attributeOf<std::string>(kindOf(spec), "gated_activation", "activation"), "silu");
  EXPECT_EQ(spec.weights.front().name, "embedding");
  EXPECT_EQ(spec.weights[1].name, "layers.0.attention_norm");
  EXPECT_EQ(spec.weights[2].sources[0].tensor, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(spec.weights.back().name, "head");
  EXPECT_EQ(factOf(spec, "head_dim"), "16 (computed: hidden / heads)");
  EXPECT_EQ(factOf(spec, "heads"), "4 (stated as /num_attention_heads)");
  EXPECT_EQ(factOf(spec, "full.rope_theta"), "10000 (class default)");
}

TEST(ResolveModel, TiedHeadIsNoWeight) {
  ModelSpec spec = resolved("llama-3.2");
  EXPECT_TRUE(spec.tiedHead);
  EXPECT_EQ(spec.weights.back().name, "final_norm");
}

TEST(ResolveModel, BiasesAreWeights) {
  ModelSpec spec = resolved("published/granite-3b-code-128k");
  EXPECT_EQ(biasedLinears(spec), 7) << "query, key, value, output, gate, up, down";
  EXPECT_EQ(spec.weights[3].name, "layers.0.attention.query.bias");
  EXPECT_EQ(spec.weights[3].sources[0].tensor, "model.layers.0.self_attn.q_proj.bias");
  EXPECT_EQ(spec.weights[3].shape, std::vector<int64_t>{2560});
  ModelSpec qwen = resolved("qwen2");
  EXPECT_EQ(biasedLinears(qwen), 3) << "query, key and value, though no key states it";
}

TEST(ResolveModel, MistralSlidesEverywhere) {
  EXPECT_EQ(windowsOf(resolved("mistral-swa")), (std::vector<int64_t>{8, 8, 8, 8}));
  EXPECT_EQ(windowsOf(resolved("published/mistral-nemo-12b"))[0], 0) << "null switches it off";
  Json config = without("mistral-swa", "sliding_window");
  EXPECT_EQ(windowsOf(resolved(config))[0], 4096) << "the class default";
}

TEST(ResolveModel, QwenDeclaresAWindowThatIsOff) {
  EXPECT_EQ(windowsOf(resolved("qwen2")), (std::vector<int64_t>{0, 0, 0, 0}));
  ModelSpec on = resolved(changed("qwen2", {{"use_sliding_window", true}, {"max_window_layers", 2}}));
  EXPECT_EQ(windowsOf(on), (std::vector<int64_t>{0, 0, 8, 8})) << "from layer max_window_layers on";
  EXPECT_EQ(factOf(resolved("qwen2"), "window"), "0 (switched off by use_sliding_window)");
}

TEST(ResolveModel, GemmaStoresNormsAroundZero) {
  ModelSpec spec = resolved("gemma");
  EXPECT_EQ(spec.weights[1].add, 1.0);
  EXPECT_EQ(spec.weights[2].add, 0.0) << "linear weights are as stored";
  EXPECT_EQ(attributeOf<double>(spec.graph.step, "embedding", "scale"), 8.0); // sqrt(64)
  EXPECT_EQ(attributeOf<std::string>(kindOf(spec), "gated_activation", "activation"), "gelu_tanh")
      << "published as \"gelu\"";
}

TEST(ResolveModel, Gemma2AlternatesAndCaps) {
  ModelSpec spec = resolved("gemma-2");
  EXPECT_EQ(windowsOf(spec), (std::vector<int64_t>{8, 0, 8, 0}));
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "attention", "softcap"), 50.0);
  EXPECT_EQ(attributeOf<double>(spec.graph.step, "softcap", "cap"), 30.0);
  // query_pre_attn_scalar 256, not head_dim 16
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "attention", "scale"), 1.0 / 16.0);
  EXPECT_EQ(firstOps(spec, 2), (Ops{"rms_norm", "linear"}));
  EXPECT_EQ(lastOps(spec, 3), (Ops{"linear", "rms_norm", "add"}));
  ModelSpec uncapped = resolved(changed("gemma-2", {{"attn_logit_softcapping", nullptr}}));
  EXPECT_EQ(attributeOf<double>(kindOf(uncapped), "attention", "softcap"), 0.0);
}

TEST(ResolveModel, Gemma3HasTwoRopes) {
  ModelSpec spec = resolved("gemma-3");
  EXPECT_EQ(windowsOf(spec), (std::vector<int64_t>{8, 8, 0, 8})); // sliding_window_pattern 3
  EXPECT_EQ(ropesOf(spec), (Ropes{"sliding", "sliding", "full", "sliding"}));
  EXPECT_EQ(spec.ropes["full"].frequencies,
            resolved(changed("llama-2", {{"rope_theta", 1000000}})).ropes["full"].frequencies);
  // base 10000, 16 channels
  EXPECT_EQ(spec.ropes["sliding"].frequencies, resolved("llama-2").ropes["full"].frequencies);
  EXPECT_EQ(firstOps(spec, 8),
            (Ops{"rms_norm", "linear", "linear", "linear", "split_heads", "rms_norm", "split_heads", "rms_norm"}))
      << "norms of query and key, per head";
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "attention", "scale"), 1.0 / std::sqrt(24.0));
}

TEST(ResolveModel, Gemma3InsideTextConfig) {
  ModelSpec spec = resolved("published/gemma-3-4b");
  EXPECT_EQ(spec.layers, 34);
  EXPECT_EQ(spec.weights[0].sources[0].tensor, "language_model.model.embed_tokens.weight");
  EXPECT_EQ(factOf(spec, "hidden"), "2560 (stated as /text_config/hidden_size)");
  EXPECT_EQ(factOf(spec, "kv_heads"), "4 (class default)");
  // The scaling is for the global layers alone.
  EXPECT_EQ(spec.ropes["full"].frequencies[0], 0.125f);
  EXPECT_EQ(spec.ropes["sliding"].frequencies[0], 1.0f);
}

TEST(ResolveModel, Phi3SlicesFusedTensors) {
  ModelSpec spec = resolved("phi-3");
  const WeightSpec &key = spec.weights[3];
  EXPECT_EQ(key.name, "layers.0.attention.key");
  EXPECT_EQ(key.sources[0].tensor, "model.layers.0.self_attn.qkv_proj.weight");
  EXPECT_EQ(*key.sources[0].rows, (std::pair<int64_t, int64_t>(64, 128)));
  EXPECT_EQ(*spec.weights[8].sources[0].rows, (std::pair<int64_t, int64_t>(96, 192))); // mlp.up
  EXPECT_EQ(windowsOf(spec), (std::vector<int64_t>{8, 8, 8, 8}));
}

TEST(ResolveModel, AWindowAsLongAsTheContextIsNone) {
  ModelSpec spec = resolved("published/phi-3.5-mini");
  EXPECT_EQ(windowsOf(spec)[0], 0);
  ASSERT_EQ(spec.notes.size(), 2u);
  EXPECT_EQ(spec.notes[0], "sliding_window 262144 is not below the context 131072: no layer slides");
  EXPECT_EQ(spec.notes[1], "auto_map is ignored, llmc runs no code from a model");
}

TEST(ResolveModel, OlmoNormsOnlyAfter) {
  ModelSpec spec = resolved("olmo2");
  EXPECT_EQ(firstOps(spec, 7),
            (Ops{"linear", "linear", "linear", "rms_norm", "split_heads", "rms_norm", "split_heads"}))
      << "query and key over their whole width";
  EXPECT_EQ(lastOps(spec, 3), (Ops{"linear", "rms_norm", "add"}));
  EXPECT_EQ(spec.weights[4].name, "layers.0.attention.query_norm");
  EXPECT_EQ(spec.weights[4].shape, std::vector<int64_t>{64});
}

TEST(ResolveModel, SmolLm3LeavesLayersUnturned) {
  EXPECT_EQ(ropesOf(resolved("smollm3")), (Ropes{"full", "full", "full", ""}));
  Json byInterval = changed("smollm3", {{"no_rope_layers", nullptr}, {"no_rope_layer_interval", 2}});
  EXPECT_EQ(ropesOf(resolved(byInterval)), (Ropes{"full", "", "full", ""}));
  EXPECT_TRUE(resolved("smollm3").tiedHead) << "by the class default";
}

TEST(ResolveModel, ADisagreementOfPatternsIsNoted) {
  ModelSpec spec = resolved(changed("smollm3", {{"no_rope_layer_interval", 2}}));
  EXPECT_EQ(ropesOf(spec), (Ropes{"full", "full", "full", ""})) << "the list counts";
  ASSERT_EQ(spec.notes.size(), 1u);
  EXPECT_EQ(spec.notes[0],
            "computed: by no_rope_layer_interval disagrees with stated as /no_rope_layers, which counts");
}

TEST(ResolveModel, GraniteMultiplies) {
  ModelSpec spec = resolved("granite");
  EXPECT_EQ(attributeOf<double>(spec.graph.step, "embedding", "scale"), 1.5);
  EXPECT_EQ(attributeOf<double>(spec.graph.step, "scale", "factor"), 0.5); // 1 / logits_scaling
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "scale", "factor"), 0.9);
  EXPECT_EQ(nodesOf(kindOf(spec), "scale").size(), 2u) << "what the attention adds and what the MLP adds";
  EXPECT_EQ(attributeOf<double>(kindOf(spec), "attention", "scale"), 0.0078125);
}

TEST(ResolveModel, ExaoneTurnsOnlyWhatSlides) {
  ModelSpec spec = resolved("exaone-4");
  EXPECT_EQ(windowsOf(spec), (std::vector<int64_t>{8, 8, 8, 0}));
  EXPECT_EQ(ropesOf(spec), (Ropes{"full", "full", "full", ""}));
  ModelSpec letters = resolved(without("exaone-4", "layer_types"));
  EXPECT_EQ(windowsOf(letters), windowsOf(spec)) << "sliding_window_pattern LLLG says the same";
  Json full =
      changed("exaone-4", {{"sliding_window", nullptr}, {"layer_types", nullptr}, {"sliding_window_pattern", nullptr}});
  EXPECT_EQ(ropesOf(resolved(full)), (Ropes{"full", "full", "full", "full"})) << "without a window all layers turn";
}

TEST(ResolveModel, BothSpellingsOfARopeAgree) {
  Json neu = configOf("llama-3.2");
  Json rope = neu["rope_scaling"];
  rope["rope_theta"] = neu["rope_theta"];
  neu["rope_parameters"] = rope;
  neu.erase("rope_scaling");
  neu.erase("rope_theta");
  EXPECT_EQ(resolved(neu).ropes["full"].frequencies, resolved("llama-3.2").ropes["full"].frequencies);
  Json gemma = without(("gemma-3"), "rope_theta");
  gemma.erase("rope_local_base_freq");
  gemma["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1000000}}},
                              {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000}}}};
  EXPECT_EQ(resolved(gemma).ropes["full"].frequencies, resolved("gemma-3").ropes["full"].frequencies);
  EXPECT_EQ(resolved(gemma).ropes["sliding"].frequencies, resolved("gemma-3").ropes["sliding"].frequencies);
}

TEST(ResolveModel, QuantizationIsAFact) {
  ModelSpec spec = resolved("published/qwen3-4b-awq");
  EXPECT_EQ(spec.quantization, "awq");
  EXPECT_NE(spec.quantizationDetails.find("\"group_size\":128"), std::string::npos);
}

TEST(ResolveModel, ByModelTypeWhereNoClassIsNamed) {
  EXPECT_EQ(resolved(without("llama-2", "architectures")).family, "llama");
}

TEST(ResolveModel, IgnoredKeysAreListed) {
  ModelSpec spec = resolved("llama-2");
  auto has = [&](const std::string &key) {
    return std::find(spec.ignoredKeys.begin(), spec.ignoredKeys.end(), key) != spec.ignoredKeys.end();
  };
  EXPECT_TRUE(has("/pretraining_tp"));
  EXPECT_FALSE(has("/hidden_size"));
  ModelSpec harmless = resolved(changed("llama-2", {{"moe_layers", Json::array()}, {"use_twist", false}}));
  EXPECT_NE(std::find(harmless.ignoredKeys.begin(), harmless.ignoredKeys.end(), "/use_twist"),
            harmless.ignoredKeys.end());
}

TEST(ResolveModel, UnknownKeysMayBeReportedInstead) {
  StatusOr<ModelSpec> spec =
      resolveModel(descriptions(), HuggingFaceConfig(changed("llama-2", {{"twist", 3}})), UnknownKeys::Report);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->unknownKeys, std::vector<std::string>{"/twist"});
}

TEST(ResolveModel, KimiK3SpellsItsOwnKeys) {
  ModelSpec spec = resolved("published/kimi-k3");
  ParameterCounts counts = countParameters(spec);
  EXPECT_EQ(counts.total, 2'779'931'834'976u); // with the image tower, as published; a latent width left out doubles it
  EXPECT_EQ(counts.active, 104'189'598'304u);
  int64_t delta = 0, latent = 0;
  for (int kind : spec.graph.kindOfLayer) {
    const std::string &name = spec.graph.kinds[static_cast<size_t>(kind)].name;
    delta += name.rfind("delta_attention", 0) == 0;
    latent += name.rfind("latent_attention", 0) == 0;
  }
  EXPECT_EQ(delta, 69);
  EXPECT_EQ(latent, 24);
  StateBytes state = stateBytes(spec);
  EXPECT_EQ(state.perToken, 24u * 576 * 2);
  EXPECT_EQ(state.perSequence, 69u * (96 * 128 * 128 * 4 + 3 * 3 * 96 * 128 * 2)); // 428.6 MiB
  StoredTotals stored = storedTotals(spec);
  EXPECT_EQ(stored.tensors, 497'220u);
  EXPECT_EQ(stored.bytes, 1'560'860'324'864u);
}

TEST(ResolveModel, LayersWithoutAttentionOrOfAnotherWidth) {
  auto block = [](const Json &heads, bool attends, const Json &ratio, bool feeds) {
    return Json{{"attention", {{"n_heads_in_group", heads}, {"no_op", !attends}, {"replace_with_linear", false},
                               {"window_length", nullptr}, {"num_sink_tokens", nullptr}}},
                {"ffn", {{"ffn_mult", ratio}, {"no_op", !feeds}, {"replace_with_linear", false}}}};
  };
  Json config = changed("llama-3.2", {{"architectures", {"DeciLMForCausalLM"}}, {"intermediate_size", nullptr},
                                      {"num_key_value_heads", nullptr}, {"num_hidden_layers", 3}, {"tie_word_embeddings", false}});
  config["block_configs"] = {block(2, true, 5.25, true), block(nullptr, false, 2.625, true), block(4, true, nullptr, false)};
  ModelSpec spec = resolved(config);
  ASSERT_EQ(spec.graph.kindOfLayer, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(spec.graph.kinds[1].name, "no_attention_mlp");
  EXPECT_TRUE(nodesOf(kindOf(spec, 1), "attention").empty());
  EXPECT_EQ(nodesOf(kindOf(spec, 2), "gated_activation").size(), 0u);
  EXPECT_EQ(operandOf(kindOf(spec, 0), "attention", 1).state.heads, 2);
  config["block_configs"][1]["attention"].erase("no_op");
  EXPECT_NE(errorOf(config).find("/block_configs/1/attention/no_op is absent"), std::string::npos);
  config["block_configs"][1]["attention"]["no_op"] = true;
  config["block_configs"][0]["attention"]["num_sink_tokens"] = 4;
  EXPECT_NE(errorOf(config).find("num_sink_tokens is 4"), std::string::npos);
}

TEST(ResolveModel, KnownAndNotRun) {
  ModelSpec draft = resolved("published/qwen3-8b-dflash-draft");
  EXPECT_FALSE(draft.isWired());
  // Five layers of 192.9 M and the projection of five hidden states; embedding and head are another model's.
  EXPECT_EQ(countParameters(draft).total, 5u * (4096 * 128 * (32 + 8 + 8 + 32) + 2 * 128 + 3 * 4096 * 12288 + 2 * 4096) +
                                              5u * 4096 * 4096 + 2 * 4096);
  EXPECT_EQ(draft.missing.front().name, "draft: target_hidden");
  EXPECT_EQ(resolved("published/zamba2-2.7b-native").family, "zamba2-native");
}

TEST(ResolveModel, AFactSaysWhetherItsKeyIsTheUsualOne) {
  EXPECT_EQ(factOf(resolved("published/qwen3-0.6b"), "weight_type"), "bfloat16 (aliased: stated as /torch_dtype)");
  EXPECT_EQ(factOf(resolved("llama-2"), "hidden"), "64 (stated as /hidden_size)");
}
