// Stored 4- and 8-bit blocks that a quantised form holds as they are: their codes and scales move, nothing is
// requantised.
#pragma once
#include "lib/importer/files/TensorType.h"
#include "lib/weights/PackedLayout.h"

namespace llmc {

// Where one lane of one group of 32 lies in a block of a form: code words of 4 bytes `laneStride` apart; of f8 bytes
// lanesPerBlock apart.
struct GroupTarget {
  uint8_t *codes;
  uint8_t *scale;   // f16, of f8 f32
  uint8_t *minimum; // f16, form i4m; the scale of the second half, form f4
};
inline constexpr int64_t laneStride = lanesPerBlock * 4;
GroupTarget groupTarget(uint8_t *block, WeightForm form, int64_t group, int64_t lane);

struct BlockCodec {
  TensorType type;
  WeightForm form;
  bool exact; // else: scales and minima are rounded to f16 (relative 2^-11), codes are the stored ones
  // Moves group `group` of a stored row, 32 values. False when a number does not fit: a scale or minimum f16, or it is
  // not finite.
  bool (*moveGroup)(const uint8_t *row, int64_t group, GroupTarget target);
  // In its place for types without blocks: of a group that may have fewer values. Those past the end stay as they are.
  bool (*movePart)(const uint8_t *row, int64_t group, int64_t values, GroupTarget target) = nullptr;
};

// The codec for this pair, or null: then the numbers go through f32 and are quantised.
const BlockCodec *blockCodec(TensorType type, WeightForm form);

} // namespace llmc
