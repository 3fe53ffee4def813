// Configs that must not resolve, each with its message.
#include "test/lib/importer/ImporterTesting.h"
#include <ctime>
#include <limits>

using namespace llmc;
using namespace llmc::fixture;

namespace {
std::string with(const Json &keys, const std::string &name = "llama-2") { return errorOf(changed(name, keys)); }
bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }
} // namespace

TEST(ResolveModelErrors, Architecture) {
  std::string message = with({{"architectures", {"LamaForCausalLM"}}});
  EXPECT_TRUE(contains(
      message, "architecture 'LamaForCausalLM' is unknown (nearest = LlamaForCausalLM, "))
      << message;
  EXPECT_TRUE(contains(with({{"architectures", {"Evil"}}}), "architecture 'Evil' is unknown (nearest = "));
  EXPECT_EQ(errorOf(Json::object()), "config.json names no architecture: no 'architectures', no 'model_type'");
  EXPECT_EQ(errorOf({{"peft_type", "LORA"}}), "this is an adapter; the base model is missing");
  EXPECT_TRUE(contains(errorOf({{"model_type", "lama"}}),
                       "architecture 'lama' is unknown (nearest = llama, "));
  EXPECT_TRUE(contains(errorOf(changed("llama-2", {{"architectures", {"LlamaForCausalLMWithMore"}}})), "'LlamaForCausalLMWithMore' is unknown"))
      << "the known model_type is not enough";
  EXPECT_LT(with({{"architectures", {std::string(1'000'000, 'x')}}}).size(), 1000u);
}

TEST(ResolveModelErrors, Counts) {
  EXPECT_EQ(with({{"num_attention_heads", 0}}), "/num_attention_heads is 0, expected an integer from 1 to 65536");
  EXPECT_EQ(with({{"num_attention_heads", -4}}), "/num_attention_heads is -4, expected an integer from 1 to 65536");
  EXPECT_EQ(with({{"num_attention_heads", 1e99}}),
            "/num_attention_heads is 1e+99, expected an integer from 1 to 65536");
  EXPECT_EQ(with({{"num_attention_heads", "32"}}),
            "/num_attention_heads is \"32\", expected an integer from 1 to 65536");
  EXPECT_EQ(with({{"num_attention_heads", 2.5}}), "/num_attention_heads is 2.5, expected an integer from 1 to 65536");
  EXPECT_EQ(errorOf(without("llama-2", "num_attention_heads")),
            "config.json has no 'num_attention_heads' (query heads)");
  EXPECT_EQ(with({{"num_hidden_layers", 1'000'000'000}}),
            "/num_hidden_layers is 1000000000, expected an integer from 1 to 4096");
  EXPECT_EQ(with({{"hidden_size", std::numeric_limits<uint64_t>::max()}}),
            "/hidden_size is 18446744073709551615, expected an integer from 1 to 16777216");
  EXPECT_EQ(with({{"max_position_embeddings", int64_t(1) << 31}}),
            "/max_position_embeddings is 2147483648, expected an integer from 1 to 1073741824");
  EXPECT_EQ(with({{"vocab_size", 0}}), "/vocab_size is 0, expected an integer from 1 to 16777216");
  EXPECT_EQ(with({{"head_dim", 1e9}}), "/head_dim is 1000000000.0, expected an integer from 1 to 65536");
}

TEST(ResolveModelErrors, SizesThatDoNotDivide) {
  EXPECT_EQ(with({{"hidden_size", 2560}, {"num_attention_heads", 24}}),
            "hidden_size 2560 is not a multiple of num_attention_heads 24, and no head_dim is given");
  EXPECT_TRUE(contains(with({{"num_key_value_heads", 3}}), ": attend: 'query' is 4 x 16, the keys 3 x 16"));
  EXPECT_TRUE(contains(with({{"num_key_value_heads", 8}}), ": attend: 'query' is 4 x 16, the keys 8 x 16"));
  EXPECT_EQ(with({{"head_dim", 15}}), "the rotary width is 15 of head_dim 15, expected an even number of at least 2");
}

TEST(ResolveModelErrors, Numbers) {
  EXPECT_EQ(with({{"rms_norm_eps", 0}}), "/rms_norm_eps is 0, expected a finite number above 0");
  EXPECT_EQ(with({{"rms_norm_eps", 1e99}}), "/rms_norm_eps is 1e+99, expected a finite number above 0");
  EXPECT_EQ(with({{"rms_norm_eps", 1e-99}}), "/rms_norm_eps is 1e-99, expected a finite number above 0");
  EXPECT_EQ(with({{"rms_norm_eps", -1e-5}}), "/rms_norm_eps is -1e-05, expected a finite number above 0");
  EXPECT_EQ(with({{"rms_norm_eps", std::numeric_limits<double>::infinity()}}),
            "/rms_norm_eps is Infinity, expected a finite number above 0");
  EXPECT_EQ(with({{"final_logit_softcapping", -1}}, "gemma-2"),
            "/final_logit_softcapping is -1, expected a finite number of at least 0");
  EXPECT_EQ(with({{"logits_scaling", 0}}, "granite"), "'1 / logits_divisor': 1 / 0 has no value");
  EXPECT_EQ(with({{"tie_word_embeddings", "yes"}}), "/tie_word_embeddings is \"yes\", expected true or false");
}

TEST(ResolveModelErrors, Words) {
  EXPECT_EQ(with({{"hidden_act", "relu7"}}),
            "/hidden_act 'relu7' is unknown (known = gelu, gelu_new, gelu_pytorch_tanh, silu, swish)");
  EXPECT_EQ(with({{"quantization_config", {{"quant_method", "foo"}}}}),
            "quantization_config/quant_method 'foo' is unknown (known = awq, compressed-tensors, fp8, gptq, modelopt, "
            "mxfp4)");
}

TEST(ResolveModelErrors, KeysThatMayChangeTheMaths) {
  EXPECT_EQ(with({{"num_experts", 8}}),
            "config.json has a key that family 'llama' does not know and that may change the maths: /num_experts; "
            "describe or ignore it in the family's model description");
  EXPECT_TRUE(contains(with({{"num_experts", 8}, {"twist", 1.5}}), "keys that family 'llama' does not know"));
  EXPECT_TRUE(contains(with({{"attention_bias", true}}, "exaone-4"), "/attention_bias")) << "no bias in this family";
  EXPECT_TRUE(contains(with({{"use_bidirectional_attention", true}}, "gemma-3"), "/use_bidirectional_attention"));
  Json nested = configOf("published/gemma-3-4b");
  nested["text_config"]["twist"] = 1;
  EXPECT_TRUE(contains(errorOf(nested), ": /text_config/twist;"));
  Json phi = configOf("published/phi-4-mini-reasoning");
  phi["full_attn_mod"] = 2;
  EXPECT_EQ(errorOf(phi), "/full_attn_mod is 2, but only 1 is supported");
}

TEST(ResolveModelErrors, TwoKeysOfOneFact) {
  EXPECT_EQ(with({{"dtype", "float32"}}),
            "/dtype is \"float32\", but /torch_dtype is \"float16\"; both state the same fact");
}

TEST(ResolveModelErrors, Rope) {
  EXPECT_EQ(with({{"rope_theta", 0}}), "/rope_theta is 0, expected a number above 1 and below 1000000000000");
  EXPECT_EQ(with({{"rope_theta", std::numeric_limits<double>::quiet_NaN()}}),
            "/rope_theta is NaN, expected a number above 1 and below 1000000000000");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "foo"}, {"factor", 2}}}}),
            "/rope_scaling/type 'foo' is unknown (known = default, linear, llama3, longrope, proportional, yarn)");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}}),
            "/rope_scaling/type 'dynamic' is unknown (known = default, linear, llama3, longrope, proportional, yarn)");
  EXPECT_EQ(with({{"rope_scaling", {{"factor", 2}}}}), "/rope_scaling has no 'rope_type'");
  EXPECT_EQ(with({{"rope_scaling", "linear"}}), "/rope_scaling is \"linear\", expected an object");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "linear"}}}}),
            "/rope_scaling has no 'factor', which rope type 'linear' needs");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "linear"}, {"factor", "x"}}}}),
            "/rope_scaling/factor is \"x\", expected a number");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "linear"}, {"factor", 0}}}}),
            "/rope_scaling/factor is 0, expected a number above 0 and below 1000000000000");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "linear"}, {"rope_type", "yarn"}, {"factor", 2}}}}),
            "/rope_scaling/rope_type is \"yarn\", but /rope_scaling/type is \"linear\"; both state the kind of rope");
  EXPECT_EQ(with({{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"mrope_section", {4, 2, 2}}}}}),
            "/rope_scaling/mrope_section is [4,2,2], which rope type 'linear' does not read; it may change the maths");
  EXPECT_EQ(with({{"rope_parameters", {{"rope_type", "default"}}}}),
            "/rope_parameters has no 'rope_theta'; a default would be a guess");
  EXPECT_EQ(with({{"rope_theta", 10000}, {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500000}}}}),
            "/rope_parameters/rope_theta is 500000, but /rope_theta is 10000; both state the base of the rope");
  EXPECT_EQ(with({{"partial_rotary_factor", 1.5}}),
            "/partial_rotary_factor is 1.5, expected a fraction above 0, at most 1");
  Json phi = configOf("phi-3.5");
  phi["rope_scaling"]["long_factor"].erase(0);
  EXPECT_EQ(errorOf(phi), "/rope_scaling/long_factor has 7 entries, expected 8, half of the rotary width 16");
}

TEST(ResolveModelErrors, ListsPerLayer) {
  EXPECT_EQ(with({{"layer_types", {"full_attention", "full_attention"}}}, "smollm3"),
            "/layer_types has 2 entries, but num_hidden_layers is 4");
  EXPECT_EQ(with({{"no_rope_layers", {1, 1, 1, 0, 1}}}, "smollm3"),
            "/no_rope_layers has 5 entries, but num_hidden_layers is 4");
  EXPECT_EQ(with({{"no_rope_layers", {1, 1, 1, 2}}}, "smollm3"),
            "/no_rope_layers/3 is 2, which is unknown (known = 1, 0)");
  EXPECT_EQ(with({{"layer_types", 3}}, "smollm3"), "/layer_types is 3, expected a list with an entry per layer");
  EXPECT_EQ(with({{"layer_types", {"mamba", "full_attention", "full_attention", "full_attention"}}}, "qwen3"),
            "/layer_types/0 is \"mamba\", which is unknown (known = sliding_attention, full_attention)");
  EXPECT_EQ(with({{"sliding_window_pattern", 0}}, "gemma-3"), "sliding_window_pattern is 0, expected at least 1");
  EXPECT_EQ(with({{"layer_types", nullptr}, {"sliding_window_pattern", "LLX"}}, "exaone-4"),
            "/sliding_window_pattern is \"X\", which is unknown (known = L, G)");
  EXPECT_EQ(with({{"layer_types", nullptr}, {"sliding_window_pattern", "LLLGL"}}, "exaone-4"),
            "/sliding_window_pattern has 5 letters, expected 1 to 4, the layers");
  EXPECT_EQ(
      with({{"layer_types", {"full_attention", "sliding_attention", "full_attention", "full_attention"}}}, "qwen3"),
      "layer 1 of 4 slides, but there is no sliding_window");
}

// What other writers make of a whole number, and a list of 22,422 module names.
TEST(ResolveModelErrors, OddFormsThatAreNoErrors) {
  EXPECT_EQ(resolved(changed("llama-2", {{"hidden_size", 64.0}, {"rope_theta", 10000}})).hidden, 64);
  EXPECT_EQ(with({{"rms_norm_eps", 1}}), "") << "a whole number for a fraction";
  Json names = Json::array();
  for (int i = 0; i < 22'422; ++i)
    names.push_back("language_model.model.layers." + std::to_string(i) + ".block_sparse_moe.experts." +
                    std::string(80, 'x') + std::to_string(i));
  Json config = changed("llama-2", {{"quantization_config", {{"quant_method", "modelopt"}, {"ignore", names}}}});
  std::string text = config.dump();
  ASSERT_GT(text.size(), 3'000'000u);
  std::clock_t start = std::clock();
  StatusOr<Json> parsed = parseJson(text, "config.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(errorOf(*parsed), "");
  // 0.1 s is usual; keys looked up one by one in a list would take minutes.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5.0);
}
