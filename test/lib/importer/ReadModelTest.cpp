// From files on disk to checked facts.
#include "lib/importer/ReadModel.h"
#include "test/lib/importer/ImporterTesting.h"
#include "test/lib/importer/files/WeightFileBytes.h"
#include <filesystem>
#include <fstream>

using namespace llmc;
using namespace llmc::fixture;

namespace {

class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "llmc-read-model-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string add(const std::string &name, const std::string &bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
    return path_ + "/" + name;
  }
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

// Weights of the shapes that a model expects, all zero; `extra` gets the shape of the embedding and is filled with
// `fill`.
std::string weightsFor(const ModelSpec &spec, const std::string &extra = "", char fill = 0) {
  std::vector<ExpectedTensor> tensors = expectedTensors(spec);
  if (!extra.empty())
    tensors.push_back({extra, tensors[0].shape});
  Json header;
  uint64_t at = 0, extraBytes = 0;
  for (const ExpectedTensor &tensor : tensors) {
    uint64_t bytes = 2;
    for (int64_t size : tensor.shape)
      bytes *= static_cast<uint64_t>(size);
    header[tensor.name] = {{"dtype", "BF16"}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
    extraBytes = bytes;
  }
  std::string file = test::safetensorsBytes(header.dump(), at);
  if (!extra.empty())
    std::fill(file.end() - static_cast<int64_t>(extraBytes), file.end(), fill);
  return file;
}

StatusOr<ModelSpec> read(const std::string &path) {
  StatusOr<ModelFiles> files = ModelFiles::open(path);
  if (!files.ok())
    return files.status();
  return readModel(descriptions(), *files);
}
std::string errorAt(const std::string &path) {
  StatusOr<ModelSpec> spec = read(path);
  return spec.ok() ? "" : spec.status().message();
}

// A GGUF file of two layers, all tensors float32 zeros.
test::GgufBytes smallGguf() {
  std::vector<std::pair<std::string, std::vector<uint64_t>>> tensors = {{"token_embd.weight", {8, 3}},
                                                                        {"output_norm.weight", {8}}};
  for (std::string layer : {"blk.0.", "blk.1."})
    for (const auto &[name, dimensions] :
         std::vector<std::pair<std::string, std::vector<uint64_t>>>{{"attn_norm", {8}},
                                                                    {"attn_q", {8, 8}},
                                                                    {"attn_k", {8, 4}},
                                                                    {"attn_v", {8, 4}},
                                                                    {"attn_output", {8, 8}},
                                                                    {"ffn_norm", {8}},
                                                                    {"ffn_gate", {8, 12}},
                                                                    {"ffn_up", {8, 12}},
                                                                    {"ffn_down", {12, 8}}})
      tensors.emplace_back(layer + name + ".weight", dimensions);
  test::GgufBytes file(tensors.size(), 10);
  file.key("general.architecture", 8).string("llama");
  for (auto [name, value] : {std::pair("block_count", 2u),
                             {"context_length", 64u},
                             {"embedding_length", 8u},
                             {"feed_forward_length", 12u},
                             {"attention.head_count", 2u},
                             {"attention.head_count_kv", 1u}})
    file.keyU32(std::string("llama.") + name, value);
  file.key("llama.attention.layer_norm_rms_epsilon", 6).u32(0x3727c5ac); // 1e-5
  file.key("tokenizer.ggml.tokens", 9).u32(8).u64(3).string("a").string("b").string("c");
  file.keyU32("tokenizer.ggml.eos_token_id", 2);
  uint64_t at = 0;
  for (const auto &[name, dimensions] : tensors) {
    file.tensor(name, dimensions, 0, at);
    uint64_t bytes = 4;
    for (uint64_t dimension : dimensions)
      bytes *= dimension;
    at += (bytes + 31) / 32 * 32;
  }
  file.data(at);
  return file;
}

} // namespace

TEST(ReadModel, AFolder) {
  Folder folder;
  folder.add("config.json", configOf("llama-2").dump());
  EXPECT_EQ(errorAt(folder.path()), "") << "without weights, from the config alone";
  folder.add("model.safetensors", weightsFor(resolved("llama-2")));
  StatusOr<ModelSpec> spec = read(folder.path());
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->family, "llama");
}

TEST(ReadModel, WeightsOfAnotherModel) {
  Folder folder;
  folder.add("config.json", configOf("llama-2").dump());
  folder.add("model.safetensors", weightsFor(resolved(changed("llama-2", {{"num_hidden_layers", 3}}))));
  EXPECT_EQ(errorAt(folder.path()), folder.path() + ": layer 3 of 4 has no 'input_layernorm.weight' (and 8 more)");
}

TEST(ReadModel, ATiedHeadIsComparedWithTheEmbedding) {
  Folder folder;
  folder.add("config.json", configOf("llama-3.2").dump());
  folder.add("model.safetensors", weightsFor(resolved("llama-3.2"), "lm_head.weight"));
  EXPECT_EQ(errorAt(folder.path()), "");
  folder.add("model.safetensors", weightsFor(resolved("llama-3.2"), "lm_head.weight", 1));
  EXPECT_NE(errorAt(folder.path()).find("is stored too and differs"), std::string::npos);
}

TEST(ReadModel, AGgufFile) {
  Folder folder;
  std::string path = folder.add("model.gguf", smallGguf().bytes);
  StatusOr<ModelSpec> spec = read(path);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->vocabulary, 3);
  EXPECT_TRUE(spec->tiedHead);
  EXPECT_EQ(operandOf(kindOf(*spec, 1), "attention", 0).channels, 4);
  StatusOr<ModelFiles> files = ModelFiles::open(path);
  ASSERT_TRUE(files.ok());
  StatusOr<GenerationFacts> generation = readGenerationFacts(*files);
  ASSERT_TRUE(generation.ok()) << generation.status().message();
  EXPECT_EQ(generation->eosIds, std::vector<int64_t>{2});
}

TEST(ReadModel, NoConfig) {
  Folder folder;
  folder.add("model.safetensors", weightsFor(resolved("llama-2")));
  EXPECT_EQ(errorAt(folder.path()), folder.path() + " has no config.json");
}
