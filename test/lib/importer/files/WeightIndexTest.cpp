#include "lib/importer/files/WeightIndex.h"
#include "test/runtime/support/TemporaryFolder.h"

using namespace llmc;

namespace {

std::string errorOf(const std::string &text) {
  StatusOr<WeightIndex> index = parseWeightIndex(text, "index.json");
  return index.ok() ? "" : index.status().message();
}

std::string errorOfShard(const std::string &shard) {
  return errorOf("{\"weight_map\": {\"lm_head.weight\": \"" + shard + "\"}}");
}

} // namespace

TEST(WeightIndex, Reads) {
  StatusOr<WeightIndex> index = parseWeightIndex(
      R"({"metadata": {"total_size": 24}, "weight_map": {"b": "m-1.safetensors", "a": "sub/m-2.safetensors"}})", "i");
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->totalBytes, 24u);
  EXPECT_EQ(index->shardOf.at("a"), "sub/m-2.safetensors");
}

// Group 15.
TEST(WeightIndex, NamesThatLeaveTheFolder) {
  for (const char *shard : {"../../etc/passwd", "a/../../x.safetensors", "/etc/passwd", "..", "/x.safetensors"})
    EXPECT_EQ(errorOfShard(shard),
              std::string("index.json: /weight_map/lm_head.weight: '") + shard + "' leaves the model folder");
  EXPECT_EQ(errorOfShard("a\\u0000.safetensors"),
            "index.json: /weight_map/lm_head.weight: 'a\\x00.safetensors' holds a NUL byte");
  EXPECT_EQ(errorOfShard(""), "index.json: /weight_map/lm_head.weight is \"\", expected a file name");
}

// Group 17.
TEST(WeightIndex, NamesThatAreNoWeights) {
  EXPECT_EQ(errorOfShard("model.safetensors.index.json"),
            "index.json: /weight_map/lm_head.weight: shard 'model.safetensors.index.json' is an index, not weights");
  EXPECT_EQ(errorOfShard("pytorch_model-1.bin"),
            "index.json: /weight_map/lm_head.weight: shard 'pytorch_model-1.bin' is not a .safetensors file; convert "
            "the model to safetensors");
}

TEST(WeightIndex, OtherForms) {
  EXPECT_EQ(errorOf("{}"), "index.json: /weight_map is missing, expected an object of tensor and file names");
  EXPECT_EQ(errorOf("{\"weight_map\": []}"),
            "index.json: /weight_map is [], expected an object of tensor and file names");
  EXPECT_EQ(errorOf("{\"weight_map\": {\"a\": 1}}"), "index.json: /weight_map/a is 1, expected a string");
  EXPECT_EQ(errorOf("{\"weight_map\": {\"a\": \"x.safetensors\", \"a\": \"y.safetensors\"}}"),
            "index.json: /weight_map/a has the key 'a' twice");
  // Two documents, or a merge that was not finished.
  EXPECT_EQ(errorOf("{\"weight_map\": {}}\n{\"weight_map\": {}}").substr(0, 46),
            "index.json: not valid JSON at line 2, column 1");
  EXPECT_EQ(errorOf("{\"weight_map\": {}}\n=======\n{\"weight_map\": {}}").substr(0, 46),
            "index.json: not valid JSON at line 2, column 1");
  EXPECT_EQ(errorOf("{\"weight_map\": {}, \"metadata\": {\"total_size\": -1}}").substr(0, 40),
            "index.json: /metadata/total_size is -1, ");
}

TEST(WeightIndex, LinksThatLeaveTheFolder) {
  test::TemporaryFolder here;
  here.write("outside/secret.safetensors", "x");
  here.write("model/inside.safetensors", "x");
  std::filesystem::create_symlink("../outside/secret.safetensors", here / "model/out.safetensors");
  std::filesystem::create_symlink("inside.safetensors", here / "model/in.safetensors");
  std::filesystem::create_symlink("../outside", here / "model/folder");
  std::string model = here / "model";
  EXPECT_TRUE(resolveShard(model, "in.safetensors", "p").ok());
  EXPECT_TRUE(resolveShard(model, "inside.safetensors", "p").ok());
  std::string real = std::filesystem::canonical(here / "outside/secret.safetensors").string();
  EXPECT_EQ(resolveShard(model, "out.safetensors", "p").status().message(),
            "p: 'out.safetensors' links to '" + real + "' and leaves the model folder");
  EXPECT_FALSE(resolveShard(model, "folder/secret.safetensors", "p").ok());
  EXPECT_FALSE(resolveShard(model, "absent.safetensors", "p").ok());
}

// Where huggingface_hub puts what it downloads.
TEST(WeightIndex, LinksOfTheDownloadCache) {
  test::TemporaryFolder here;
  here.write("models--a--b/blobs/0123", "x");
  here.write("models--c--d/blobs/4567", "x");
  std::string snapshot = here / "models--a--b/snapshots/main";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_symlink("../../blobs/0123", snapshot + "/own.safetensors");
  std::filesystem::create_symlink("../../../models--c--d/blobs/4567", snapshot + "/other.safetensors");
  EXPECT_TRUE(resolveShard(snapshot, "own.safetensors", "p").ok());
  EXPECT_FALSE(resolveShard(snapshot, "other.safetensors", "p").ok());
}
