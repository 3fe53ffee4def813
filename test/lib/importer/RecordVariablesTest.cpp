// Which values a name finds, what is added to the graph, and names that find nothing.
#include "lib/importer/RecordVariables.h"
#include "test/lib/importer/ImporterTesting.h"

namespace llmc {
namespace {

using namespace fixture;

// Four equal layers of two sums, of which the second replaces the first under the same name, and heads.
ModelSpec twoSums() {
  Json family = tinyFamily();
  family["blocks"]["layer(h)"] = {"x = heads(norm(h), 2)", "s = h + merge(x)", "s = s + linear(s, mix, hidden)", "s"};
  return resolvedTiny(family);
}

std::string recordError(const std::string &name) {
  ModelSpec spec = twoSums();
  StatusOr<std::vector<std::string>> recorded = recordVariables(spec, {name});
  return recorded.ok() ? "" : recorded.status().message();
}

TEST(RecordVariables, AddsRecordsToOneLayerAlone) {
  ModelSpec spec = twoSums();
  ASSERT_EQ(spec.graph.kinds.size(), 1u);
  ASSERT_TRUE(recordVariables(spec, {"2.layer.s", "2.layer.s@2"}).ok());
  EXPECT_EQ(spec.graph.kindOfLayer, (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(nodesOf(kindOf(spec, 0), "record").size(), 0u);
  std::vector<GraphNode> records = nodesOf(kindOf(spec, 2), "record"), sums = nodesOf(kindOf(spec, 2), "add");
  ASSERT_EQ(records.size(), 2u);
  ASSERT_EQ(sums.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(records[i].operands[0], sums[i].results[0]);
    EXPECT_EQ(std::get<int64_t>(records[i].attributes.at("index")), streamRecords(spec) + static_cast<int64_t>(i));
  }
  EXPECT_EQ(std::get<int64_t>(nodesOf(spec.graph.step, "call")[2].attributes.at("kind")), 1);
}

TEST(RecordVariables, PutsHeadsSideBySide) {
  ModelSpec spec = twoSums();
  ASSERT_TRUE(recordVariables(spec, {"0.layer.x"}).ok());
  GraphValue recorded = operandOf(kindOf(spec, 0), "record", 0);
  EXPECT_EQ(recorded.heads, 0);
  EXPECT_EQ(recorded.channels, 8);
}

TEST(RecordVariables, FindsBlocksAndWhatIsOutsideOfLayers) {
  ModelSpec spec = twoSums();
  ASSERT_TRUE(recordVariables(spec, {"3.norm", "finish"}).ok());
  EXPECT_EQ(operandOf(kindOf(spec, 3), "record", 0).name, "gain");
  EXPECT_EQ(nodesOf(spec.graph.step, "record").back().operands[0], spec.graph.step.results[0]);
}

TEST(RecordVariables, TakesEveryLayerThatHasTheName) {
  Json family = tinyFamily();
  family["blocks"]["layer(h)"] = {"s = norm(h)", "when layer % 2: s = s + h", "s"};
  ModelSpec spec = resolvedTiny(family);
  StatusOr<std::vector<std::string>> recorded = recordVariables(spec, {"begin", "*.layer.s@2"});
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_EQ(*recorded, (std::vector<std::string>{"begin", "1.layer.s@2", "3.layer.s@2"}));
  EXPECT_EQ(nodesOf(kindOf(spec, 0), "record").size(), 0u);
  EXPECT_EQ(attributeOf<int64_t>(kindOf(spec, 3), "record", "index"), streamRecords(spec) + 2);
}

TEST(RecordVariables, SaysWhatIsKnown) {
  EXPECT_EQ(recordError("*.layer.y"), "no layer has '*.layer.y'");
  EXPECT_EQ(recordError("1.layer.y"),
            "the wiring has no '1.layer.y' (known in layer 1 = norm, layer.x, layer.s, layer)");
  EXPECT_EQ(recordError("layer.s"), "the wiring has no 'layer.s' (known outside of layers = begin, finish)");
  EXPECT_EQ(recordError("4.layer.s"), "'4.layer.s' is of layer 4, but there are 4");
  EXPECT_EQ(recordError("1.layer.s@3"), "'1.layer.s@3' asks for value 3, but there are 2 of that name");
  EXPECT_EQ(recordError("1.layer.s@0"), "'1.layer.s@0' has no number from 1 on behind its @");
  EXPECT_EQ(recordError("1.layer.s@x"), "'1.layer.s@x' has no number from 1 on behind its @");
}

} // namespace
} // namespace llmc
