#include "lib/importer/CompareNames.h"
#include "lib/importer/CheckWeights.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

std::set<std::string> namesOf(const ModelSpec &spec) {
  std::set<std::string> names;
  for (const ExpectedTensor &tensor : expectedTensors(spec))
    names.insert(tensor.name);
  for (const ModelPart &part : spec.parts)
    for (const PartTensor &tensor : part.tensors)
      names.insert(tensor.name);
  return names;
}

} // namespace

TEST(CompareNames, NothingToSayOfWhatIsExpected) {
  for (const char *name : {"llama-3.2", "gemma-3", "qwen3", "olmo2", "published/gemma-3-4b"})
    EXPECT_TRUE(compareNames(resolved(name), namesOf(resolved(name))).empty()) << name;
}

TEST(CompareNames, ALineForNamesThatDifferInNumbers) {
  ModelSpec spec = resolved("llama-3.2");
  std::set<std::string> names = namesOf(spec);
  std::erase_if(names, [](const std::string &name) { return name.find("q_proj") != std::string::npos; });
  names.insert({"model.layers.0.extra.weight", "model.layers.1.extra.weight"});
  std::vector<NameDifference> differences = compareNames(spec, names);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_TRUE(differences[0].isExpected);
  EXPECT_EQ(differences[0].pattern, "model.layers.*.self_attn.q_proj.weight");
  EXPECT_EQ(differences[0].example, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(differences[0].count, static_cast<size_t>(spec.layers));
  EXPECT_FALSE(differences[1].isExpected);
  EXPECT_EQ(differences[1].pattern, "model.layers.*.extra.weight");
  EXPECT_EQ(differences[1].count, 2u);
}

TEST(CompareNames, IgnoredTensorsAndOtherSpellings) {
  ModelSpec spec = resolved("published/gemma-3-4b");
  std::set<std::string> names = namesOf(spec);
  names.insert("model.vision_tower.vision_model.encoder.layers.0.layer_norm1.weight");
  EXPECT_TRUE(compareNames(spec, names).empty());
  // A part that lists its tensors has no others.
  names.insert("vision_tower.vision_model.encoder.layers.0.layer_norm3.weight");
  ASSERT_EQ(compareNames(spec, names).size(), 1u);
  EXPECT_EQ(compareNames(spec, names)[0].pattern, "vision_tower.vision_model.encoder.layers.*.layer_norm3.weight");
}

TEST(CompareNames, CodesStandForWeightsOnlyInPackedFiles) {
  ModelSpec spec = resolved("llama-3.2");
  std::set<std::string> names = namesOf(spec);
  names.erase("model.layers.0.mlp.up_proj.weight");
  names.insert({"model.layers.0.mlp.up_proj.weight_packed", "model.layers.0.mlp.up_proj.weight_scale"});
  EXPECT_EQ(compareNames(spec, names).size(), 3u);
  spec.quantization = "compressed-tensors";
  EXPECT_TRUE(compareNames(spec, names).empty());
}
