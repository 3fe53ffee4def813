// WeightReader: a weight as the model computes with it, row by row, out of the published tensors. Nothing is kept: a
// caller holds as many rows as it asks for.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/importer/ModelSpec.h"
#include "lib/weights/TensorReader.h"

namespace llmc {

// A verified llm.weight without its packed form.
using WeightRecipe = WeightSpec;
WeightRecipe recipeOf(llm::WeightOp weight);

class WeightReader {
public:
  // Looks every source up and checks that together they are the [N, K] or [N] that the recipe names. `tensors` must
  // outlive the reader.
  static StatusOr<WeightReader> open(const WeightRecipe &recipe, const TensorReader &tensors);

  const std::string &name() const { return name_; }
  int64_t numRows() const { return numRows_; }
  int64_t rowLength() const { return rowLength_; }
  double add() const { return add_; }

  // f32 rows in the order of the list, rowLength() apart; a negative row is all zero.
  Status readRows(std::span<const int64_t> rows, float *out) const;
  // How the tensor behind a row is stored.
  TensorType typeOf(int64_t row) const { return sources_[sourceOf(row)].type; }
  // The stored bytes of the rows of the list, `rowBytes` apart, which is what such a row takes; nothing for a negative
  // row.
  Status readBlocks(std::span<const int64_t> rows, size_t rowBytes, uint8_t *out) const;

private:
  struct Source {
    std::string tensor;
    TensorType type;
    int64_t firstRow;   // in the tensor
    int64_t begin, end; // in the weight
    int64_t unpermute;  // rows per head, or 0
  };
  size_t sourceOf(int64_t row) const;
  int64_t tensorRow(const Source &source, int64_t row) const;
  // How many of `rows` from the first on, which is none below 0, follow each other in one tensor.
  size_t runLength(std::span<const int64_t> rows) const;
  Status addSource(const WeightSource &source, const TensorReader &tensors);

  const TensorReader *tensors_ = nullptr;
  std::string name_;
  std::vector<Source> sources_;
  int64_t numRows_ = 0, rowLength_ = 0;
  double add_ = 0.0;
};

// The listed rows of a recipe, for callers with one question.
Status readWeightRows(const WeightRecipe &recipe, const TensorReader &tensors, std::span<const int64_t> rows,
                      float *out);

} // namespace llmc
