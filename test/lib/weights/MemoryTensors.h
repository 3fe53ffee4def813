// Tensors in memory for tests: numbers, or stored blocks whose numbers the test gives beside them.
#pragma once
#include "dialects/llm/LlmShapes.h"
#include "lib/weights/Pack.h"
#include "lib/weights/Unpack.h"
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <random>

namespace llmc::test {

class MemoryTensors : public TensorReader {
public:
  void addFloats(const std::string &name, std::vector<int64_t> shape, std::vector<float> values,
                 TensorType type = TensorType::F32) {
    addBlocks(name, std::move(shape), type, {}, std::move(values));
  }
  void addBlocks(const std::string &name, std::vector<int64_t> shape, TensorType type, std::vector<uint8_t> bytes,
                 std::vector<float> values) {
    tensors_[name] =
        std::make_shared<const Tensor>(TensorInfo{std::move(shape), type}, std::move(values), std::move(bytes));
  }

  StatusOr<std::shared_ptr<const OpenTensor>> open(const std::string &name) const override {
    auto found = tensors_.find(name);
    if (found == tensors_.end())
      return Status::error("no tensor '" + name + "'");
    return std::shared_ptr<const OpenTensor>(found->second);
  }

private:
  class Tensor : public OpenTensor {
  public:
    Tensor(TensorInfo info, std::vector<float> values, std::vector<uint8_t> bytes)
        : OpenTensor(std::move(info)), values_(std::move(values)), bytes_(std::move(bytes)) {}
    Status readValues(int64_t first, int64_t count, float *out) const override {
      EXPECT_LE(first + count, static_cast<int64_t>(values_.size()));
      std::copy_n(values_.begin() + first, count, out);
      return {};
    }
    Status readBlocks(int64_t first, int64_t count, std::span<uint8_t> out) const override {
      const TensorTypeInfo &type = infoOf(info().type);
      if (static_cast<int64_t>(out.size()) != count / type.blockValues * type.blockBytes)
        return Status::error("asked for " + std::to_string(out.size()) + " bytes of " + std::to_string(count) +
                             " values");
      std::copy_n(bytes_.begin() + first / type.blockValues * type.blockBytes, out.size(), out.begin());
      return {};
    }

  private:
    std::vector<float> values_;
    std::vector<uint8_t> bytes_;
  };
  std::map<std::string, std::shared_ptr<const Tensor>> tensors_;
};

// Values that differ everywhere, of the size of weights.
inline std::vector<float> gaussian(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = normal(generator);
  return values;
}

inline PackedLayout matrixLayout(int64_t n, int64_t k, WeightForm form, int64_t rowsPerTile, int64_t interleave = 0) {
  return {n, k, form, rowsPerTile, llm::panelFor(rowsPerTile, form), interleave};
}

// A recipe of whole tensors.
inline WeightRecipe recipeOfTensors(std::vector<int64_t> shape, const std::vector<std::string> &tensors) {
  WeightRecipe recipe;
  recipe.name = "w";
  recipe.shape = std::move(shape);
  for (const std::string &tensor : tensors)
    recipe.sources.push_back({.tensor = tensor});
  return recipe;
}

inline StatusOr<std::vector<uint8_t>> packToBytes(const WeightRecipe &recipe, const PackedLayout &layout,
                                                  const TensorReader &tensors, int threads = 1) {
  std::vector<uint8_t> bytes;
  ByteSink sink = [&](std::span<const uint8_t> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return Status();
  };
  LLMC_RETURN_IF_ERROR(packWeight(recipe, layout, tensors, sink, threads));
  return bytes;
}

// One F32 tensor "t" packed; fails the test when packing does.
inline std::vector<uint8_t> packFloats(const std::vector<float> &values, const PackedLayout &layout) {
  MemoryTensors tensors;
  bool vector = layout.form == WeightForm::Plain;
  std::vector<int64_t> shape = {layout.n};
  if (!vector)
    shape.push_back(layout.k);
  tensors.addFloats("t", shape, values);
  StatusOr<std::vector<uint8_t>> bytes = packToBytes(recipeOfTensors(shape, {"t"}), layout, tensors);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : std::vector<uint8_t>();
}

inline std::vector<uint8_t> readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace llmc::test
