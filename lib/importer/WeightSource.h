// WeightSource: a published tensor, or a stack of equal ones, as it enters a weight. A plain description; what it means
// in numbers is lib/weights/SourceView.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

inline constexpr std::string_view constantPrefix = "constant ";

// The elements of one tensor are seen as `dims`, a range of each dimension is taken, and the dimensions are put in
// `order`; with `stack`, the results of all tensors follow each other along a new first dimension. The result is
// reshaped to the weight's shape. Several sources of a weight [E, N, K] are joined along N expert by expert, those of
// other weights along the first dimension.
struct WeightSource {
  std::string tensor = {};                            // published name; with `stack` it contains "{expert}"
  int64_t stack = 0;                                  // tensors with "{expert}" = 0 .. stack - 1; 0: one tensor
  std::vector<int64_t> dims = {};                     // empty: as stored
  std::vector<std::pair<int64_t, int64_t>> take = {}; // [begin, end) of every dimension; empty: all
  std::vector<int64_t> order = {}; // dimension i of the result is order[i] of what was taken; empty: as is
  std::string map = {};            // "neg_exp": -exp(x) of every element; "unit_rows": rows of length 1; empty: none
  // Rows [begin, end) of dimension 0 only, instead of `take`.
  std::optional<std::pair<int64_t, int64_t>> rows = {};
  // Rotary heads of this many rows whose pairs are stored side by side: within each head, rows 2i and 2i + 1 of the
  // source become rows i and i + unpermuteHeadRows / 2 of the weight. 0: rows stay as published.
  int64_t unpermuteHeadRows = 0;
  std::string type = {}; // always published in this one ("F32"), whatever that of the others; for reports

  int64_t numTensors() const { return stack > 0 ? stack : 1; }
  // Numbers that the description states and no file holds: "constant [1,0] 8" is that list eight times.
  bool isConstant() const { return tensor.rfind(constantPrefix, 0) == 0; }
  // The published name of one of them.
  std::string tensorAt(int64_t expert) const;
};

inline constexpr const char *expertPlaceholder = "{expert}";

inline std::string WeightSource::tensorAt(int64_t expert) const {
  std::string name = tensor;
  if (size_t at = name.find(expertPlaceholder); stack > 0 && at != std::string::npos)
    name.replace(at, std::string(expertPlaceholder).size(), std::to_string(expert));
  return name;
}

} // namespace llmc
