// What files hold, from a config alone: types, codes and scales.
#include "lib/importer/StoredForms.h"
#include "test/lib/importer/ImporterTesting.h"

using namespace llmc;
using namespace llmc::fixture;

namespace {

// Layers of one product of 64 x 64.
Json wideFamily() {
  Json family = tinyFamily();
  family["config"]["values"]["hidden"] = {{"value", 64}};
  family["config"]["values"]["quantization"] = {{"keys", {"quantization_config/quant_method"}}, {"default", ""}};
  return family;
}

ModelSpec packedAs(const Json &quantization) { return resolvedTiny(wideFamily(), {{"quantization_config", quantization}}); }

constexpr uint64_t plainTensors = 2 + 4 * 2; // embedding, head, a gain and a matrix in each layer
constexpr uint64_t plainBytes = 2 * (2 * 16 * 64 + 4 * 64);
constexpr uint64_t matrix = 64 * 64;

} // namespace

TEST(StoredForms, Plain) {
  StoredTotals totals = storedTotals(resolvedTiny(wideFamily()));
  EXPECT_EQ(totals.tensors, plainTensors);
  EXPECT_EQ(totals.bytes, plainBytes + 4 * 2 * matrix);
}

TEST(StoredForms, CodesAndScales) {
  // Two codes a byte, a byte of scale for 32; the head is skipped by an expression.
  StoredTotals totals = storedTotals(
      packedAs({{"quant_method", "compressed-tensors"}, {"format", "mxfp4-pack-quantized"}, {"ignore", {"re:.*head.*"}}}));
  EXPECT_EQ(totals.tensors, plainTensors + 4);
  EXPECT_EQ(totals.bytes, plainBytes + 4 * (matrix / 2 + matrix / 32));
  // A byte each, a float32 for 32 x 32; the head is skipped by its name.
  totals = storedTotals(packedAs(
      {{"quant_method", "fp8"}, {"weight_block_size", {32, 32}}, {"modules_to_not_convert", {"head"}}}));
  EXPECT_EQ(totals.bytes, plainBytes + 4 * (matrix + 4 * 4));
  // Half a byte each, a float16 and half a byte for 16, an int32 for every input.
  totals = storedTotals(packedAs({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 16}, {"ignore", {"head"}}}));
  EXPECT_EQ(totals.bytes, plainBytes + 4 * (matrix / 2 + matrix / 16 * 2 + matrix / 16 / 2 + 64 * 4));
}

TEST(StoredForms, WhatTheDescriptionSaysOfATypeCounts) {
  Json family = wideFamily();
  family["config"]["weights"]["mix"] = {{"tensor", "mix.weight"}, {"type", "F32"}};
  StoredTotals totals = storedTotals(resolvedTiny(
      family, {{"quantization_config", {{"quant_method", "fp8"}, {"modules_to_not_convert", {"head"}}}}}));
  EXPECT_EQ(totals.bytes, plainBytes + 4 * 4 * matrix);
}

TEST(StoredForms, AnUnknownPackingIsSaid) {
  StoredForms forms(packedAs({{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}}));
  EXPECT_EQ(forms.unknown(), "weights that the files pack as 'MIXED_PRECISION' count as BF16");
}

TEST(StoredForms, NoExpressionOfAFileStallsTheProgram) {
  const std::string nested = "re:((((a*)*)*)*)*b", huge = "re:" + std::string(100000, '('), broken = "re:[";
  StoredTotals totals = storedTotals(packedAs({{"quant_method", "compressed-tensors"},
                                               {"format", "mxfp4-pack-quantized"},
                                               {"ignore", {nested, huge, broken, "re:x{1000}{1000}"}}}));
  EXPECT_GT(totals.tensors, plainTensors);
}
