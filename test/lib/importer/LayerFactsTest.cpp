// Facts per layer of a family of one's own; those of published configs are in ResolveModelTest.
#include "lib/importer/LayerFacts.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

// Facts of 4 layers by the rules `perLayer`; `values` beside those of the tiny family.
StatusOr<LayerFacts> resolve(const Json &perLayer, const Json &keys, const Json &values, ModelSpec &spec) {
  Json family = tinyFamily();
  family["config"]["per_layer"] = perLayer;
  for (auto it = values.begin(); it != values.end(); ++it)
    family["config"]["values"][it.key()] = *it;
  std::vector<std::string> errors;
  ModelDescription description = parseDescription(family, "tiny.json", errors);
  if (!errors.empty())
    return Status::error(errors.front());
  HuggingFaceConfig config(keys);
  spec.context = 64;
  ValueReader reader(description.config, config, spec.facts);
  return resolveLayerFacts(reader, 4, spec);
}

// The fact "x" of every layer.
std::string row(const Json &choices, const Json &keys = Json::object(), const Json &values = Json::object()) {
  ModelSpec spec;
  StatusOr<LayerFacts> facts = resolve({{"x", choices}}, keys, values, spec);
  if (!facts.ok())
    return facts.status().message();
  std::string text;
  for (const Scalar &scalar : (*facts)["x"])
    text += (text.empty() ? "" : " ") + scalar.print();
  return text;
}
Json one(const Json &choice) { return Json::array({choice}); }

const Json flagsByWord = one({{"list", "types"}, {"yes", {"a", "b"}}, {"no", {"c"}}});

} // namespace

TEST(LayerFacts, Lists) {
  EXPECT_EQ(row(flagsByWord, {{"types", {"a", "c", "b", "c"}}}), "1 0 1 0");
  EXPECT_EQ(row(one({{"list", "types"}}), {{"types", {"mamba", "attention", 3, true}}}), "'mamba' 'attention' 3 1")
      << "without words the entry is the fact";
  EXPECT_EQ(row(one({{"list", "types"}, {"extra", 1}}), {{"types", {1, 2, 3, 4, 5}}}), "1 2 3 4");
  EXPECT_EQ(row(flagsByWord, {{"types", {"a", "d", "b", "c"}}}),
            "/types/1 is \"d\", which is unknown (known = a, b, c)");
  EXPECT_EQ(row(flagsByWord, {{"types", {"a"}}}), "/types has 1 entries, but layers is 4");
  EXPECT_EQ(row(one({{"list", "types"}, {"extra", 1}}), {{"types", {1, 2, 3, 4, 5, 6}}}),
            "/types has 6 entries, but layers is 4");
  EXPECT_EQ(row(flagsByWord, {{"types", 3}}), "/types is 3, expected a list with an entry per layer");
  EXPECT_EQ(row(one({{"list", "types"}}), {{"types", {{{"a", 1}}, 1, 1, 1}}}),
            "/types/0 is {\"a\":1}, expected a number, text or a list");
}

TEST(LayerFacts, TheFirstStatedSourceDecides) {
  Json choices = {{{"list", "types"}, {"yes", {"a"}}, {"no", {"c"}}, {"or_other", true}},
                  {{"letters", "types"}, {"yes", {"A"}}, {"no", {"C"}}},
                  {{"all", true}}};
  EXPECT_EQ(row(choices, {{"types", {"a", "c", "c", "c"}}}), "1 0 0 0");
  EXPECT_EQ(row(choices, {{"types", "AC"}}), "1 0 1 0") << "letters repeat";
  EXPECT_EQ(row(choices, {{"types", Json::array()}}), "1 1 1 1") << "an empty list says nothing";
  EXPECT_EQ(row(choices), "1 1 1 1");
  EXPECT_EQ(row(flagsByWord), "nothing says 'x' of a layer; the description needs a source that always does");
}

TEST(LayerFacts, Patterns) {
  Json two = {{"n", {{"value", 2}}}};
  EXPECT_EQ(row(one({{"period", "n"}}), {}, {{"n", {{"value", 3}}}}), "1 1 0 1") << "every third is none";
  EXPECT_EQ(row(one({{"period", "n"}, {"last", true}}), {}, {{"n", {{"value", 3}}}}), "0 0 1 0");
  EXPECT_EQ(row(one({{"from", "n"}}), {}, two), "0 0 1 1");
  EXPECT_EQ(row(one({{"all", false}})), "0 0 0 0");
  EXPECT_EQ(row({{{"all", false}, {"when", "n"}}, {{"all", true}}}, {}, two), "0 0 0 0");
  EXPECT_EQ(row({{{"all", false}, {"when", "n"}}, {{"all", true}}}, {}, {{"n", {{"value", 0}}}}), "1 1 1 1");
  EXPECT_EQ(row(one({{"period", "n"}}), {}, {{"n", {{"value", 0}}}}), "n is 0, expected at least 1");
}

TEST(LayerFacts, Expressions) {
  EXPECT_EQ(row(one({{"expression", "if(layer < 2, 'dense', 'experts')"}})), "'dense' 'dense' 'experts' 'experts'");
  EXPECT_EQ(row(one({{"expression", "at(widths, layer)"}}), {{"widths", {5, 6, 7, 8}}}, {{"widths", "widths"}}),
            "5 6 7 8");
  EXPECT_EQ(row(one({{"expression", "at(widths, layer)"}}), {{"widths", {5, 6}}}, {{"widths", "widths"}}),
            "layer 2: at: entry 2 of a list of 2");
}

TEST(LayerFacts, FactsOfOtherFacts) {
  ModelSpec spec;
  Json rules = {{"a", one({{"expression", "layer % 2"}})},
                {"b", one({{"not", "a"}})},
                {"c", one({{"as", "a"}})},
                {"d", one({{"expression", "10 * a + b"}})}};
  StatusOr<LayerFacts> facts = resolve(rules, {}, Json::object(), spec);
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*facts)["b"][i].number, i % 2 ? 0.0 : 1.0);
    EXPECT_EQ((*facts)["c"][i].number, i % 2 ? 1.0 : 0.0);
    EXPECT_EQ((*facts)["d"][i].number, i % 2 ? 10.0 : 1.0);
  }
  EXPECT_EQ(factOf(spec, "a layers"), "2 of 4 (computed: layer % 2)");
  EXPECT_EQ(factOf(spec, "d layers"), "2 x 1, 2 x 10 (computed: 10 * a + b)");
  Json around = {{"a", one({{"not", "b"}})}, {"b", one({{"not", "a"}})}};
  StatusOr<LayerFacts> none = resolve(around, {}, Json::object(), spec);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), "the description takes the layers that a from themselves");
}

TEST(LayerFacts, SourcesThatDisagreeAreNoted) {
  ModelSpec spec;
  Json rules = {{"x", {{{"list", "types"}, {"yes", {1}}, {"no", {0}}}, {{"period", "n"}}}}};
  StatusOr<LayerFacts> facts = resolve(rules, {{"types", {1, 1, 1, 0}}, {"n", 2}}, {{"n", "n"}}, spec);
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  ASSERT_EQ(spec.notes.size(), 1u);
  EXPECT_EQ(spec.notes[0], "computed: by n disagrees with stated as /types, which counts");
}

TEST(LayerFacts, WindowOfTheLayersThatSlide) {
  ModelSpec spec;
  auto windows = [&](const Json &values, const Json &perLayer) {
    StatusOr<LayerFacts> facts = resolve(perLayer, {}, values, spec);
    std::string text = facts.ok() ? "" : facts.status().message();
    if (facts.ok())
      for (const Scalar &window : (*facts)["window"])
        text += (text.empty() ? "" : " ") + window.print();
    return text;
  };
  Json alternate = {{"sliding", one({{"expression", "layer % 2"}})}};
  EXPECT_EQ(windows({{"window", {{"value", 16}}}}, alternate), "0 16 0 16");
  EXPECT_EQ(windows({}, alternate), "0 0 0 0") << "without a window";
  EXPECT_EQ(windows({{"window", {{"value", 16}}}}, Json::object()), "0 0 0 0") << "nothing slides";
  EXPECT_EQ(windows({{"window", {{"value", 64}}}}, alternate), "0 0 0 0");
  EXPECT_EQ(spec.notes.back(), "window 64 is not below the context 64: no layer slides");
  EXPECT_EQ(windows({}, {{"window", one({{"expression", "8 * layer"}})}}), "0 8 16 24") << "the description's own rule";
}
