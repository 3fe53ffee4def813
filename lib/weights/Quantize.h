// Quantisation of f32 to the codes and scales of the forms i8 and i4, 16 output channels at a time: loops over the
// lanes vectorise without reordering any sum, so results do not depend on the machine.
#pragma once
#include "lib/weights/PackedLayout.h"

namespace llmc {

// One group of 32 along K of 16 channels.
struct LaneGroup {
  alignas(64) float w[valuesPerGroup][lanesPerBlock];
};

// All write group `group` of a block for all lanes, and return false when a value or a scale is not finite in f16:
// then the block is not to be used. A group of zeros gets scale 0.

// scale = max|w| / 127 as f16; codes by the rounded scale. |error| <= 0.5001 * scale + 127 * 2^-25: half a step, and
// where the scale is a subnormal f16 (max|w| < 0.0078) what its rounding takes from the largest code.
bool quantizeI8(const LaneGroup &values, uint8_t *block, int64_t group);

// Codes -8..7. Of 13 scales around the one that maps the largest |w| to -8, each refined by least squares, the one with
// the smallest sum of w^2 * error^2 (large weights move outputs most). On Gaussian weights that error is 13 % below the
// one of the plain scale, the unweighted 2 %.
bool quantizeI4(const LaneGroup &values, uint8_t *block, int64_t group);

// Codes 0..15, value = code * scale + minimum. Of the scales around the one that maps the smallest w to 0 and the
// largest to 15, refined with their minima by least squares, the one with the smallest sum of error^2 as stored. A
// group of 16 evenly spaced levels keeps them, if f16 holds scale and minimum.
bool quantizeI4M(const LaneGroup &values, uint8_t *block, int64_t group);

// Codes of 4-bit floats (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) in halves of 16. Of the scales that map the
// largest magnitude to one of these values, the one with the smallest sum of error^2: a half that holds such values
// times an f16 scale keeps them.
bool quantizeF4(const LaneGroup &values, uint8_t *block, int64_t group);

// Codes of 8-bit floats (e4m3). Of the scales that map the largest magnitude to one of 448, 416, ..., 256 and 240, the
// one with the smallest sum of error^2: a group that holds such floats times an f32 scale keeps them but for the
// rounding of the scale (2^-23). |error| <= 2^-4 of a value otherwise, or half a step of 2^-9 * scale.
bool quantizeF8(const LaneGroup &values, uint8_t *block, int64_t group);

} // namespace llmc
