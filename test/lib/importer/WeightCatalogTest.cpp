// Where weights come from: the published tensors of each, and the part of them that is taken.
#include "lib/importer/WeightCatalog.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

// A tiny family whose weights are `weights`, and a catalog of it.
class Catalog {
public:
  explicit Catalog(const Json &weights, const Json &values = Json::object()) {
    Json family = tinyFamily();
    for (auto it = weights.begin(); it != weights.end(); ++it)
      family["config"]["weights"][it.key()] = *it;
    for (auto it = values.begin(); it != values.end(); ++it)
      family["config"]["values"][it.key()] = *it;
    std::vector<std::string> errors;
    description_ = parseDescription(family, "tiny.json", errors);
    EXPECT_TRUE(errors.empty()) << errors.front();
    spec_.family = "tiny";
    values_.emplace(description_.config, config_, spec_.facts);
    catalog_.emplace(*values_, spec_);
  }

  // Why the weight cannot be had, or its full name.
  std::string declare(const std::string &name, int64_t layer, const std::vector<int64_t> &shape, double add = 0.0) {
    auto lookup = [&](const std::string &value) -> StatusOr<Scalar> {
      return value == "layer" ? StatusOr<Scalar>(Scalar::of(static_cast<double>(layer))) : values_->scalar(value);
    };
    StatusOr<std::string> full = catalog_->declare(name, layer, shape, add, lookup);
    return full.ok() ? *full : full.status().message();
  }
  // The sources of the weight that was declared last.
  const WeightSpec &last() const { return spec_.weights.back(); }
  const WeightSource &source() const { return last().sources.front(); }
  size_t size() const { return spec_.weights.size(); }
  const WeightCatalog &catalog() const { return *catalog_; }

private:
  ModelDescription description_;
  HuggingFaceConfig config_{Json::object()};
  ModelSpec spec_;
  std::optional<ValueReader> values_;
  std::optional<WeightCatalog> catalog_;
};

using Range = std::pair<int64_t, int64_t>;

} // namespace

TEST(WeightCatalog, NamesOfLayers) {
  Catalog catalog({{"up", "mlp.up.weight"}, {"norms", "norms.{layer + 1}.weight"}});
  EXPECT_EQ(catalog.declare("up", 3, {6, 8}), "layers.3.up");
  EXPECT_EQ(catalog.source().tensor, "layers.3.mlp.up.weight");
  EXPECT_EQ(catalog.declare("norms", 3, {8}, 1.0), "layers.3.norms");
  EXPECT_EQ(catalog.source().tensor, "layers.3.norms.4.weight") << "braces hold an expression";
  EXPECT_EQ(catalog.last().add, 1.0);
  EXPECT_EQ(catalog.declare("embedding", -1, {16, 8}), "embedding");
  EXPECT_EQ(catalog.source().tensor, "embed.weight") << "no prefix outside of the layers";
}

TEST(WeightCatalog, OneForAllLayers) {
  Catalog catalog({{"shared", {{"tensor", "shared.weight"}, {"in_layer", false}}}});
  EXPECT_EQ(catalog.declare("shared", 0, {8}), "shared");
  EXPECT_EQ(catalog.declare("shared", 3, {8}), "shared");
  EXPECT_EQ(catalog.size(), 1u);
  EXPECT_EQ(catalog.source().tensor, "shared.weight");
}

TEST(WeightCatalog, EveryLayerItsPartOfOneTensor) {
  Catalog catalog(
      {{"part", {{"tensor", "all.weight"}, {"prefix", false}, {"rows", {"layer * 8", "(layer + 1) * 8"}}}}});
  EXPECT_EQ(catalog.declare("part", 2, {8, 8}), "layers.2.part");
  EXPECT_EQ(catalog.source().tensor, "all.weight");
  EXPECT_EQ(*catalog.source().rows, (Range{16, 24}));
}

TEST(WeightCatalog, UsedTwiceItHasOneShape) {
  Catalog catalog({});
  EXPECT_EQ(catalog.declare("mix", 0, {8, 8}), "layers.0.mix");
  EXPECT_EQ(catalog.declare("mix", 0, {8, 8}), "layers.0.mix");
  EXPECT_EQ(catalog.size(), 1u);
  EXPECT_EQ(catalog.declare("mix", 0, {8, 6}), "weight 'layers.0.mix' is used as [8, 8] and as [8, 6]");
}

TEST(WeightCatalog, BiasesLieBesideTheirWeight) {
  Catalog catalog({{"fused", {{"tensor", "qkv.weight"}, {"rows", {0, "hidden"}}}}, {"odd.bias", "elsewhere.b"}});
  EXPECT_EQ(catalog.declare("mix.bias", 1, {8}), "layers.1.mix.bias");
  EXPECT_EQ(catalog.source().tensor, "layers.1.mix.bias");
  EXPECT_EQ(catalog.declare("fused.bias", 1, {8}), "layers.1.fused.bias");
  EXPECT_EQ(catalog.source().tensor, "layers.1.qkv.bias");
  EXPECT_EQ(*catalog.source().rows, (Range{0, 8})) << "its rows are those of the weight";
  EXPECT_EQ(catalog.declare("odd.bias", 1, {8}), "layers.1.odd.bias");
  EXPECT_EQ(catalog.source().tensor, "layers.1.elsewhere.b") << "one with a name of its own";
}

TEST(WeightCatalog, RowsAndRotaryPairs) {
  Catalog catalog(
      {{"key", {{"tensor", "qkv.weight"}, {"rows", {"hidden", "2 * hidden"}}, {"unpermute", "hidden / 2"}}}});
  EXPECT_EQ(catalog.declare("key", 0, {8, 8}), "layers.0.key");
  EXPECT_EQ(*catalog.source().rows, (Range{8, 16}));
  EXPECT_EQ(catalog.source().unpermuteHeadRows, 4);
  EXPECT_EQ(catalog.declare("key", 1, {6, 8}),
            "weight 'key' takes rows 8 to 16 of 'layers.1.qkv.weight', but has 6 rows");
}

TEST(WeightCatalog, StacksOfExperts) {
  Catalog catalog({{"experts", {{"tensor", "experts.{expert}.up.weight"}, {"stack", "hidden / 2"}}}});
  EXPECT_EQ(catalog.declare("experts", 2, {4, 6, 8}), "layers.2.experts");
  EXPECT_EQ(catalog.source().stack, 4);
  EXPECT_EQ(catalog.source().numTensors(), 4);
  EXPECT_EQ(catalog.source().tensorAt(3), "layers.2.experts.3.up.weight");
}

TEST(WeightCatalog, Views) {
  Catalog catalog({{"part",
                    {{"tensor", "mixed.weight"},
                     {"dims", {2, "hidden / 2", "hidden"}},
                     {"take", {nullptr, {1, "hidden / 2"}, nullptr}},
                     {"order", {1, 0, 2}},
                     {"map", "neg_exp"}}}});
  EXPECT_EQ(catalog.declare("part", 0, {6, 8}), "layers.0.part");
  const WeightSource &source = catalog.source();
  EXPECT_EQ(source.dims, (std::vector<int64_t>{2, 4, 8}));
  EXPECT_EQ(source.take, (std::vector<Range>{{0, 2}, {1, 4}, {0, 8}})) << "null takes a dimension whole";
  EXPECT_EQ(source.order, (std::vector<int64_t>{1, 0, 2}));
  EXPECT_EQ(source.map, "neg_exp");
}

TEST(WeightCatalog, PartsThatFollowEachOther) {
  Catalog catalog({{"both", {"a.weight", {{"tensor", "b.weight"}, {"rows", {0, 2}}}}}});
  EXPECT_EQ(catalog.declare("both", 0, {8, 8}), "layers.0.both");
  ASSERT_EQ(catalog.last().sources.size(), 2u);
  EXPECT_EQ(catalog.last().sources[0].tensor, "layers.0.a.weight");
  EXPECT_EQ(catalog.last().sources[1].tensor, "layers.0.b.weight");
  EXPECT_EQ(*catalog.last().sources[1].rows, (Range{0, 2}));
}

TEST(WeightCatalog, Errors) {
  Catalog catalog({{"third", {{"tensor", "x.weight"}, {"rows", {0, "hidden / 3"}}}}, {"braces", "x.{nowhere}.weight"}});
  EXPECT_TRUE(catalog.catalog().knows("mix"));
  EXPECT_TRUE(catalog.catalog().knows("mix.bias"));
  EXPECT_FALSE(catalog.catalog().knows("nix"));
  EXPECT_EQ(catalog.declare("nix", 0, {8}), "the description of family 'tiny' has no name for weight 'nix'");
  EXPECT_EQ(catalog.declare("third", 0, {8, 8}),
            "layers.0.x.weight: hidden / 3 is 2.6666666666666665, expected a whole number");
  EXPECT_EQ(catalog.declare("braces", 0, {8}), "'layers.0.x.{nowhere}.weight': the description has no value 'nowhere'");
}

TEST(WeightCatalog, NumbersThatNoFileHolds) {
  Catalog catalog({{"shift", {{"constant", "pattern"}, {"times", "hidden"}}}, {"depth", {{"constant", "-(layer + 0.5)"}}}},
                  {{"pattern", {{"value", {1, 0}}}}});
  EXPECT_EQ(catalog.declare("shift", 1, {8, 2}), "layers.1.shift");
  EXPECT_EQ(catalog.source().tensor, "constant [1,0] 8");
  EXPECT_TRUE(catalog.source().isConstant());
  EXPECT_EQ(catalog.declare("depth", 1, {1}), "layers.1.depth");
  EXPECT_EQ(catalog.source().tensor, "constant [-1.5] 1");
  Catalog word({{"shift", {{"constant", "'word'"}}}});
  EXPECT_EQ(word.declare("shift", 1, {8}), "constant 'word' is 'word', expected numbers");
}
