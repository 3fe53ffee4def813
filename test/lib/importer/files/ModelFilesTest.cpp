#include "lib/importer/files/ModelFiles.h"
#include "runtime/support/Json.h"
#include "test/lib/importer/files/WeightFileBytes.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <sys/stat.h>
#include <thread>

using namespace llmc;
using test::GgufBytes;
using test::TemporaryFolder;

namespace {

// A shard of F32 vectors: each tensor holds `values` copies of its own number.
struct Vector {
  std::string name;
  float number;
};
std::string shardBytes(const std::vector<Vector> &tensors, uint64_t values = 4) {
  Json header = Json::object();
  std::string data;
  for (const Vector &tensor : tensors) {
    uint64_t begin = data.size();
    for (uint64_t i = 0; i < values; ++i)
      data += test::littleEndian(tensor.number);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", {values}}, {"data_offsets", {begin, data.size()}}};
  }
  return test::safetensorsBytes(header.dump()) + data;
}

std::string indexBytes(const std::vector<std::pair<std::string, std::string>> &shardOf, uint64_t totalBytes) {
  Json map = Json::object();
  for (const auto &[tensor, shard] : shardOf)
    map[tensor] = shard;
  return Json({{"metadata", {{"total_size", totalBytes}}}, {"weight_map", map}}).dump();
}

constexpr const char *indexName = "model.safetensors.index.json";
constexpr const char *shard1 = "model-00001-of-00002.safetensors", *shard2 = "model-00002-of-00002.safetensors";

std::string errorOf(const std::string &path) {
  StatusOr<ModelFiles> model = ModelFiles::open(path);
  return model.ok() ? "" : model.status().message();
}

float firstValue(const ModelFiles &model, const std::string &name) {
  const ModelTensor *tensor = model.find(name);
  if (!tensor)
    return -1;
  std::vector<float> row(tensor->rowValues());
  Status status = model.readRows(*tensor, 0, 1, row);
  EXPECT_TRUE(status.ok()) << status.message();
  return row[0];
}

} // namespace

TEST(ModelFiles, OneFile) {
  TemporaryFolder here;
  here.write("config.json", "{}");
  here.write("model.safetensors", shardBytes({{"b", 2}, {"a", 1}}));
  here.write("consolidated.safetensors", "not looked at");
  StatusOr<ModelFiles> model = ModelFiles::open(here.path() + "/");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->hasWeights());
  ASSERT_EQ(model->tensors().size(), 2u);
  EXPECT_EQ(model->tensors()[0].name, "a");
  EXPECT_EQ(firstValue(*model, "a"), 1);
  EXPECT_EQ(firstValue(*model, "b"), 2);
  EXPECT_EQ(model->find("c"), nullptr);
  EXPECT_EQ(model->gguf(), nullptr);
  EXPECT_EQ(model->configPath(), here / "config.json");
  EXPECT_TRUE(model->warnings().empty());
}

TEST(ModelFiles, IndexedShards) {
  TemporaryFolder here;
  here.write(shard1, shardBytes({{"a", 1}, {"c", 3}}));
  here.write(shard2, shardBytes({{"b", 2}}));
  here.write(indexName, indexBytes({{"a", shard1}, {"b", shard2}, {"c", shard1}}, 48));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->weightFiles().size(), 2u);
  EXPECT_TRUE(model->warnings().empty());
  for (const Vector &tensor : {Vector{"a", 1}, {"b", 2}, {"c", 3}})
    EXPECT_EQ(firstValue(*model, tensor.name), tensor.number);
}

// Group 16.
TEST(ModelFiles, IndexAgainstShards) {
  TemporaryFolder here;
  std::string index = here / indexName;
  here.write(shard1, shardBytes({{"a", 1}}));
  here.write(indexName, indexBytes({{"a", shard1}, {"b", shard2}, {"c", shard2}}, 48));
  EXPECT_EQ(errorOf(here.path()), index + ": shard 'model-00002-of-00002.safetensors' is named for 2 tensors but does "
                                          "not exist");
  here.write(shard2, shardBytes({{"b", 2}}));
  EXPECT_EQ(errorOf(here.path()), index + ": tensor 'c' is not in its shard 'model-00002-of-00002.safetensors'");
  here.write(shard2, shardBytes({{"a", 2}, {"b", 2}, {"c", 2}}));
  EXPECT_EQ(errorOf(here.path()), here.path() + ": tensor 'a' is in 'model-00001-of-00002.safetensors' and in "
                                                "'model-00002-of-00002.safetensors'");
  here.write(shard1, shardBytes({{"a", 1}, {"b", 2}}));
  here.write(shard2, shardBytes({{"c", 2}}));
  EXPECT_EQ(errorOf(here.path()), index + ": tensor 'b' is named in 'model-00002-of-00002.safetensors' but lies in "
                                          "'model-00001-of-00002.safetensors'");
  here.write(indexName, indexBytes({{"a", shard1}, {"c", shard2}}, 47));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(
      model->warnings(),
      (std::vector<std::string>{
          index + ": does not name 1 tensors that its shards hold, first 'b' of 'model-00001-of-00002.safetensors'",
          index + ": /metadata/total_size is 47, the tensors take 48"}));
  EXPECT_EQ(firstValue(*model, "b"), 2);
}

// A published index without its shards serves whatever reads no weights; who needs them hears of the first one.
TEST(ModelFiles, IndexWithoutAnyShard) {
  TemporaryFolder here;
  here.write("config.json", "{}");
  here.write(indexName, indexBytes({{"b", shard2}, {"a", shard1}, {"c", shard2}}, 48));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_FALSE(model->hasWeights());
  EXPECT_EQ(model->tensorNames(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(model->requireWeights().message(), here / indexName + ": shard 'model-00001-of-00002.safetensors' is named "
                                                                  "for 1 tensors but does not exist");
  std::filesystem::remove(here / "config.json");
  EXPECT_EQ(errorOf(here.path()), model->requireWeights().message());
}

TEST(ModelFiles, ForgottenIndexBesideAMergedFile) {
  TemporaryFolder here;
  here.write("model.safetensors", shardBytes({{"a", 1}}));
  here.write(indexName, indexBytes({{"a", shard1}}, 16));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(firstValue(*model, "a"), 1);
  EXPECT_EQ(model->tensorNames(), std::vector<std::string>{"a"});
  EXPECT_TRUE(model->requireWeights().ok());
  EXPECT_EQ(model->warnings(),
            std::vector<std::string>{here / indexName +
                                     ": shard 'model-00001-of-00002.safetensors' is named for 1 tensors "
                                     "but does not exist; model.safetensors is read instead"});
}

// Groups 15 and 17.
TEST(ModelFiles, IndexThatLeavesTheFolder) {
  TemporaryFolder here;
  here.write("outside.safetensors", shardBytes({{"a", 1}}));
  std::string index = here / "model" + "/" + indexName;
  auto naming = [&](const std::string &shard) {
    here.write("model/" + std::string(indexName), indexBytes({{"a", shard}}, 16));
    return errorOf(here / "model");
  };
  EXPECT_EQ(naming("../outside.safetensors"),
            index + ": /weight_map/a: '../outside.safetensors' leaves the model folder");
  EXPECT_EQ(naming(indexName),
            index + ": /weight_map/a: shard 'model.safetensors.index.json' is an index, not weights");
  std::filesystem::create_symlink("../outside.safetensors", here / "model/link.safetensors");
  EXPECT_NE(naming("link.safetensors").find("/weight_map/a: 'link.safetensors' links to"), std::string::npos);
  std::filesystem::create_symlink("/dev/zero", here / "model/zero.safetensors");
  EXPECT_NE(naming("zero.safetensors"), "");
  ASSERT_EQ(::mkfifo((here / "model/fifo.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(naming("fifo.safetensors"), here / "model/fifo.safetensors" + ": not a regular file");
}

TEST(ModelFiles, ShardsWithoutAnIndex) {
  TemporaryFolder here;
  here.write(shard2, shardBytes({{"b", 2}}));
  EXPECT_EQ(errorOf(here.path()), here.path() + ": holds 1 of 2 shards, number 1 is missing");
  here.write(shard1, shardBytes({{"a", 1}}));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(firstValue(*model, "a"), 1);
  EXPECT_EQ(firstValue(*model, "b"), 2);
  here.write("model-00003-of-00003.safetensors", shardBytes({{"c", 1}}));
  EXPECT_NE(errorOf(here.path()).find("which belong to different sets"), std::string::npos);
}

TEST(ModelFiles, FoldersOfOtherThings) {
  TemporaryFolder here;
  EXPECT_EQ(errorOf(here.path()), here.path() + ": holds neither config.json nor weights");
  here.write("config.json", "{}");
  StatusOr<ModelFiles> bare = ModelFiles::open(here.path());
  ASSERT_TRUE(bare.ok());
  EXPECT_FALSE(bare->hasWeights());
  EXPECT_EQ(bare->requireWeights().message(), here.path() + ": holds no weights, which this needs");
  for (const char *name : {"pytorch_model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"}) {
    here.write(name, "\x80\x02");
    EXPECT_EQ(errorOf(here.path()), here.path() + ": holds '" + name +
                                        "' and no .safetensors; pickled weights can run code, convert them to "
                                        "safetensors");
    std::filesystem::remove(here / name);
  }
  here.write("model-q4.gguf", "GGUF");
  EXPECT_EQ(errorOf(here.path()), here.path() + ": holds 1 .gguf files and no model.safetensors; give the file itself, "
                                                "such as 'model-q4.gguf'");
  std::filesystem::remove(here / "model-q4.gguf");
  here.write("a.safetensors", shardBytes({{"a", 1}}));
  EXPECT_EQ(errorOf(here.path()), "") << "one file of another name";
  here.write("b.safetensors", shardBytes({{"a", 1}}));
  EXPECT_EQ(errorOf(here.path()), here.path() + ": holds 2 .safetensors files, first 'a.safetensors' and "
                                                "'b.safetensors', and no model.safetensors.index.json to say what is "
                                                "where");
  std::filesystem::create_symlink("../../blobs/gone", here / "model.safetensors");
  EXPECT_EQ(errorOf(here.path()), here / "model.safetensors" + ": cannot open: No such file or directory");
}

TEST(ModelFiles, AdaptersHaveNoModel) {
  TemporaryFolder here;
  here.write("adapter_model.safetensors", shardBytes({{"a", 1}}));
  here.write("adapter_config.json", R"({"peft_type": "LORA", "base_model_name_or_path": "org/base"})");
  EXPECT_EQ(errorOf(here.path()), here.path() + ": is an adapter; the base model 'org/base' is missing, merge the "
                                                "adapter into it");
  here.write("adapter_config.json", "{}");
  EXPECT_EQ(errorOf(here.path()),
            here.path() + ": is an adapter; the base model is missing, merge the adapter into it");
  here.write("config.json", "{}");
  EXPECT_EQ(errorOf(here.path()), "") << "the adapter lies beside its model";
}

TEST(ModelFiles, PathsOfOtherThings) {
  TemporaryFolder here;
  EXPECT_EQ(errorOf(here / "absent"), here / "absent" + ": cannot open: No such file or directory");
  EXPECT_EQ(errorOf(here.write("m.bin", "\x80\x02 pickle of weights")),
            here / "m.bin" + ": this is a Python pickle (80 02), which can run code; convert it to safetensors");
  EXPECT_EQ(errorOf(here.write("m.gguf", "version https://git-lfs.github.com/spec/v1\n")),
            here / "m.gguf" + ": this is a Git LFS pointer, not the weights; run git lfs pull");
  EXPECT_EQ(errorOf(here.write("n.gguf", std::string(30, 'x'))),
            here / "n.gguf" + ": not a GGUF file: it starts with 'xxxx', expected 'GGUF'");
  EXPECT_EQ(errorOf(here.write("w.safetensors", shardBytes({{"a", 1}}))),
            here / "w.safetensors" + ": is one weight file; give its folder, which holds the config too");
  EXPECT_EQ(errorOf(here.write("readme.md", "hello")),
            here / "readme.md" + ": not a model; expected a Hugging Face folder, a .gguf file or a config.json");
  EXPECT_EQ(errorOf("/dev/zero"), "/dev/zero: not a regular file");
}

TEST(ModelFiles, SideFiles) {
  TemporaryFolder here;
  here.write("config.json", "{}");
  here.write("tokenizer.json", "{}");
  here.write("additional_chat_templates/tool.jinja", "");
  here.write("additional_chat_templates/rag.jinja", "");
  here.write("additional_chat_templates/readme.md", "");
  std::filesystem::create_directory(here / "chat_template.jinja");
  for (const std::string &path : {here.path(), here / "config.json"}) {
    StatusOr<ModelFiles> model = ModelFiles::open(path);
    ASSERT_TRUE(model.ok());
    EXPECT_FALSE(model->hasWeights());
    EXPECT_EQ(model->configPath(), here / "config.json");
    EXPECT_EQ(model->sideFile("tokenizer.json"), here / "tokenizer.json");
    EXPECT_EQ(model->sideFile("generation_config.json"), "");
    EXPECT_EQ(model->sideFile("chat_template.jinja"), "") << "a folder";
    EXPECT_EQ(model->additionalChatTemplates(),
              (std::vector<std::string>{here / "additional_chat_templates/rag.jinja",
                                        here / "additional_chat_templates/tool.jinja"}));
  }
  StatusOr<ModelFiles> alone = ModelFiles::open(here.write("some-model.json", "{}"));
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->configPath(), here / "some-model.json");
  EXPECT_EQ(alone->sideFile("tokenizer.json"), "") << "its neighbours are not its own";
}

TEST(ModelFiles, RowsOfAnyRank) {
  TemporaryFolder here;
  std::string data;
  for (int i = 0; i < 24; ++i)
    data += test::littleEndian(static_cast<float>(i));
  std::string header = R"({"m":{"dtype":"F32","shape":[2,3,4],"data_offsets":[0,96]},)"
                       R"("s":{"dtype":"F32","shape":[],"data_offsets":[96,100]}})";
  here.write("model.safetensors", test::safetensorsBytes(header) + data + test::littleEndian(7.0f));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelTensor &matrix = *model->find("m");
  EXPECT_EQ(matrix.numRows(), 6u);
  std::vector<float> rows(8);
  ASSERT_TRUE(model->readRows(matrix, 4, 2, rows).ok());
  EXPECT_EQ(rows, (std::vector<float>{16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(firstValue(*model, "s"), 7);
  EXPECT_EQ(model->readRows(matrix, 5, 2, rows).message(), "tensor 'm' has 6 rows, rows 5 to 7 were asked for");
  EXPECT_EQ(model->readRows(matrix, 0, 1, rows).message(), "tensor 'm': 1 rows take 4 values, there is room for 8");
  EXPECT_FALSE(model->readRows(matrix, UINT64_MAX, 2, rows).ok());
  EXPECT_EQ(model->bytes(matrix)->size(), 96u);
  ModelTensor outside = matrix;
  outside.offset = UINT64_MAX;
  EXPECT_FALSE(model->bytes(outside).ok());
}

// Group 14.
TEST(ModelFiles, FilesThatChange) {
  TemporaryFolder here;
  std::string bytes = shardBytes({{"a", 1}}, 4096), path = here.write("model.safetensors", bytes);
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok());
  const ModelTensor &tensor = *model->find("a");
  std::string changed =
      path + ": changed while it was read: " + std::to_string(bytes.size()) + " bytes at open, 8192 now";
  std::filesystem::resize_file(path, 8192);
  EXPECT_EQ(model->bytes(tensor).status().message(), changed) << "before the first use";
  here.write("model.safetensors", bytes);
  EXPECT_EQ(model->bytes(tensor).status().message(), path + ": changed while it was read")
      << "the same bytes, written anew";
  model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(model->bytes(*model->find("a")).ok());
  std::filesystem::resize_file(path, 8192);
  EXPECT_EQ(model->bytes(*model->find("a")).status().message(), changed) << "after it";
  std::vector<float> row(4096);
  EXPECT_EQ(model->readRows(*model->find("a"), 0, 1, row).message(), changed);

  // Another file of the same size takes its place between the reading of the header and the first use.
  here.write("model.safetensors", bytes);
  StatusOr<ModelFiles> again = ModelFiles::open(here.path());
  ASSERT_TRUE(again.ok());
  std::filesystem::rename(here.write("other", bytes), path);
  EXPECT_EQ(again->bytes(*again->find("a")).status().message(), path + ": was replaced while it was read");
}

TEST(ModelFiles, ThreadsMapTogether) {
  TemporaryFolder here;
  here.write(shard1, shardBytes({{"a", 1}}));
  here.write(shard2, shardBytes({{"b", 2}}));
  StatusOr<ModelFiles> model = ModelFiles::open(here.path());
  ASSERT_TRUE(model.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      EXPECT_EQ(firstValue(*model, "a"), 1);
      EXPECT_EQ(firstValue(*model, "b"), 2);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(ModelFiles, Gguf) {
  TemporaryFolder here;
  GgufBytes gguf(1, 1);
  gguf.key("general.architecture", 8).string("llama").tensor("token_embd.weight", {32, 2}, 8, 0).data(68);
  // Two blocks of Q8_0: scale 1 (0x3C00), codes 0 to 31.
  for (size_t block : {0, 1}) {
    char *at = gguf.bytes.data() + gguf.bytes.size() - 68 + 34 * block;
    at[1] = 0x3C;
    for (int i = 0; i < 32; ++i)
      at[2 + i] = static_cast<char>(i + 32 * static_cast<int>(block));
  }
  here.write("config.json", "{}");
  StatusOr<ModelFiles> model = ModelFiles::open(here.write("m.gguf", gguf.bytes));
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_NE(model->gguf(), nullptr);
  EXPECT_EQ(*model->gguf()->string("general.architecture"), "llama");
  EXPECT_EQ(model->configPath(), "") << "the metadata takes its place";
  const ModelTensor &tensor = *model->find("token_embd.weight");
  EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{2, 32}));
  std::vector<float> row(32);
  ASSERT_TRUE(model->readRows(tensor, 1, 1, row).ok());
  EXPECT_EQ(row[0], 32);
  EXPECT_EQ(row[31], 63);
}

TEST(ModelFiles, GgufSplits) {
  TemporaryFolder here;
  auto split = [&](uint32_t number, const char *tensor) {
    GgufBytes gguf(1, 3);
    gguf.keyU32("split.no", number).keyU32("split.count", 2).keyU32("split.tensors.count", 2);
    return gguf.tensor(tensor, {4}, 0, 0).data(16).bytes;
  };
  std::string first = here.write("m-00001-of-00002.gguf", split(0, "a"));
  EXPECT_EQ(errorOf(first), first + ": split '" + here / "m-00002-of-00002.gguf" + "' of 2 does not exist");
  std::string second = here.write("m-00002-of-00002.gguf", split(1, "b"));
  StatusOr<ModelFiles> model = ModelFiles::open(first);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->tensors().size(), 2u);
  EXPECT_EQ(firstValue(*model, "b"), 0);
  EXPECT_EQ(errorOf(second), second + ": is split 2 of 2; give the first, which ends in '-00001-of-00002.gguf'");
  EXPECT_EQ(errorOf(here.write("other.gguf", split(0, "a"))),
            here / "other.gguf" + ": is split 1 of 2, so its name must end in '-00001-of-00002.gguf'");
  here.write("m-00002-of-00002.gguf", split(1, "a"));
  EXPECT_NE(errorOf(first).find("tensor 'a' is in"), std::string::npos);
}
