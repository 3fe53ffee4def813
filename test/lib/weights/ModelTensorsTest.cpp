// The adapter over ModelFiles, on a small safetensors file written here.
#include "lib/weights/ModelTensors.h"
#include "MemoryTensors.h"
#include <cstring>
#include <filesystem>

using namespace llmc;
using namespace llmc::test;

namespace {
using Opened = std::shared_ptr<const OpenTensor>;

// "m" F32 [3, 2] = 0..5, "v" BF16 [2] = {1, -2}, "s" F32 [] = 7.
std::string writeModel() {
  std::string folder = testing::TempDir() + "/model-tensors";
  std::filesystem::create_directories(folder);
  std::string header = R"({"m":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                       R"("s":{"dtype":"F32","shape":[],"data_offsets":[24,28]},)"
                       R"("v":{"dtype":"BF16","shape":[2],"data_offsets":[28,32]}})";
  uint64_t length = header.size();
  float numbers[] = {0, 1, 2, 3, 4, 5, 7};
  uint16_t halves[] = {0x3F80, 0xC000};
  std::ofstream file(folder + "/model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), 8);
  file << header;
  file.write(reinterpret_cast<const char *>(numbers), sizeof(numbers));
  file.write(reinterpret_cast<const char *>(halves), sizeof(halves));
  std::ofstream(folder + "/config.json") << "{}";
  return folder;
}
} // namespace

TEST(ModelTensors, ValuesInTheOrderOfTheShape) {
  StatusOr<ModelFiles> files = ModelFiles::open(writeModel());
  ASSERT_TRUE(files.ok()) << files.status().message();
  ModelTensors tensors(*files);
  StatusOr<Opened> matrix = tensors.open("m"), vector = tensors.open("v"), scalar = tensors.open("s");
  ASSERT_TRUE(matrix.ok() && vector.ok() && scalar.ok());
  EXPECT_EQ((*matrix)->info().shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ((*vector)->info().type, TensorType::BF16);
  EXPECT_EQ((*scalar)->info().shape, (std::vector<int64_t>{1}));
  float rows[4];
  ASSERT_TRUE((*matrix)->readValues(2, 4, rows).ok());
  EXPECT_EQ(std::vector<float>(rows, rows + 4), (std::vector<float>{2, 3, 4, 5}));
  ASSERT_TRUE((*vector)->readValues(1, 1, rows).ok());
  EXPECT_EQ(rows[0], -2.0f);
  EXPECT_NE(tensors.open("x").status().message().find("tensor 'x' is not in "), std::string::npos);
}

TEST(ModelTensors, BlocksAreTheStoredBytes) {
  StatusOr<ModelFiles> files = ModelFiles::open(writeModel());
  ASSERT_TRUE(files.ok()) << files.status().message();
  ModelTensors tensors(*files);
  StatusOr<Opened> matrix = tensors.open("m");
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  std::vector<uint8_t> bytes(8);
  ASSERT_TRUE((*matrix)->readBlocks(4, 2, bytes).ok());
  float row[2];
  std::memcpy(row, bytes.data(), 8);
  EXPECT_EQ(row[1], 5.0f);
  EXPECT_EQ((*matrix)->readBlocks(6, 2, bytes).message(), "tensor 'm': has 24 bytes, 8 from byte 24 are asked for");
  EXPECT_FALSE((*matrix)->readBlocks(0, 4, bytes).ok()); // 16 bytes
}

TEST(ModelTensors, ConstantsAreInNoFile) {
  StatusOr<ModelFiles> files = ModelFiles::open(writeModel());
  ASSERT_TRUE(files.ok()) << files.status().message();
  ModelTensors tensors(*files);
  EXPECT_EQ((*tensors.open("constant [0.5,0.25] 1"))->info().shape, (std::vector<int64_t>{2}));
  StatusOr<Opened> constant = tensors.open("constant [1,0] 3");
  ASSERT_TRUE(constant.ok()) << constant.status().message();
  EXPECT_EQ((*constant)->info().shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ((*constant)->info().type, TensorType::F32);
  float values[3];
  ASSERT_TRUE((*constant)->readValues(2, 3, values).ok());
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{1, 0, 1}));
  std::vector<uint8_t> bytes(4);
  ASSERT_TRUE((*constant)->readBlocks(4, 1, bytes).ok());
  std::memcpy(values, bytes.data(), 4);
  EXPECT_EQ(values[0], 1.0f);
  for (const char *bad : {"constant [1,0]", "constant 1 0", "constant [] 1", "constant [1] 0", "constant "})
    EXPECT_FALSE(tensors.open(bad).ok()) << bad;
}
