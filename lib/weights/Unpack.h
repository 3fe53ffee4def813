// From packed bytes back to f32: what gathering a row computes, and the whole weight for checks.
#pragma once
#include "lib/weights/PackedLayout.h"
#include <span>
#include <vector>

namespace llmc {

// Elements 0..K-1 of one row into `out`. `packed` is the whole weight, in a checked layout. A plain vector's row is one
// element.
Status unpackRow(const PackedLayout &layout, std::span<const uint8_t> packed, int64_t row, float *out);
// [N, K] (or [N] of a plain vector), of a stack [E, N, K].
StatusOr<std::vector<float>> unpackWeight(const PackedLayout &layout, std::span<const uint8_t> packed);

} // namespace llmc
