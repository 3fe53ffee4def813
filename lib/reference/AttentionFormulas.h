// The formulas of LlmAttentionOps.td. As in Formulas.h: sums in f64, each result rounded once.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/reference/Matrix.h"
#include <optional>

namespace llmc::reference {

/// Cosines, then sines, of float(position * frequency), times magnitude; positions rounded down to a multiple of step.
Matrix ropeTable(std::span<const int32_t> positions, std::span<const float> frequencies, float magnitude,
                 int64_t step = 1);

struct RopeShape {
  int64_t headDim;
  llm::Pairing pairing = llm::Pairing::Halves;
  int64_t first = 0;
  bool inverse = false;
};
/// Turns table.columns channels of every head, from `first` on.
Matrix rope(const Matrix &x, const Matrix &table, const RopeShape &shape);

/// What one layer keeps of a sequence. Keys are [position][kvHeads * headDim], values [position][kvHeads * valueDim];
/// a latent cache has no values: the value is the beginning of the key.
struct KeysAndValues {
  std::span<const float> keys, values;
  int64_t kvHeads, headDim, valueDim;
  bool latent = false;

  const float *key(int64_t position, int64_t head) const { return keys.data() + (position * kvHeads + head) * headDim; }
  const float *value(int64_t position, int64_t head) const {
    return latent ? key(position, head) : values.data() + (position * kvHeads + head) * valueDim;
  }
};

struct AttentionShape {
  int64_t heads;
  float scale;
  float softcap = 0;                                   // 0: none
  int64_t window = 0, chunk = 0;                       // 0: all positions
  std::span<const float> alibi = {};                   // slopes per head, or none
  std::span<const float> sinks = {};                   // scores per head, or none
  std::optional<std::span<const float>> selected = {}; // the positions to look at; all others are left out
};
/// One row at `position` over its sequence, which holds that position; -1 sees nothing. Logsums, one for each head,
/// where they are wanted.
void attendRow(std::span<const float> query, const KeysAndValues &cache, int64_t position, const AttentionShape &shape,
               std::span<float> result, std::span<float> logsums = {});

/// The positions up to `position` of largest weighted score, ascending, then -1. The cache has one head.
void selectPositions(std::span<const float> query, std::span<const float> weights, const KeysAndValues &cache,
                     int64_t position, std::span<float> result);

} // namespace llmc::reference
