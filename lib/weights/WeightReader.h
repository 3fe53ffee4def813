// WeightReader: a weight as the model computes with it, row by row, out of the published tensors. Nothing is kept: a
// caller holds as many rows as it asks for.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/importer/ModelSpec.h"
#include "lib/weights/SourceView.h"
#include "lib/weights/TensorReader.h"

namespace llmc {

// A verified llm.weight without its packed form.
using WeightRecipe = WeightSpec;
WeightRecipe recipeOf(llm::WeightOp weight);
// Of another rank of the group than the module is for: its part of the same weight.
WeightRecipe recipeOf(llm::WeightOp weight, int64_t rank);

class WeightReader {
public:
  // Opens every tensor and checks that together they are the [N], [N, K] or [E, N, K] that the recipe names. `tensors`
  // must outlive the reader.
  static StatusOr<WeightReader> open(const WeightRecipe &recipe, const TensorReader &tensors);

  const std::string &name() const { return name_; }
  // Of all matrices of a stack, one behind the other; of what is taken of them.
  int64_t numRows() const { return taken_.stack.size * taken_.rows.size; }
  int64_t rowLength() const { return taken_.columns.size; }

  // The row of the whole weight that is row `row` of what is taken.
  int64_t wholeRow(int64_t row) const;

  // f32 rows in the order of the list, rowLength() apart; a negative row is all zero.
  Status readRows(std::span<const int64_t> rows, float *out) const;
  // How the tensor behind a row is stored.
  TensorType typeOf(int64_t row) const;
  // Whether the row's elements are those of the tensor, one after another, so that its stored bytes say them.
  bool isStoredRow(int64_t row) const;
  // The stored bytes of the rows of the list, `rowBytes` apart, which is what such a row takes; nothing for a negative
  // row. All are stored rows.
  Status readBlocks(std::span<const int64_t> rows, size_t rowBytes, uint8_t *out) const;

private:
  struct Source {
    std::vector<std::shared_ptr<const OpenTensor>> tensors; // one, or those of a stack
    SourceView view;                                        // of each of them
    TransposedView transposed;
    int64_t begin, end; // rows of the matrix
    bool isStored;      // rows are runs of the tensors
    std::optional<llm::WeightMap> map;
  };
  // Ranges of a dimension, one behind the other.
  struct Taken {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    int64_t size = 0;
    bool isAll = true;
    int64_t at(int64_t index) const; // the element that is number `index` of what is taken
  };
  static StatusOr<Taken> takenOf(const WeightRecipe &recipe, size_t dimension, int64_t size);
  // An element of a source, counted over all its tensors.
  struct Place {
    const Source *source;
    int64_t tensor, index;
    const OpenTensor &open() const { return *source->tensors[static_cast<size_t>(tensor)]; }
  };
  Place placeOf(int64_t row) const;
  // Columns [begin, begin + count) of one row of the whole weight.
  Status readColumns(int64_t row, int64_t begin, int64_t count, float *out) const;
  Status readTakenColumns(int64_t row, float *out) const;
  // How many of `rows` from the first on, which is none below 0, follow each other in one source.
  size_t runLength(std::span<const int64_t> rows) const;
  Status readRun(int64_t row, int64_t count, float *out) const;
  Status readTransposed(const Source &source, const OpenTensor &tensor, int64_t row, int64_t count, float *out) const;
  void finish(const Source &source, std::span<float> values) const;
  Status addSource(const WeightSource &source, const TensorReader &tensors, size_t rank);

  std::string name_;
  std::vector<Source> sources_;
  int64_t numStacked_ = 1, rowsPerMatrix_ = 0, rowLength_ = 0; // of the whole weight
  struct {
    Taken stack, rows, columns;
  } taken_;
  double add_ = 0.0;
};

// The listed rows of a recipe, for callers with one question.
Status readWeightRows(const WeightRecipe &recipe, const TensorReader &tensors, std::span<const int64_t> rows,
                      float *out);

} // namespace llmc
