#include "lib/importer/GenerationFacts.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "llmc-generation-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder &add(const std::string &name, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
    return *this;
  }
  StatusOr<GenerationFacts> read(const Json &config = Json::object()) const {
    return readGenerationFacts(HuggingFaceConfig(config), path_);
  }
  GenerationFacts facts(const Json &config = Json::object()) const {
    StatusOr<GenerationFacts> read = this->read(config);
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? *read : GenerationFacts();
  }
  std::string error(const Json &config = Json::object()) const {
    StatusOr<GenerationFacts> read = this->read(config);
    return read.ok() ? "" : read.status().message();
  }

private:
  std::string path_;
};

Json parsed(const std::string &text) { return *parseJson(text, "test"); }
using Ids = std::vector<int64_t>;

} // namespace

TEST(GenerationFacts, NothingIsStated) {
  GenerationFacts facts = Folder().facts();
  EXPECT_TRUE(facts.eosIds.empty());
  EXPECT_FALSE(facts.bosId || facts.temperature || facts.addBos);
  EXPECT_EQ(facts.chatTemplate, "");
}

TEST(GenerationFacts, GenerationConfigComesFirst) {
  Folder folder;
  folder.add("generation_config.json", R"({"eos_token_id": [128001, 128009], "do_sample": true, "temperature": 0.6,
                                           "top_p": 0.9, "top_k": 20, "min_p": 0, "repetition_penalty": 1.05})");
  GenerationFacts facts = folder.facts(parsed(R"({"eos_token_id": 7, "bos_token_id": 1, "pad_token_id": -1})"));
  EXPECT_EQ(facts.eosIds, (Ids{128001, 128009}));
  EXPECT_EQ(facts.bosId, 1) << "from config.json, which the other file leaves open";
  EXPECT_FALSE(facts.padId) << "-1 is none";
  EXPECT_EQ(facts.temperature, 0.6);
  EXPECT_EQ(facts.topP, 0.9);
  EXPECT_EQ(facts.topK, 20);
  EXPECT_EQ(facts.minP, 0.0);
  EXPECT_EQ(facts.repetitionPenalty, 1.05);
  EXPECT_EQ(facts.sample, true);
  EXPECT_EQ(facts.facts[0].origin, "stated as generation_config.json: /eos_token_id");
}

TEST(GenerationFacts, IdsOfTheConfig) {
  EXPECT_EQ(Folder().facts(parsed(R"({"eos_token_id": 2})")).eosIds, (Ids{2}));
  EXPECT_EQ(Folder().facts(parsed(R"({"eos_token_id": [2, 3, 2]})")).eosIds, (Ids{2, 3}));
  EXPECT_EQ(Folder().facts(parsed(R"({"text_config": {"eos_token_id": 5}})")).eosIds, (Ids{5}));
}

TEST(GenerationFacts, BadValues) {
  EXPECT_EQ(Folder().error(parsed(R"({"eos_token_id": "</s>"})")),
            "/eos_token_id is \"</s>\", expected an integer from 0 to 2147483647");
  EXPECT_EQ(Folder().error(parsed(R"({"eos_token_id": [1, -2]})")),
            "/eos_token_id/1 is -2, expected an integer from 0 to 2147483647");
  EXPECT_EQ(Folder().add("generation_config.json", R"({"temperature": -1})").error(),
            "generation_config.json: /temperature is -1, expected 0.0 to 1000000.0");
  EXPECT_EQ(Folder().add("generation_config.json", R"({"top_p": NaN})").error(),
            "generation_config.json: /top_p is NaN, expected 0.0 to 1.0");
  EXPECT_EQ(Folder().add("tokenizer_config.json", R"({"add_bos_token": 1})").error(),
            "tokenizer_config.json: /add_bos_token is 1, expected true or false");
  EXPECT_NE(Folder().add("generation_config.json", "{").error().find("generation_config.json"), std::string::npos);
}

TEST(GenerationFacts, TokenizerConfig) {
  Folder folder;
  folder.add("tokenizer_config.json", R"({"add_bos_token": true, "add_eos_token": false, "bos_token": "<s>",
      "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null, "chat_template": "{{ messages }}"})");
  folder.add("special_tokens_map.json", R"({"bos_token": "<other>", "pad_token": {"content": "<pad>"}})");
  GenerationFacts facts = folder.facts();
  EXPECT_EQ(facts.addBos, true);
  EXPECT_EQ(facts.addEos, false);
  EXPECT_EQ(facts.specialTokens, (std::vector<std::pair<std::string, std::string>>{
                                     {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}}));
  EXPECT_EQ(facts.chatTemplate, "{{ messages }}");
}

TEST(GenerationFacts, TemplatesByName) {
  Folder folder;
  folder.add("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "T"},
                                                            {"name": "default", "template": "D"}]})");
  GenerationFacts facts = folder.facts();
  EXPECT_EQ(facts.chatTemplate, "D");
  ASSERT_EQ(facts.otherTemplates.size(), 1u);
  EXPECT_EQ(facts.otherTemplates[0], (std::pair<std::string, std::string>("tool_use", "T")));
  EXPECT_EQ(Folder().add("tokenizer_config.json", R"({"chat_template": [3]})").error(),
            "tokenizer_config.json: /chat_template/0 is 3, expected an object with name and template");
  EXPECT_EQ(Folder().add("tokenizer_config.json", R"({"chat_template": 3})").error(),
            "tokenizer_config.json: /chat_template is 3, expected a string or a list of named templates");
}

TEST(GenerationFacts, ATemplateFileOfItsOwnCounts) {
  Folder folder;
  folder.add("chat_template.json", R"({"chat_template": "in json"})");
  EXPECT_EQ(folder.facts().chatTemplate, "in json");
  folder.add("tokenizer_config.json", R"({"chat_template": "inside"})");
  EXPECT_EQ(folder.facts().chatTemplate, "inside");
  folder.add("chat_template.jinja", "own file").add("additional_chat_templates/rag.jinja", "R");
  GenerationFacts facts = folder.facts();
  EXPECT_EQ(facts.chatTemplate, "own file");
  ASSERT_EQ(facts.otherTemplates.size(), 1u);
  EXPECT_EQ(facts.otherTemplates[0].first, "rag");
}

// Only for a model type that a description names, and only where the model publishes no template.
TEST(GenerationFacts, ADescribedTemplate) {
  const Json config = parsed(R"({"model_type": "kimi_k3", "eos_token_id": 163586,
                                 "text_config": {"model_type": "kimi_linear", "eos_token_id": 163585}})");
  GenerationFacts facts = Folder().facts(config);
  EXPECT_NE(facts.chatTemplate.find("<|end_of_msg|>"), std::string::npos);
  EXPECT_EQ(facts.facts.back().origin, "described by models/text/kimi-k3.json for model_type kimi_k3");
  EXPECT_EQ(facts.eosIds, (Ids{163586})) << "what the tokenizer or an inner config calls the end does not count";
  EXPECT_EQ(Folder().add("chat_template.jinja", "own").facts(config).chatTemplate, "own");
  EXPECT_EQ(Folder().facts(parsed(R"({"model_type": "llama"})")).chatTemplate, "");
}

TEST(GenerationFacts, Gguf) {
  auto none = [](const std::string &) -> StatusOr<std::vector<float>> { return Status::error("none"); };
  GgufConfig config({{"general.architecture", "llama"},
                     {"tokenizer.ggml.tokens", Json::array({"<unk>", "<s>", "</s>", "<eot>"})},
                     {"tokenizer.ggml.bos_token_id", 1},
                     {"tokenizer.ggml.eos_token_id", 2},
                     {"tokenizer.ggml.eot_token_id", 3},
                     {"tokenizer.ggml.padding_token_id", 9},
                     {"tokenizer.ggml.add_bos_token", true},
                     {"tokenizer.chat_template", "D"},
                     {"tokenizer.chat_template.tool_use", "T"}},
                    {}, none, "model.gguf");
  StatusOr<GenerationFacts> facts = readGenerationFacts(config, "");
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_EQ(facts->eosIds, (Ids{2, 3}));
  EXPECT_EQ(facts->bosId, 1);
  EXPECT_EQ(facts->addBos, true);
  EXPECT_EQ(facts->chatTemplate, "D");
  EXPECT_EQ(facts->otherTemplates.size(), 1u);
  EXPECT_EQ(facts->specialTokens,
            (std::vector<std::pair<std::string, std::string>>{{"bos_token", "<s>"}, {"eos_token", "</s>"}}))
      << "an id beyond the tokens names nothing";
}
