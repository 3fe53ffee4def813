// Parts of published models that are known and not run: which are there, their tensors, what is missing.
#include "lib/importer/ModelParts.h"
#include "lib/importer/Inspect.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

Json familyWithTower() {
  Json family = tinyFamily();
  family["config"]["parts"] = *parseJson(R"json({
    "vision": {
      "key": "tower", "prefix": "vision.",
      "values": {"width": "hidden_size", "depth": {"keys": ["depth"], "default": 2}, "odd": {"value": [1, 3]}},
      "tensors": {
        "patch.weight": ["width", 3, 14, 14], "blocks.{depth}.norm.weight": ["width"], "blocks.{odd}.extra": ["2 * width"],
        "tail.{depth..layers}.gain": [1], "ids": {"shape": [1, 5], "type": "I64"}, "none": ["width - width"]
      },
      "operators": {"patch_embedding": "linear 588 -> width"}
    },
    "other": {"key": "tower", "when": "hidden > 8", "operators": {"never": "hidden is 8"}}
  })json",
                                         "parts");
  return family;
}

std::vector<std::string> namesOf(const ModelPart &part) {
  std::vector<std::string> names;
  for (const PartTensor &tensor : part.tensors)
    names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace

TEST(ModelParts, TensorsAndOperatorsOfWhatTheConfigStates) {
  ModelSpec spec = resolvedTiny(familyWithTower(), {{"tower", {{"hidden_size", 10}}}});
  ASSERT_EQ(spec.parts.size(), 1u) << "'other' is there when hidden is above 8";
  EXPECT_EQ(namesOf(spec.parts[0]),
            (std::vector<std::string>{"vision.blocks.0.norm.weight", "vision.blocks.1.extra", "vision.blocks.1.norm.weight",
                                      "vision.blocks.3.extra", "vision.ids", "vision.patch.weight", "vision.tail.2.gain",
                                      "vision.tail.3.gain"}));
  ASSERT_EQ(spec.missing.size(), 1u);
  EXPECT_EQ(spec.missing[0].name, "vision: patch_embedding");
  ParameterCounts counts = countParameters(spec);
  // 5880 of the patches, two norms of 10, two extras of 20, five ids, two gains.
  EXPECT_EQ(counts.total - counts.text, 5880u + 20 + 40 + 5 + 2);
  EXPECT_EQ(factOf(spec, "vision.width"), "10 (stated as /tower/hidden_size)");
  EXPECT_EQ(factOf(spec, "vision.depth"), "2 (class default)");
}

TEST(ModelParts, NotStatedNotThere) {
  EXPECT_TRUE(resolvedTiny(familyWithTower()).parts.empty());
  EXPECT_TRUE(resolvedTiny(familyWithTower(), {{"tower", Json::object()}}).parts.empty());
}

TEST(ModelParts, WhatIsWrongIsSaid) {
  EXPECT_NE(tinyError(familyWithTower(), {{"tower", {{"depth", 3}}}}).find("'tower/hidden_size'"), std::string::npos);
  EXPECT_NE(tinyError(familyWithTower(), {{"tower", {{"hidden_size", -1}}}}).find("dimension width of -1"),
            std::string::npos);
  Json family = familyWithTower();
  family["config"]["parts"]["vision"]["tensors"]["x"] = {"height"};
  EXPECT_NE(tinyError(family).find("uses 'height', which is no value of the part"), std::string::npos);
  family = familyWithTower();
  family["config"]["parts"]["vision"]["tensors"]["blocks.{3000000}.x"] = {"width"};
  EXPECT_NE(tinyError(family, {{"tower", {{"hidden_size", 1}}}}).find("more than 1048576 tensors"), std::string::npos);
}

TEST(ModelParts, NamesOfAPart) {
  ModelSpec spec = resolvedTiny(familyWithTower(), {{"tower", {{"hidden_size", 10}}}});
  EXPECT_TRUE(belongsToPart(spec, "vision.patch.weight"));
  EXPECT_TRUE(belongsToPart(spec, "vision.something.else"));
  EXPECT_FALSE(belongsToPart(spec, "embed.weight"));
}

TEST(ModelParts, InheritedFromAnotherDescription) {
  ModelSpec spec = resolved("published/gemma-3-4b");
  ParameterCounts counts = countParameters(spec);
  EXPECT_EQ(counts.total, 4300079472u); // as published
  EXPECT_EQ(counts.text, 3880263168u);
}
