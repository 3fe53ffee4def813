// The formulas of LlmRecurrentOps.td for one row. States and sums are f64, each result is rounded to f32 once.
#pragma once
#include "lib/reference/Matrix.h"

namespace llmc::reference {

/// weight is [C][K], newest input last; state [C][K - 1], oldest first, takes in the row. `bias` may be empty.
void shortConvRow(std::span<const float> input, const Matrix &weight, std::span<const float> bias,
                  std::span<double> state, std::span<float> result);

/// A row at `position` of windows of `window` positions. state is [3 or 9][channels]: of each running sum the maximum
/// of the gates times log2(e), the sum of weights, which is 0 where there is none, and the weighted sum.
void windowPoolRow(std::span<const float> value, std::span<const float> gate, int64_t position, int64_t window,
                   std::span<double> state, std::span<float> result);

struct LinearAttentionShape {
  int64_t heads, keyHeads, keys, values;
};
/// state is [heads][keys][values]. `decay` has a number per head, per head and key, or none; `beta` one per head or
/// none.
void linearAttentionRow(std::span<const float> query, std::span<const float> key, std::span<const float> value,
                        std::span<const float> decay, std::span<const float> beta, const LinearAttentionShape &shape,
                        std::span<double> state, std::span<float> result);

} // namespace llmc::reference
