// Where the bytes of a packed weight lie: tiles, places, panels and blocks of docs/weight-layouts.md as arithmetic. No
// data.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/Status.h"
#include <cstdint>

namespace llmc {

using llm::WeightForm;

inline constexpr int64_t lanesPerBlock = 16;  // output channels of a block of a quantised form
inline constexpr int64_t valuesPerBlock = 64; // of K
inline constexpr int64_t valuesPerGroup = 32; // of K, with one scale
inline constexpr int64_t plainPadding = 64;   // elements

// Where a row of the weight went, the tile counted through all matrices.
struct TilePlace {
  int64_t tile, place;
};

struct PackedLayout {
  int64_t n = 0, k = 0; // rows and row length; a plain vector has n elements and k = 1
  WeightForm form = WeightForm::Any;
  int64_t tile = 0, panel = 0, interleave = 0; // all 0 for a plain vector, which is one tile
  int64_t stacked = 1;                         // matrices of n rows, packed one behind the other

  bool isQuantized() const;                                                   // in blocks of codes and scales
  bool takesCodes() const { return isQuantized() && form != WeightForm::F8; } // products quantise their input too
  int64_t paddedTile() const; // places of a tile, with those past `tile`
  int64_t numTiles() const;   // of one matrix
  int64_t numKBlocks() const { return (k + valuesPerBlock - 1) / valuesPerBlock; }
  int64_t numGroups() const { return numKBlocks() * (valuesPerBlock / valuesPerGroup); } // past K, too
  // Of the f32 and bf16 forms: a step along K holds 4 bytes of every place. Pairs of bf16 fill whole groups of K.
  int64_t numSteps() const {
    return form == WeightForm::BF16 ? (k + valuesPerGroup - 1) / valuesPerGroup * valuesPerGroup / 2 : k;
  }
  int64_t panelBytes() const { return numSteps() * panel * 4; }
  // Of a quantised form: a block is the codes of two groups, their scales, and their minima where the form has them.
  int64_t blockBytes() const;
  int64_t groupBytes() const {
    return lanesPerBlock * valuesPerGroup / (form == WeightForm::I8 || form == WeightForm::F8 ? 1 : 2);
  } // codes
  int64_t scalesAt() const { return 2 * groupBytes(); }
  // Of the second halves' scales, where a group has two.
  int64_t minimaAt() const { return scalesAt() + 2 * lanesPerBlock * 2; }
  // Of a group, with a scale each: one, or two halves.
  int64_t numParts() const { return form == WeightForm::F4 ? 2 : 1; }
  // What a stored code holds beyond its value.
  int64_t zeroPoint() const { return form == WeightForm::I8 ? 128 : form == WeightForm::I4 ? 8 : 0; }
  CheckedSize tileBytes() const;
  CheckedSize matrixBytes() const;
  CheckedSize bytes() const; // of all matrices
  // The row at a place of a tile, or -1 where there is none (its elements are zero). Tiles and rows are counted through
  // all matrices.
  int64_t rowAt(int64_t tileIndex, int64_t place) const;
  TilePlace placeOf(int64_t row) const;
};

// Says what docs/weight-layouts.md forbids; the functions of PackedLayout trust a layout that passed.
Status checkLayout(const PackedLayout &layout);
// The checked layout of a weight whose form is chosen: a vector or a tiled matrix.
StatusOr<PackedLayout> layoutOf(llm::WeightType type);

} // namespace llmc
