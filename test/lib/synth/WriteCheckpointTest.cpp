// Checkpoints are read back by what reads published ones.
#include "lib/synth/WriteCheckpoint.h"
#include "lib/importer/files/ModelFiles.h"
#include "runtime/support/File.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <filesystem>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

constexpr char marker[] = "{}";

CheckpointContents contentsOf(TensorType type) {
  CheckpointContents contents;
  // The second one is made in more than one piece of 2^18 values, the last of them not whole.
  contents.tensors = {{"a", {3}, 1.0, 0.02}, {"b", {1031, 517}, 0.0, 1.0}, {"c", {2, 2}, 0.0, 0.5}};
  contents.type = type;
  contents.config = "{\"architectures\": [\"X\"]}";
  contents.marker = marker;
  return contents;
}

std::string textOf(const std::string &path) {
  StatusOr<std::string> text = readFile(path, 1 << 24);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

} // namespace

class WriteCheckpoint : public ::testing::Test {
protected:
  test::TemporaryFolder temporary;
  std::string folder = temporary.path() + "/out";

  ModelFiles written(const CheckpointContents &contents, const CheckpointWriting &writing = {}) {
    Status status = writeCheckpoint(contents, writing, folder);
    EXPECT_TRUE(status.ok()) << status.message();
    StatusOr<ModelFiles> files = ModelFiles::open(folder);
    EXPECT_TRUE(files.ok()) << files.status().message();
    return std::move(*files);
  }
};

TEST_F(WriteCheckpoint, EachType) {
  for (TensorType type : {TensorType::F32, TensorType::BF16, TensorType::F16}) {
    CheckpointContents contents = contentsOf(type);
    ModelFiles files = written(contents);
    EXPECT_TRUE(files.warnings().empty());
    const ModelTensor *b = files.find("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->type, type);
    std::vector<float> drawn(517), read(517);
    RandomValues(contents.tensors[1], 0).fill(1030 * 517, drawn);
    ASSERT_TRUE(files.readRows(*b, 1030, 1, read).ok());
    for (size_t i = 0; i < drawn.size(); ++i)
      EXPECT_NEAR(read[i], drawn[i], type == TensorType::F32 ? 0.0 : 0.008); // half a step of bfloat16 below 4
  }
}

TEST_F(WriteCheckpoint, ThreadsChangeNothing) {
  CheckpointWriting writing;
  written(contentsOf(TensorType::BF16), writing);
  std::string one = textOf(folder + "/model.safetensors");
  writing.threads = 5;
  written(contentsOf(TensorType::BF16), writing);
  EXPECT_EQ(one, textOf(folder + "/model.safetensors"));
}

TEST_F(WriteCheckpoint, ShardsWithAnIndex) {
  CheckpointWriting writing;
  writing.shardBytes = 20; // "b" alone takes more
  ModelFiles files = written(contentsOf(TensorType::BF16), writing);
  EXPECT_TRUE(files.warnings().empty()) << files.warnings().front();
  ASSERT_EQ(files.weightFiles().size(), 3u);
  EXPECT_EQ(std::filesystem::path(files.weightFiles()[2]).filename(), "model-00003-of-00003.safetensors");
  EXPECT_NE(textOf(folder + "/model.safetensors.index.json").find("\"total_size\": 1066068"), std::string::npos);
}

TEST_F(WriteCheckpoint, CountsProgressInBytes) {
  CheckpointWriting writing;
  uint64_t last = 0;
  writing.progress = [&](uint64_t written) { last = written; };
  written(contentsOf(TensorType::BF16), writing);
  EXPECT_EQ(last, 2u * (3 + 1031 * 517 + 4));
}

TEST_F(WriteCheckpoint, SideFilesAreCopied) {
  temporary.write("tokens", "vocabulary");
  CheckpointContents contents = contentsOf(TensorType::BF16);
  contents.sideFiles = {{"tokenizer.json", temporary.path() + "/tokens"}};
  ModelFiles files = written(contents);
  EXPECT_EQ(textOf(files.sideFile("tokenizer.json")), "vocabulary");
}

TEST_F(WriteCheckpoint, ReplacesItsOwnAndNothingElse) {
  written(contentsOf(TensorType::BF16));
  written(contentsOf(TensorType::F32));
  std::filesystem::remove(folder + "/" + synthMarkerFile);
  Status status = writeCheckpoint(contentsOf(TensorType::F32), {}, folder);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("has no 'llmc-synth.json', so it is not ours to replace"), std::string::npos);
}

TEST_F(WriteCheckpoint, NoRoom) {
  CheckpointContents contents = contentsOf(TensorType::F32);
  contents.tensors[1].shape = {uint64_t{1} << 30, uint64_t{1} << 20};
  Status status = writeCheckpoint(contents, {}, folder);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("the weights take 4503599627370524 bytes, the disk has "), std::string::npos)
      << status.message();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(WriteCheckpoint, SizesBeyond64Bits) {
  CheckpointContents contents = contentsOf(TensorType::F32);
  contents.tensors[1].shape = {uint64_t{1} << 40, uint64_t{1} << 40};
  EXPECT_FALSE(writeCheckpoint(contents, {}, folder).ok());
  contents.tensors = std::vector<RandomTensor>(5, {"a", {uint64_t{1} << 60}, 0.0, 1.0});
  EXPECT_EQ(writeCheckpoint(contents, {}, folder).message(),
            "the weights take more than 64 bits of bytes; ask for fewer layers");
}
