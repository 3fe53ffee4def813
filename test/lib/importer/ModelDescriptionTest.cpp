#include "lib/importer/ModelDescription.h"
#include "test/lib/importer/ImporterTesting.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace llmc;

namespace {

const std::filesystem::path sourceModels = LLMC_TEST_DATA "/../../../models";

// A folder of descriptions that is gone after the test.
class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "llmc-models-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string add(const std::string &name, const std::string &text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

std::vector<std::string> problemsOf(const std::string &text) {
  Folder folder;
  std::string path = folder.add("mine.json", text);
  std::vector<std::string> problems = checkModelDescription(path);
  for (std::string &problem : problems)
    if (problem.rfind(path + ": ", 0) == 0)
      problem = problem.substr(path.size() + 2);
  return problems;
}
std::string problemOf(const std::string &text) {
  std::vector<std::string> problems = problemsOf(text);
  return problems.empty() ? "" : problems.front();
}

} // namespace

TEST(ModelDescription, EveryFileIsSound) {
  int files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(sourceModels))
    if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json") {
      ++files;
      for (const std::string &problem : checkModelDescription(entry.path().string()))
        ADD_FAILURE() << problem;
    }
  EXPECT_EQ(files, static_cast<int>(fixture::descriptions().families.size())) << "a description is not compiled in";
}

TEST(ModelDescription, NoTwoFamiliesServeOneArchitecture) {
  for (ConfigFormat format : {ConfigFormat::HuggingFace, ConfigFormat::Gguf}) {
    std::map<std::string, std::string> servedBy;
    for (const ModelDescription &family : fixture::descriptions().families)
      for (const std::string &name : family.rules(format).architectures)
        EXPECT_TRUE(servedBy.emplace(name, family.family).second)
            << name << " is served by " << servedBy[name] << " and " << family.family;
  }
}

TEST(ModelDescription, ChildReplacesEntriesAndKeepsTheRest) {
  for (const ModelDescription &family : fixture::descriptions().families)
    if (family.family == "olmo2") {
      EXPECT_EQ(family.config.weights.count("mlp_norm"), 0u) << "null removes";
      EXPECT_EQ(family.config.weights.at("mlp.down").sources[0].tensor, "mlp.down_proj.weight") << "inherited";
      EXPECT_EQ(family.blocks.at("layer").statements[1].text, "h + norm(mlp(h), mlp_post_norm)") << "its own";
      EXPECT_EQ(family.blocks.at("mlp").statements.size(), 3u) << "inherited";
      EXPECT_EQ(family.config.modelTypes, std::vector<std::string>{"olmo2"});
    }
}

TEST(ModelDescription, AFolderReplacesAndAdds) {
  Folder folder;
  folder.add("mine.json",
             R"({"family": "mine", "inherits": "llama", "config": {"architectures": ["MineForCausalLM"]}})");
  StatusOr<ModelDescriptions> loaded = loadModelDescriptions(folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->families.size(), fixture::descriptions().families.size() + 1);
  Json config = fixture::changed("llama-2", {{"architectures", {"MineForCausalLM"}}});
  StatusOr<ModelSpec> spec = resolveModel(*loaded, HuggingFaceConfig(config));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->family, "mine");
  EXPECT_FALSE(loadModelDescriptions(folder.path() + "/absent").ok());
}

TEST(ModelDescription, AnActivationThatNoBlockKnows) {
  Folder folder;
  folder.add("mine.json", R"({"family": "mine", "inherits": "llama", "config": {"architectures": ["MineForCausalLM"],
      "values": {"activation": {"keys": ["hidden_act"], "names": {"silu": "sile"}}}}})");
  StatusOr<ModelDescriptions> loaded = loadModelDescriptions(folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Json config = fixture::changed("llama-2", {{"architectures", {"MineForCausalLM"}}});
  StatusOr<ModelSpec> spec = resolveModel(*loaded, HuggingFaceConfig(config));
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(
      spec.status().message(),
      "layer 0: layer: h + mlp(norm(h, mlp_norm)) * residual_scale: mlp: linear(gated(activation, gate, up), mlp.down, "
      "hidden, bias: mlp_bias): gated: 'kind' is 'sile' (known = exp, gelu, gelu_sigmoid, gelu_tanh, relu, relu2, "
      "sigmoid, silu, softplus, sqrt, tanh)");
}

TEST(ModelDescription, TheEnvironmentNamesAFolder) {
  Folder folder;
  folder.add("mine.json", R"({"family": "other"})");
  ASSERT_EQ(::setenv("LLMC_MODELS", folder.path().c_str(), 1), 0);
  StatusOr<ModelDescriptions> loaded = loadModelDescriptions();
  ::unsetenv("LLMC_MODELS");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().message(),
            folder.path() + "/mine.json: /family is \"other\", expected \"mine\" as the file is called");
}

TEST(CheckModelDescription, MembersAndTypes) {
  EXPECT_EQ(problemOf(R"({"family": "mine", "colour": 1})"),
            "/colour is not a member of a description; see models/schema.json");
  EXPECT_EQ(problemOf(R"({"family": "mine", "config": {"values": {"hidden": {"keys": "x"}}}})"),
            "/config/values/hidden/keys is \"x\", expected a list of text");
  EXPECT_EQ(problemOf(R"({"family": "mine", "config": {"values": {"hidden": {}}}})"),
            "/config/values/hidden says neither keys nor value");
  EXPECT_EQ(problemOf(R"({"family": "mine", "config": {"per_layer": {"rotated": [{"all": true, "from": "x"}]}}})"),
            "/config/per_layer/rotated/0 names 2 sources, expected one of list, letters, period, from, as, not, all, "
            "expression");
  EXPECT_EQ(problemOf(R"({"family": "mine", "config": {"per_layer": {"x": [{"list": "types", "extra": -1}]}}})"),
            "/config/per_layer/x/0/extra is -1, expected an integer from 0 to 1048576");
  EXPECT_EQ(
      problemOf(R"({"family": "mine", "config": {"ropes": {"full": {"types": {"x": "spiral"}}}}})"),
      "/config/ropes/full/types/x 'spiral' is unknown (known = default, linear, llama3, longrope, proportional, yarn)");
}

TEST(CheckModelDescription, Blocks) {
  auto withBlocks = [](const std::string &blocks) {
    return problemOf(R"({"family": "mine", "blocks": )" + blocks + "}");
  };
  EXPECT_EQ(withBlocks(R"json({"layer": ["h"]})json"), "/blocks/layer 'layer': expected '(' at column 6");
  EXPECT_EQ(withBlocks(R"json({"layer(h)": ["h +"]})json"),
            "/blocks/layer(h)/0 'h +': expected a number, a name or a word in quotes at column 4");
  EXPECT_EQ(withBlocks(R"json({"layer(h)": "h"})json"), "/blocks/layer(h) is \"h\", expected a list of text");
  EXPECT_EQ(withBlocks(R"json({"layer(h)": ["h"], "layer(h, x)": ["h"]})json"),
            "/blocks/layer(h, x) is a second block 'layer'; blocks have one signature");
  EXPECT_EQ(withBlocks(R"json([])json"), "/blocks is [], expected an object");
}

TEST(CheckModelDescription, Weights) {
  auto withWeight = [](const std::string &weight) {
    return problemOf(R"({"family": "mine", "config": {"weights": {"w": )" + weight + "}}}");
  };
  EXPECT_EQ(withWeight(R"({"tensor": "t", "row": [0, 1]})"),
            "/config/weights/w/row is not a member of a description; see models/schema.json");
  EXPECT_EQ(withWeight(R"({"rows": [0, 1]})"), "/config/weights/w names no tensor");
  EXPECT_EQ(withWeight("[]"), "/config/weights/w names no tensor");
  EXPECT_EQ(withWeight(R"(["a", {"tensor": "t", "rows": [1]}])"),
            "/config/weights/w/1/rows is [1], expected [first, one after the last]");
  EXPECT_EQ(withWeight(R"({"tensor": "t", "stack": "experts *"})"),
            "/config/weights/w/stack 'experts *': expected a number, a name or a word in quotes at column 10");
  EXPECT_EQ(withWeight(R"({"tensor": "t", "dims": [2, 4], "take": [null]})"),
            "/config/weights/w/take has 1 ranges for 2 dimensions");
  EXPECT_EQ(withWeight(R"({"tensor": "t", "dims": [2, 4], "order": [0, 8]})"),
            "/config/weights/w/order/1 is 8, expected an integer from 0 to 7");
}

TEST(CheckModelDescription, Expressions) {
  auto withValue = [](const std::string &value) {
    return problemOf(
        R"({"family": "mine", "inherits": "llama", "config": {"architectures": ["A"], "values": {"window": )" + value +
        "}}}");
  };
  EXPECT_EQ(withValue(R"({"value": "layers *"})"),
            "/config/values/window 'layers *': expected a number, a name or a word in quotes at column 9");
  EXPECT_EQ(withValue(R"({"value": "layers * span"})"),
            "/config/values/window uses 'span', which is no entry of values");
  EXPECT_EQ(withValue(R"({"value": "layers * 2"})"), "");
}

TEST(CheckModelDescription, Inheritance) {
  EXPECT_EQ(problemOf(R"({"family": "mine", "inherits": "nobody"})"),
            "mine.json: /inherits: no model description for family 'nobody'");
  EXPECT_NE(problemOf(R"({"family": "mine", "inherits": "mine"})").find("at most 8 deep"), std::string::npos);
}

TEST(CheckModelDescription, AFileThatIsNoJson) {
  EXPECT_FALSE(problemOf("{").empty());
  EXPECT_EQ(checkModelDescription("/absent/mine.json").size(), 1u);
}
