// Stored blocks moved into quantised forms. blocks/NAME.raw are blocks of random codes with extreme scales in front,
// blocks/NAME.values their numbers by the gguf package's dequantisers.
#include "lib/weights/BlockCodecs.h"
#include "MemoryTensors.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "lib/weights/ChooseForm.h"
#include "lib/weights/ModelTensors.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

using namespace llmc;
using namespace llmc::test;

namespace {
struct Stored {
  std::vector<uint8_t> bytes;
  std::vector<float> values;
  int64_t blocks, blockValues;
};

Stored load(TensorType type) {
  int64_t blockBytes = infoOf(type).blockBytes, blockValues = infoOf(type).blockValues;
  std::string base = std::string(LLMC_TEST_DATA) + "/blocks/" + std::string(nameOf(type));
  Stored stored{readBytes(base + ".raw"), {}, 0, blockValues};
  std::vector<uint8_t> values = readBytes(base + ".values");
  stored.values.resize(values.size() / 4);
  std::memcpy(stored.values.data(), values.data(), values.size());
  stored.blocks = static_cast<int64_t>(stored.bytes.size()) / blockBytes;
  EXPECT_EQ(static_cast<int64_t>(stored.values.size()), stored.blocks * blockValues);
  return stored;
}

// Rows of `perRow` blocks, packed from their bytes. The numbers the reader offers are wrong on purpose: they must not
// be used.
StatusOr<std::vector<uint8_t>> packStored(const Stored &stored, TensorType type, const PackedLayout &layout) {
  MemoryTensors tensors;
  std::vector<float> wrong(stored.values.size(), 12345.0f);
  tensors.addBlocks("t", {layout.n, layout.k}, type, stored.bytes, wrong);
  return packToBytes(recipeOfTensors({layout.n, layout.k}, {"t"}), layout, tensors);
}

std::vector<float> moved(const Stored &stored, TensorType type, WeightForm form, int64_t perRow) {
  PackedLayout layout = matrixLayout(stored.blocks / perRow, stored.blockValues * perRow, form, 16);
  StatusOr<std::vector<uint8_t>> packed = packStored(stored, type, layout);
  EXPECT_TRUE(packed.ok()) << packed.status().message();
  return packed.ok() ? *unpackWeight(layout, *packed) : std::vector<float>();
}
} // namespace

TEST(BlockCodecs, BlocksOf32AreExact) {
  struct {
    TensorType type;
    WeightForm form;
  } rows[] = {{TensorType::Q4_0, WeightForm::I4},
              {TensorType::Q4_0, WeightForm::I8},
              {TensorType::Q4_1, WeightForm::I4M},
              {TensorType::Q5_0, WeightForm::I8},
              {TensorType::Q8_0, WeightForm::I8}};
  for (auto &row : rows)
    for (int64_t perRow : {1, 2, 16}) { // half a block of 64, a whole one, one long row
      Stored stored = load(row.type);
      EXPECT_EQ(moved(stored, row.type, row.form, perRow), stored.values) << nameOf(row.type) << " " << perRow;
    }
}

// -8 * 65504 does not fit, so the two blocks with that scale are left out.
TEST(BlockCodecs, Q4_0WithMinimaIsExactWhereTheMinimumFits) {
  Stored stored = load(TensorType::Q4_0);
  PackedLayout layout = matrixLayout(16, 32, WeightForm::I4M, 16);
  StatusOr<std::vector<uint8_t>> packed = packStored(stored, TensorType::Q4_0, layout);
  ASSERT_FALSE(packed.ok());
  EXPECT_EQ(packed.status().message(),
            "weight 'w' has Q4_0 scales near column 0 that do not fit f16; choose bf16 or f32");
  stored.bytes.erase(stored.bytes.begin(), stored.bytes.begin() + 2 * 18);
  stored.values.erase(stored.values.begin(), stored.values.begin() + 2 * 32);
  stored.blocks -= 2;
  EXPECT_EQ(moved(stored, TensorType::Q4_0, WeightForm::I4M, 1), stored.values);
}

TEST(BlockCodecs, Q4_KKeepsCodesAndRoundsScales) {
  Stored stored = load(TensorType::Q4_K);
  // Blocks 0, 1 and 3 have scales or minima of 65504 times up to 63: refused. The others are rounded.
  EXPECT_FALSE(packStored(stored, TensorType::Q4_K, matrixLayout(10, 256, WeightForm::I4M, 16)).ok());
  for (int64_t block : {2, 4, 5, 6, 7, 8, 9}) {
    Stored one{{}, {}, 1, 256};
    one.bytes.assign(stored.bytes.begin() + block * 144, stored.bytes.begin() + (block + 1) * 144);
    one.values.assign(stored.values.begin() + block * 256, stored.values.begin() + (block + 1) * 256);
    std::vector<float> back = moved(one, TensorType::Q4_K, WeightForm::I4M, 1);
    ASSERT_EQ(back.size(), 256u);
    float d = fromF16(static_cast<uint16_t>(one.bytes[0] | one.bytes[1] << 8));
    float dmin = fromF16(static_cast<uint16_t>(one.bytes[2] | one.bytes[3] << 8));
    for (size_t i = 0; i < 256; ++i) {
      // Relative 2^-11 of scale * code and of the minimum; scale and minimum have factors up to 63, the code up to 15.
      float bound = 0x1p-11f * 63 * (15 * std::fabs(d) + std::fabs(dmin)) + 16 * 0x1p-25f;
      ASSERT_LE(std::fabs(back[i] - one.values[i]), bound) << block << " " << i;
    }
  }
}

// Each group's error, were its codes wrong, would show against the spread of the values themselves.
TEST(BlockCodecs, Q4_KErrorIsThatOfTheScalesOnly) {
  Stored stored = load(TensorType::Q4_K);
  stored.bytes.erase(stored.bytes.begin(), stored.bytes.begin() + 6 * 144);
  stored.values.erase(stored.values.begin(), stored.values.begin() + 6 * 256);
  stored.blocks -= 6;
  std::vector<float> back = moved(stored, TensorType::Q4_K, WeightForm::I4M, 2);
  for (size_t group = 0; group < back.size() / 32; ++group) {
    float largest = 0;
    for (size_t i = group * 32; i < group * 32 + 32; ++i)
      largest = std::max(largest, std::fabs(stored.values[i]));
    float dmin = 0.18f * 63; // above every |dmin| * minimum of these blocks
    for (size_t i = group * 32; i < group * 32 + 32; ++i)
      ASSERT_LE(std::fabs(back[i] - stored.values[i]), 0x1p-11f * (largest + 2 * dmin)) << i;
  }
}

TEST(BlockCodecs, BytesOfOneQ4_1Row) {
  // Scale 1.0 (0x3C00), minimum -2.0 (0xC000), byte j of the codes is 16 * (15 - j) + j.
  std::vector<uint8_t> row = {0x00, 0x3C, 0x00, 0xC0};
  std::vector<float> values(32);
  for (int j = 0; j < 16; ++j)
    row.push_back(static_cast<uint8_t>(16 * (15 - j) + j));
  PackedLayout layout = matrixLayout(1, 32, WeightForm::I4M, 16);
  StatusOr<std::vector<uint8_t>> packed = packStored({row, values, 1, 32}, TensorType::Q4_1, layout);
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  ASSERT_EQ(packed->size(), 640u);
  for (size_t j = 0; j < 16; ++j)
    EXPECT_EQ((*packed)[64 * (j / 4) + j % 4], 16 * (15 - j) + j); // lane 0, group 0
  EXPECT_EQ((*packed)[64 + 4], 0);                                 // lane 1 is past N
  EXPECT_EQ((*packed)[256], 0);                                    // group 1 is past K
  EXPECT_EQ((*packed)[512] | (*packed)[513] << 8, 0x3C00);
  EXPECT_EQ((*packed)[576] | (*packed)[577] << 8, 0xC000);
  EXPECT_EQ((*packed)[514] | (*packed)[578], 0);
  std::vector<float> back = *unpackWeight(layout, *packed);
  EXPECT_EQ(back[3], 3.0f - 2.0f);
  EXPECT_EQ(back[19], 12.0f - 2.0f);
}

TEST(BlockCodecs, RecipesMoveBlocksToo) {
  // Interleaved pairs of a head of 4 rows come out as halves, in an interleaved layout, without a change of value.
  Stored stored = load(TensorType::Q8_0);
  stored.bytes.erase(stored.bytes.begin(), stored.bytes.begin() + 8 * 34); // ordinary scales only
  stored.values.erase(stored.values.begin(), stored.values.begin() + 8 * 32);
  MemoryTensors tensors;
  tensors.addBlocks("t", {8, 32}, TensorType::Q8_0, stored.bytes, stored.values);
  WeightRecipe recipe{"w", {8, 32}, {{.tensor = "t", .unpermuteHeadRows = 4}}, 0.0};
  PackedLayout layout = matrixLayout(8, 32, WeightForm::I8, 6, 3);
  StatusOr<std::vector<uint8_t>> packed = packToBytes(recipe, layout, tensors);
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  std::vector<float> expected(8 * 32);
  std::vector<int64_t> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(readWeightRows(recipe, tensors, rows, expected.data()).ok());
  EXPECT_EQ(*unpackWeight(layout, *packed), expected);
}

TEST(BlockCodecs, MixedSourcesShareABlock) {
  // Rows 0..7 are moved, 8..15 quantised, in one block of 16 lanes.
  Stored stored = load(TensorType::Q4_0);
  stored.bytes.erase(stored.bytes.begin(), stored.bytes.begin() + 8 * 18);
  stored.values.erase(stored.values.begin(), stored.values.begin() + 8 * 32);
  MemoryTensors tensors;
  tensors.addBlocks("q", {8, 32}, TensorType::Q4_0, stored.bytes, stored.values);
  std::vector<float> floats = gaussian(8 * 32, 5);
  tensors.addFloats("f", {8, 32}, floats, TensorType::Q6_K);
  PackedLayout layout = matrixLayout(16, 32, WeightForm::I8, 16);
  StatusOr<std::vector<uint8_t>> packed = packToBytes(recipeOfTensors({16, 32}, {"q", "f"}), layout, tensors);
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  std::vector<float> back = *unpackWeight(layout, *packed);
  EXPECT_EQ(std::vector<float>(back.begin(), back.begin() + 256), stored.values);
  PackedLayout alone = matrixLayout(8, 32, WeightForm::I8, 16);
  EXPECT_EQ(std::vector<float>(back.begin() + 256, back.end()), *unpackWeight(alone, packFloats(floats, alone)));
}

TEST(BlockCodecs, AnAddendGoesThroughNumbers) {
  Stored stored = load(TensorType::Q8_0);
  stored.bytes.erase(stored.bytes.begin(), stored.bytes.begin() + 8 * 34);
  MemoryTensors tensors;
  tensors.addBlocks("t", {8, 32}, TensorType::Q8_0, stored.bytes, std::vector<float>(8 * 32, 126.0f));
  WeightRecipe recipe = recipeOfTensors({8, 32}, {"t"});
  recipe.add = 1.0;
  PackedLayout layout = matrixLayout(8, 32, WeightForm::I8, 16);
  EXPECT_EQ(*unpackWeight(layout, *packToBytes(recipe, layout, tensors)), std::vector<float>(8 * 32, 127.0f));
}

TEST(BlockCodecs, RowsOfBrokenBlocksAreRefused) {
  MemoryTensors tensors;
  tensors.addBlocks("t", {2, 48}, TensorType::Q8_0, std::vector<uint8_t>(102), std::vector<float>(96));
  StatusOr<std::vector<uint8_t>> packed =
      packToBytes(recipeOfTensors({2, 48}, {"t"}), matrixLayout(2, 48, WeightForm::I8, 16), tensors);
  ASSERT_FALSE(packed.ok());
  EXPECT_EQ(packed.status().message(), "weight 'w' has rows of 48, which are no whole Q8_0 blocks of 32");
}

namespace {
// In the group of 32 that element `index` is in, of rows of `length`.
float largestOfGroup(const std::vector<float> &values, size_t index, size_t length) {
  size_t row = index / length * length, first = row + index % length / 32 * 32;
  float largest = 0;
  for (size_t i = first; i < std::min(first + 32, row + length); ++i)
    largest = std::max(largest, std::fabs(values[i]));
  return largest;
}
} // namespace

// Every block type that GGUF files hold, in the form that `--weights stored` gives it. The file has numbers by ggml.
TEST(BlockCodecs, EveryGgmlType) {
  test::TemporaryFolder folder;
  std::filesystem::copy_file(std::string(LLMC_TEST_DATA) + "/../importer/files/gguf-types.safetensors",
                             folder.path() + "/model.safetensors");
  std::ofstream(folder.path() + "/config.json") << "{}";
  StatusOr<ModelFiles> files = ModelFiles::open(folder.path());
  ASSERT_TRUE(files.ok()) << files.status().message();
  size_t compared = 0;
  for (const ModelTensor &tensor : files->tensors()) {
    if (!tensor.name.ends_with(".raw"))
      continue;
    std::string name = tensor.name.substr(0, tensor.name.size() - 4);
    uint8_t index = 0;
    while (nameOf(static_cast<TensorType>(index)) != name)
      ++index;
    auto type = static_cast<TensorType>(index);
    const int64_t blockValues = infoOf(type).blockValues, blockBytes = infoOf(type).blockBytes;
    if (blockValues == 1)
      continue;
    // The first six blocks have scales that f16 does not hold.
    std::span<const uint8_t> raw = files->bytes(tensor)->subspan(static_cast<size_t>(6 * blockBytes));
    Stored stored{{raw.begin(), raw.end()}, {}, static_cast<int64_t>(raw.size()) / blockBytes, blockValues};
    stored.values.resize(static_cast<size_t>(stored.blocks * blockValues));
    ASSERT_TRUE(dequantize(type, stored.bytes, 0, stored.values).ok());
    StatusOr<FormChoice> choice = chooseForm(std::vector{type}, FormOption::Stored, WeightRole::Matrix);
    ASSERT_TRUE(choice.ok()) << name << ": " << choice.status().message();
    PackedLayout layout = matrixLayout(stored.blocks, blockValues, choice->form, 16);
    MemoryTensors tensors;
    tensors.addBlocks("t", {layout.n, layout.k}, type, stored.bytes, stored.values);
    StatusOr<std::vector<uint8_t>> packed = packToBytes(recipeOfTensors({layout.n, layout.k}, {"t"}), layout, tensors);
    ASSERT_TRUE(packed.ok()) << name << ": " << packed.status().message();
    std::vector<float> back = *unpackWeight(layout, *packed);
    for (size_t i = 0; i < back.size(); ++i) {
      float largest = largestOfGroup(stored.values, i, static_cast<size_t>(blockValues));
      // Codes and minimum of random blocks are at most some times the largest sum of both.
      float bound = choice->fate == WeightFate::Kept      ? 0.0f
                    : choice->fate == WeightFate::Rounded ? 0x1p-11f * 8 * largest
                                                          : largest / 253 + 127 * 0x1p-25f;
      ASSERT_LE(std::fabs(back[i] - stored.values[i]), bound) << name << " " << choice->reason << " at " << i;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 25u);
}

// Every quantised weight of published checkpoints, in the form that `--weights stored` gives it.
class PublishedFormats : public ::testing::TestWithParam<const char *> {};

TEST_P(PublishedFormats, StayWithinWhatTheReasonSays) {
  StatusOr<ModelFiles> files = ModelFiles::open(std::string(LLMC_TEST_DATA) + "/../../models/quantized/" + GetParam());
  ASSERT_TRUE(files.ok()) << files.status().message();
  ModelTensors tensors(*files);
  size_t compared = 0;
  for (const LogicalTensor &tensor : (*files->logical())->all()) {
    if (!tensor.quantized)
      continue;
    StatusOr<FormChoice> choice = chooseForm(std::vector{tensor.format}, FormOption::Stored, WeightRole::Matrix);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    const std::vector<uint64_t> &shape = tensor.quantized->shape;
    WeightRecipe recipe{"w", {shape.begin(), shape.end()}, {{.tensor = tensor.name}}, 0.0};
    for (size_t dimension : tensor.order) // back to rows of inputs
      recipe.sources[0].order.push_back(static_cast<int64_t>(dimension));
    PackedLayout layout = matrixLayout(recipe.shape[shape.size() - 2], recipe.shape.back(), choice->form, 64);
    layout.stacked = shape.size() == 3 ? recipe.shape[0] : 1;
    StatusOr<std::vector<uint8_t>> packed = packToBytes(recipe, layout, tensors);
    ASSERT_TRUE(packed.ok()) << packed.status().message();
    std::vector<float> back = *unpackWeight(layout, *packed), values(back.size());
    ASSERT_TRUE(readLogical(*files, tensor, 0, values).ok());
    std::vector<CodedGroup> groups(infoOf(tensor.type).blockBytes == sizeof(CodedGroup) ? values.size() / 32 : 0);
    if (!groups.empty())
      ASSERT_TRUE(readLogicalBlocks(*files, tensor, 0, values.size(),
                                    {reinterpret_cast<uint8_t *>(groups.data()), groups.size() * sizeof(CodedGroup)})
                      .ok());
    auto says = [&](const char *word) { return choice->reason.find(word) != std::string::npos; };
    for (size_t i = 0; i < values.size(); ++i) {
      float bound = 0.0f, value = std::fabs(values[i]);
      if (says("codes kept"))
        bound = 0x1p-11f *
                (std::fabs(groups[i / 32].minimum) +
                 std::fabs(static_cast<float>(groups[i / 32].codes[i % 32]) * groups[i / 32].scale[i % 32 / 16]));
      else if (says("2^-8 of a value"))
        bound = 0x1p-8f * value;
      else if (says("1/253 of the largest"))
        bound = largestOfGroup(values, i, static_cast<size_t>(layout.k)) / 253 + 127 * 0x1p-25f;
      ASSERT_LE(std::fabs(back[i] - values[i]), bound)
          << tensor.name << " " << choice->reason << " at " << i << ": " << back[i] << " of " << values[i];
    }
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Folders, PublishedFormats,
                         ::testing::Values("awq-int4", "fp8-block", "fp8-channel-ct", "fp8-channel-modelopt",
                                           "fp8-tensor-ct", "fp8-tensor-modelopt", "fp8-tensor-static", "gptq-int4-act",
                                           "gptq-int8", "int4-asym-ct", "int4-sym-ct", "int8-channel-ct",
                                           "modelopt-mixed", "mxfp4-ct", "mxfp4-gpt-oss", "nvfp4-ct", "nvfp4-modelopt",
                                           "nvfp4-modelopt-moe"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
