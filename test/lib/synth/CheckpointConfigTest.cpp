// The config of a synthetic checkpoint, for every published config: what a model of fewer layers says of itself.
#include "lib/synth/CheckpointConfig.h"
#include "lib/importer/Inspect.h"
#include "test/lib/importer/ImporterTesting.h"
#include <filesystem>

using namespace llmc;

namespace {

StatusOr<CheckpointConfig> configFor(const Json &config, const CheckpointConfigChanges &changes) {
  StatusOr<const ModelDescription *> family = selectFamily(fixture::descriptions(), HuggingFaceConfig(config));
  if (!family.ok())
    return family.status();
  return checkpointConfig(**family, config, changes);
}

Json shortened(const std::string &name, int64_t layers) {
  StatusOr<CheckpointConfig> made = configFor(fixture::configOf(name), {layers, ""});
  EXPECT_TRUE(made.ok()) << name << ": " << made.status().message();
  return made.ok() ? made->config : Json::object();
}

// As `a`, but of the first layers of `b`.
void expectFirstLayersOf(const ModelSpec &some, const ModelSpec &all, const std::string &name) {
  ASSERT_LE(some.layers, all.layers) << name;
  std::vector<std::string> ropes = fixture::ropesOf(some), allRopes = fixture::ropesOf(all);
  allRopes.resize(ropes.size());
  EXPECT_EQ(ropes, allRopes) << name;
  for (size_t i = 0; i < some.graph.kindOfLayer.size(); ++i) {
    const GraphFunction &kind = fixture::kindOf(some, i), &expected = fixture::kindOf(all, i);
    EXPECT_EQ(kind.name, expected.name) << name << ", layer " << i;
    ASSERT_EQ(kind.nodes.size(), expected.nodes.size()) << name << ", layer " << i;
    for (size_t j = 0; j < kind.nodes.size(); ++j) {
      EXPECT_EQ(kind.nodes[j].op, expected.nodes[j].op) << name << ", layer " << i;
      EXPECT_EQ(kind.nodes[j].operands, expected.nodes[j].operands) << name << ", layer " << i;
      EXPECT_EQ(kind.nodes[j].attributes, expected.nodes[j].attributes) << name << ", layer " << i;
    }
  }
}

} // namespace

TEST(CheckpointConfig, KeepsTheFirstLayersOfEveryPublishedConfig) {
  int seen = 0;
  for (const auto &entry : std::filesystem::directory_iterator(fixture::modelsFolder + "published")) {
    std::string name = "published/" + entry.path().stem().string();
    StatusOr<ModelSpec> whole = resolveModel(fixture::descriptions(), HuggingFaceConfig(fixture::configOf(name)));
    // Some are there to be refused, have one layer, or end in layers that share the caches of many before them.
    if (!whole.ok() || whole->layers < 2 || name == "published/gemma-4-e2b")
      continue;
    ModelSpec some = fixture::resolved(shortened(name, 2));
    EXPECT_EQ(some.layers, 2) << name;
    expectFirstLayersOf(some, *whole, name);
    ++seen;
  }
  EXPECT_GT(seen, 20);
}

TEST(CheckpointConfig, ShortensListsWithAnEntryPerLayerAndNoOthers) {
  Json config = shortened("published/smollm3-3b", 5);
  EXPECT_EQ(config["layer_types"].size(), 5u);
  EXPECT_EQ(config["no_rope_layers"].size(), 5u);
  // Divisors of a rope are as many as pairs of channels, 48.
  EXPECT_EQ(shortened("published/phi-3.5-mini", 5)["rope_scaling"]["long_factor"].size(), 48u);
}

TEST(CheckpointConfig, ShortensLetters) {
  Json config = fixture::configOf("published/exaone-4.0-32b");
  config.erase("layer_types");
  config["sliding_window_pattern"] = "LLLG";
  StatusOr<CheckpointConfig> made = configFor(config, {3, ""});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->config["sliding_window_pattern"], "LLL");
  expectFirstLayersOf(fixture::resolved(made->config), fixture::resolved(config), "letters");
}

TEST(CheckpointConfig, EditsTheNestedObject) {
  Json config = shortened("published/gemma-3-4b", 7);
  EXPECT_EQ(config["text_config"]["num_hidden_layers"], 7);
  EXPECT_FALSE(config.contains("num_hidden_layers"));
}

TEST(CheckpointConfig, StatesTheTypeWhereItIsStated) {
  StatusOr<CheckpointConfig> made = configFor(fixture::configOf("published/qwen3-0.6b"), {0, "float32"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->config["torch_dtype"], "float32");
  EXPECT_FALSE(made->config.contains("dtype"));
  EXPECT_EQ(fixture::resolved(made->config).layers, 28);

  made = configFor(fixture::without("published/qwen3-0.6b", "torch_dtype"), {0, "float32"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(fixture::resolved(made->config).weightType, "float32");
}

TEST(CheckpointConfig, LeavesPackingOut) {
  StatusOr<CheckpointConfig> made = configFor(fixture::configOf("published/qwen3-4b-awq"), {1, ""});
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made->config.contains("quantization_config"));
  EXPECT_EQ(made->notes, std::vector<std::string>{"quantization_config is left out: the weights are plain tensors"});
}

TEST(CheckpointConfig, MoreLayersThanThereAre) {
  StatusOr<CheckpointConfig> made = configFor(fixture::configOf("published/qwen3-0.6b"), {29, ""});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), "asked for 29 layers, but the model has 28; ask for at most as many");
}
