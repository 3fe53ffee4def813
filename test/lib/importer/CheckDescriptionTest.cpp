// What the sections of a description say of each other; the form of each is in ModelDescriptionTest.
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

std::vector<std::string> problems(const Json &family) {
  std::vector<std::string> errors;
  parseDescription(family, "f", errors);
  for (std::string &error : errors)
    error = error.substr(3); // "f: "
  return errors;
}
// The only problem of the tiny family with `value` at `pointer`.
std::string problemWith(const std::string &pointer, const Json &value) {
  Json family = tinyFamily();
  family[Json::json_pointer(pointer)] = value;
  std::vector<std::string> found = problems(family);
  EXPECT_LE(found.size(), 1u) << pointer << ": " << (found.size() > 1 ? found[1] : "");
  return found.empty() ? "" : found.front();
}

} // namespace

TEST(CheckDescription, ASoundOne) { EXPECT_EQ(problems(tinyFamily()), std::vector<std::string>()); }

TEST(CheckDescription, AServedFormatIsComplete) {
  std::vector<std::string> found = problems({{"family", "f"}, {"config", {{"architectures", {"A"}}}}});
  for (const char *expected :
       {"/config/values has no 'layers'", "/config/values has no 'tied_head'", "/blocks has no block 'begin'",
        "/blocks has no block 'layer'", "/blocks has no block 'finish'", "/blocks has no block 'kind'"})
    EXPECT_NE(std::find(found.begin(), found.end(), expected), found.end()) << expected;
  EXPECT_EQ(problems({{"family", "f"}, {"config", {{"values", {{"layers", "n"}}}}}}), std::vector<std::string>())
      << "what serves nothing may be a beginning";
}

TEST(CheckDescription, NamesInStatements) {
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "h + elbow"),
            "/blocks/layer/0 uses 'elbow', which is no variable, value, fact per layer or weight of /config");
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "when elbow: h"),
            "/blocks/layer/0 uses 'elbow', which is no variable, value, fact per layer or weight of /config");
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "h + linear(h, mix, hidden, bias: elbow)"),
            "/blocks/layer/0 uses 'elbow', which is no variable, value, fact per layer or weight of /config");
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "h * if(layer > 1, window, norm_add)"), "")
      << "facts and values with a default";
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "h + twist(h)"),
            "/blocks/layer/0 calls 'twist', which is no block and no function");
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "h + norm(silu(h) * sqrt(max(hidden, 2)))"), "");
}

TEST(CheckDescription, BlocksGiveAValue) {
  EXPECT_EQ(problemWith("/blocks/layer(h)/0", "x = h"),
            "/blocks/layer gives nothing: its last statement has to be a value");
  EXPECT_EQ(problemWith("/blocks/layer(h)", Json::array()),
            "/blocks/layer gives nothing: its last statement has to be a value");
}

TEST(CheckDescription, NamesInValues) {
  EXPECT_EQ(problemWith("/config/values/hidden", {{"value", "span * 2"}}),
            "/config/values/hidden uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/values/hidden", {{"keys", {"a"}}, {"default", "span"}}),
            "/config/values/hidden uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/values/hidden", {{"keys", {"a"}}, {"enabled_by", "span"}}),
            "/config/values/hidden/enabled_by uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/must_equal", {{"width", "span"}}),
            "/config/must_equal/width uses 'span', which is no entry of values");
}

TEST(CheckDescription, NamesInFactsPerLayer) {
  EXPECT_EQ(problemWith("/config/per_layer", {{"x", {{{"period", "span"}}}}}),
            "/config/per_layer/x/0 uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/per_layer", {{"x", {{{"expression", "layer + span"}}}}}),
            "/config/per_layer/x/0 uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/per_layer", {{"x", {{{"all", true}, {"when", "span"}}}}}),
            "/config/per_layer/x/0/when uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/per_layer", {{"x", {{{"not", "y"}}}}}),
            "/config/per_layer/x/0 refers to 'y', expected another choice");
  EXPECT_EQ(problemWith("/config/per_layer", {{"x", {{{"as", "x"}}}}}),
            "/config/per_layer/x/0 refers to 'x', expected another choice");
  EXPECT_EQ(problemWith("/config/per_layer", {{"x", {{{"list", "types"}, {"yes", {"a"}}}}}}),
            "/config/per_layer/x/0 needs the words of both 'yes' and 'no', or neither");
}

TEST(CheckDescription, NamesInWeights) {
  for (const Json &source : {Json{{"tensor", "t"}, {"rows", {0, "span"}}}, Json{{"tensor", "t"}, {"stack", "span"}},
                             Json{{"tensor", "t"}, {"dims", {"span"}}}, Json{{"tensor", "t"}, {"unpermute", "span"}},
                             Json{{"tensor", "t"}, {"dims", {2}}, {"take", {{0, "span"}}}}})
    EXPECT_EQ(problemWith("/config/weights/mix", source),
              "/config/weights/mix uses 'span', which is no entry of values");
  EXPECT_EQ(problemWith("/config/weights/mix", {{"tensor", "t"}, {"rows", {0, "layer * hidden"}}}), "");
}
