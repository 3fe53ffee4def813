// Quantised checkpoints as published, against the weights that an independent implementation makes of them, bit for
// bit; and what is said where parts do not fit.
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "test/lib/importer/files/WeightFileBytes.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

const std::string modelsFolder = LLMC_TEST_DATA "/../../../models/quantized/";

struct Format {
  const char *folder;
  size_t tensors;              // quantised ones that the golden file has values of
  const char *tensor, *format; // of one of them
  size_t quantized;            // in the model
};

class LogicalTensorsGolden : public ::testing::TestWithParam<Format> {};

} // namespace

TEST_P(LogicalTensorsGolden, EqualBitForBit) {
  const Format &expected = GetParam();
  StatusOr<ModelFiles> files = ModelFiles::open(modelsFolder + expected.folder);
  ASSERT_TRUE(files.ok()) << files.status().message();
  StatusOr<LogicalTensors> logical = LogicalTensors::of(*files);
  ASSERT_TRUE(logical.ok()) << logical.status().message();
  // The values lie beside the model, in a file that is no shard of it.
  test::TemporaryFolder folder;
  std::filesystem::copy_file(modelsFolder + expected.folder + "/golden.safetensors",
                             folder.path() + "/model.safetensors");
  StatusOr<ModelFiles> golden = ModelFiles::open(folder.path());
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  size_t compared = 0;
  for (const ModelTensor &tensor : golden->tensors()) {
    if (!tensor.name.starts_with("dequant."))
      continue;
    const LogicalTensor *found = logical->find(tensor.name.substr(8));
    ASSERT_TRUE(found) << tensor.name;
    ASSERT_TRUE(found->quantized) << tensor.name;
    EXPECT_EQ(found->quantized->shape, tensor.shape) << tensor.name;
    std::vector<float> values(*numElements(tensor.shape)), wanted(values.size());
    Status read = readLogical(*files, *found, 0, values);
    ASSERT_TRUE(read.ok()) << read.message();
    ASSERT_TRUE(golden->readRows(tensor, 0, tensor.numRows(), wanted).ok());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(wanted[i]))
          << tensor.name << " at " << i << ": " << values[i] << " against " << wanted[i];
    // A part that begins and ends anywhere.
    std::vector<float> part(101);
    ASSERT_TRUE(readLogical(*files, *found, 37, part).ok());
    EXPECT_EQ(std::memcmp(part.data(), wanted.data() + 37, part.size() * sizeof(float)), 0);
    ++compared;
  }
  EXPECT_EQ(compared, expected.tensors);
  const LogicalTensor *one = logical->find(expected.tensor);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->format, expected.format);
  size_t quantized = 0;
  for (const LogicalTensor &tensor : logical->all()) {
    quantized += tensor.quantized != nullptr;
    EXPECT_EQ(tensor.name.find("scale"), std::string::npos) << tensor.name;
  }
  EXPECT_EQ(quantized, expected.quantized);
}

// Codes of packed forms say the same numbers, up to one rounding.
TEST_P(LogicalTensorsGolden, CodesSayTheSame) {
  StatusOr<ModelFiles> files = ModelFiles::open(modelsFolder + GetParam().folder);
  ASSERT_TRUE(files.ok());
  StatusOr<LogicalTensors> logical = LogicalTensors::of(*files);
  ASSERT_TRUE(logical.ok());
  for (const LogicalTensor &tensor : logical->all()) {
    if (!tensor.quantized || infoOf(tensor.type).blockBytes != sizeof(CodedGroup))
      continue;
    std::vector<float> values(*numElements(tensor.shape));
    std::vector<CodedGroup> groups(values.size() / 32);
    ASSERT_TRUE(readLogical(*files, tensor, 0, values).ok());
    Status read = readLogicalBlocks(*files, tensor, 0, values.size(),
                                    {reinterpret_cast<uint8_t *>(groups.data()), groups.size() * sizeof(CodedGroup)});
    ASSERT_TRUE(read.ok()) << read.message();
    for (size_t i = 0; i < values.size(); ++i) {
      const CodedGroup &group = groups[i / 32];
      float value = static_cast<float>(group.codes[i % 32]) * group.scale[i % 32 / 16] + group.minimum;
      ASSERT_NEAR(value, values[i], 1e-6f * std::fabs(values[i]) + 1e-7f * std::fabs(group.minimum))
          << tensor.name << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, LogicalTensorsGolden,
    ::testing::Values(
        Format{"fp8-block", 2, "model.layers.0.mlp.down_proj.weight", "FP8 block 128x128 (F32 scales)", 72},
        Format{"fp8-tensor-static", 2, "model.layers.0.mlp.down_proj.weight", "FP8 tensor (BF16 scales)", 14},
        Format{"fp8-tensor-ct", 2, "model.layers.0.mlp.down_proj.weight", "FP8 tensor (BF16 scales)", 14},
        Format{"fp8-channel-ct", 2, "model.layers.0.mlp.down_proj.weight", "FP8 channel (BF16 scales)", 14},
        Format{"fp8-tensor-modelopt", 2, "model.layers.0.mlp.down_proj.weight", "FP8 tensor (F32 scales)", 14},
        Format{"fp8-channel-modelopt", 2, "model.layers.0.mlp.down_proj.weight", "FP8 channel (F32 scales)", 14},
        Format{"int8-channel-ct", 2, "model.layers.0.mlp.down_proj.weight", "INT8 channel (BF16 scales)", 14},
        Format{"int4-sym-ct", 2, "model.layers.0.mlp.down_proj.weight", "INT4 group 32 (BF16 scales)", 14},
        Format{"int4-asym-ct", 2, "model.layers.0.mlp.down_proj.weight", "INT4 asymmetric group 32 (BF16 scales)", 14},
        Format{"mxfp4-gpt-oss", 1, "model.layers.0.mlp.experts.down_proj", "MXFP4", 4},
        Format{"mxfp4-ct", 2, "model.layers.0.mlp.experts.0.down_proj.weight", "MXFP4", 24},
        Format{"nvfp4-ct", 2, "model.layers.0.mlp.down_proj.weight", "NVFP4 (F32 factor)", 14},
        Format{"nvfp4-modelopt", 2, "model.layers.0.mlp.down_proj.weight", "NVFP4 (F32 factor)", 10},
        Format{"nvfp4-modelopt-moe", 2, "model.layers.0.mlp.experts.0.down_proj.weight", "NVFP4 (F32 factor)", 24},
        Format{"modelopt-mixed", 3, "model.layers.1.self_attn.q_proj.weight", "MXFP8", 15},
        Format{"awq-int4", 2, "model.layers.0.mlp.down_proj.weight", "AWQ INT4 asymmetric group 64 (F16 scales)", 14},
        Format{"gptq-int4-act", 2, "model.layers.0.mlp.down_proj.weight",
               "GPTQ INT4 asymmetric group 32 act-order (F16 scales)", 14},
        Format{"gptq-int8", 2, "model.layers.0.mlp.down_proj.weight", "GPTQ INT8 group 128 (F16 scales)", 14}),
    [](const auto &info) {
      std::string name = info.param.folder;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

namespace {

// "I32" [4, 32] under a name, of zeros.
struct Stored {
  const char *name, *type;
  std::vector<uint64_t> shape;
};

std::string errorOf(const std::vector<Stored> &tensors) {
  std::string header;
  uint64_t end = 0;
  for (const Stored &tensor : tensors) {
    std::string shape;
    uint64_t begin = end;
    for (uint64_t size : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    end += *tensorBytes(*safetensorsType(tensor.type), tensor.shape);
    header += (header.empty() ? "{\"" : ",\"") + std::string(tensor.name) + R"(":{"dtype":")" + tensor.type +
              R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) +
              "]}";
  }
  test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/config.json") << R"({"quantization_config": {"bits": 4, "group_size": 32}})";
  std::ofstream(folder.path() + "/model.safetensors", std::ios::binary) << test::safetensorsBytes(header + "}", end);
  StatusOr<ModelFiles> files = ModelFiles::open(folder.path());
  if (!files.ok())
    return files.status().message();
  StatusOr<LogicalTensors> logical = LogicalTensors::of(*files);
  if (!logical.ok())
    return logical.status().message().substr(folder.path().size() + 2);
  // What is listed can be read to its end.
  for (const LogicalTensor &tensor : logical->all())
    if (tensor.quantized) {
      std::vector<float> values(*numElements(tensor.shape));
      if (Status read = readLogical(*files, tensor, 0, values); !read.ok())
        return read.message();
    }
  return "";
}

} // namespace

TEST(LogicalTensorsErrors, PartsOfOtherTypes) {
  const Stored scales = {"w.scales", "F16", {2, 64}}, zeros = {"w.qzeros", "I32", {2, 8}};
  EXPECT_EQ(errorOf({{"w.qweight", "I32", {8, 64}}, scales, zeros}), "");
  EXPECT_EQ(errorOf({{"w.qweight", "U8", {8, 64}}, scales, zeros}),
            "tensor 'w.qweight': the codes 'w.qweight' are of type U8, expected I32");
  EXPECT_EQ(errorOf({{"w.qweight", "I32", {8, 64}}, scales, zeros, {"w.g_idx", "I8", {64}}}),
            "tensor 'w.qweight': the groups of inputs 'w.g_idx' are of type I8, expected I32");
  EXPECT_EQ(errorOf({{"w.qweight", "I32", {8, 64}}, scales, zeros, {"w.g_idx", "I32", {63}}}),
            "tensor 'w.qweight': the groups of inputs 'w.g_idx' are [63], expected [64]");
  EXPECT_EQ(errorOf({{"w.weight", "I8", {4, 32}}, {"w.weight_scale", "I32", {4}}}),
            "tensor 'w.weight': has scales of I32, expected F32, F16, BF16, F8_E4M3 or powers of two in bytes");
}

TEST(LogicalTensorsErrors, NoRows) {
  const std::string end = "expected positive sizes";
  EXPECT_EQ(errorOf({{"w.weight", "I8", {0, 32}}, {"w.weight_scale", "F32", {2}}}),
            "tensor 'w.weight': has codes of shape [0, 32], " + end);
  EXPECT_EQ(errorOf({{"w.weight", "F8_E4M3", {0, 32}}, {"w.weight_scale", "F32", {2}}}),
            "tensor 'w.weight': has codes of shape [0, 32], " + end);
  EXPECT_EQ(errorOf({{"w.weight", "I8", {4, 0}}, {"w.weight_scale", "F32", {4}}}),
            "tensor 'w.weight': has codes of shape [4, 0], " + end);
  EXPECT_EQ(
      errorOf({{"w.weight_packed", "I32", {0, 4}}, {"w.weight_scale", "F32", {2}}, {"w.weight_shape", "I64", {2}}}),
      "tensor 'w.weight_packed': has codes of shape [0, 4], " + end);
}

TEST(LogicalTensorsErrors, OneScaleOfSeveralMatrices) {
  EXPECT_EQ(errorOf({{"w.weight", "F8_E4M3", {3, 4, 32}}, {"w.weight_scale", "F32", {1}}}), "");
  EXPECT_EQ(errorOf({{"w.weight", "I8", {3, 4, 32}}, {"w.weight_scale", "F32", {}}}), "");
}

TEST(LogicalTensorsErrors, FactorsOfScales) {
  const Stored codes = {"w.weight", "U8", {4, 16}}, scales = {"w.weight_scale", "F8_E4M3", {4, 2}};
  EXPECT_EQ(errorOf({codes, scales, {"w.weight_scale_2", "F32", {}}}), "");
  for (uint64_t count : {0u, 3u})
    EXPECT_EQ(errorOf({codes, scales, {"w.weight_scale_2", "F32", {count}}}),
              "tensor 'w.weight': the factors 'w.weight_scale_2' are [" + std::to_string(count) + "], expected [1]");
  EXPECT_EQ(errorOf({codes, scales}), "tensor 'w.weight': is NVFP4, which needs an F32 factor of all scales, "
                                      "'w.weight_scale_2' or 'w.weight_global_scale'");
}

TEST(LogicalTensorsErrors, PartsThatAreMissing) {
  EXPECT_EQ(errorOf({{"w.qweight", "I32", {8, 64}}}),
            "tensor 'w.qweight': is [8, 64], expected a matrix with 'w.scales' of [groups, outputs]");
  EXPECT_EQ(errorOf({{"w.qweight", "I32", {8, 64}}, {"w.scales", "F16", {2, 64}}}),
            "tensor 'w.qweight': has no zero points 'w.qzeros'");
  EXPECT_EQ(errorOf({{"w.weight_scale", "F32", {4}}}),
            "tensor 'w.weight_scale' belongs to quantised codes, which are not stored");
}
