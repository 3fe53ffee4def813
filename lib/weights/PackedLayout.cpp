// Sizes and row order of packed weights.
#include "lib/weights/PackedLayout.h"
#include <string>

namespace llmc {
namespace {

// No dimension of a weight comes near; below it the plain arithmetic on dimensions cannot wrap.
constexpr int64_t maxDimension = int64_t(1) << 40;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }
uint64_t u(int64_t value) { return static_cast<uint64_t>(value); }

std::string numbers(const PackedLayout &l) {
  return "layout of [" + std::to_string(l.n) + ", " + std::to_string(l.k) + "] as " +
         llm::stringifyWeightForm(l.form).str() + ", tile " + std::to_string(l.tile) + ", panel " +
         std::to_string(l.panel) + ", interleave " + std::to_string(l.interleave) + ": ";
}

Status checkTiles(const PackedLayout &l) {
  if (l.tile <= 0 || l.panel <= 0 || l.tile > maxDimension)
    return Status::error(numbers(l) + "a matrix needs a tile and a panel");
  if (l.panel % 16 != 0 || l.paddedTile() % l.panel != 0)
    return Status::error(numbers(l) + "the panel must be a multiple of 16 that divides the padded tile of " +
                         std::to_string(l.paddedTile()));
  if (l.isQuantized() && l.panel != lanesPerBlock)
    return Status::error(numbers(l) + "quantised forms have panels of 16");
  if (l.interleave < 0 || (l.interleave > 0 && l.tile != 2 * l.interleave))
    return Status::error(numbers(l) + "an interleaved tile is twice its block");
  if (l.interleave > 0 && l.n % 2 != 0)
    return Status::error(numbers(l) + "rows that interleave come in two equal halves");
  return {};
}

} // namespace

bool PackedLayout::isQuantized() const { return form >= WeightForm::I8; }

int64_t PackedLayout::paddedTile() const {
  return form == WeightForm::Plain ? roundUp(n, plainPadding) : roundUp(tile, 16);
}

int64_t PackedLayout::numTiles() const {
  if (form == WeightForm::Plain)
    return 1;
  return interleave > 0 ? ceilDiv(n / 2, interleave) : ceilDiv(n, tile);
}

int64_t PackedLayout::blockBytes() const {
  int64_t codes = lanesPerBlock * valuesPerBlock;
  int64_t scales = 2 * lanesPerBlock * 2; // of two groups, f16
  if (form == WeightForm::I8)
    return codes + scales;
  if (form == WeightForm::F8) // f32
    return codes + 2 * scales;
  return form == WeightForm::I4 ? codes / 2 + scales : codes / 2 + 2 * scales;
}

CheckedSize PackedLayout::tileBytes() const {
  CheckedSize places = u(paddedTile());
  if (isQuantized())
    return CheckedSize(u(numKBlocks())) * u(paddedTile() / lanesPerBlock) * u(blockBytes());
  return places * u(form == WeightForm::Plain ? 1 : numSteps()) * 4;
}

CheckedSize PackedLayout::matrixBytes() const { return tileBytes() * u(numTiles()); }

CheckedSize PackedLayout::bytes() const { return matrixBytes() * u(stacked); }

int64_t PackedLayout::rowAt(int64_t tileIndex, int64_t place) const {
  if (form == WeightForm::Plain)
    return place < n ? place : -1;
  if (place >= tile)
    return -1;
  int64_t first = tileIndex / numTiles() * n, inMatrix = tileIndex % numTiles();
  if (interleave == 0) {
    int64_t row = inMatrix * tile + place;
    return row < n ? first + row : -1;
  }
  int64_t half = n / 2;
  int64_t row = inMatrix * interleave + place % interleave; // inside its half
  if (row >= half)
    return -1;
  return first + (place < interleave ? row : half + row);
}

TilePlace PackedLayout::placeOf(int64_t row) const {
  if (form == WeightForm::Plain)
    return {0, row};
  int64_t first = row / n * numTiles(), inMatrix = row % n;
  if (interleave == 0)
    return {first + inMatrix / tile, inMatrix % tile};
  int64_t half = n / 2;
  int64_t inHalf = inMatrix < half ? inMatrix : inMatrix - half;
  return {first + inHalf / interleave, inHalf % interleave + (inMatrix < half ? 0 : interleave)};
}

Status checkLayout(const PackedLayout &l) {
  if (l.n <= 0 || l.k <= 0 || l.n > maxDimension || l.k > maxDimension || l.stacked <= 0 || l.stacked > maxDimension)
    return Status::error(numbers(l) + "dimensions must be positive and at most " + std::to_string(maxDimension));
  if (l.form == WeightForm::Any)
    return Status::error(numbers(l) + "no form was chosen yet");
  if (l.form != WeightForm::Plain) {
    LLMC_RETURN_IF_ERROR(checkTiles(l));
  } else if (l.k != 1 || l.stacked != 1 || l.tile != 0 || l.panel != 0 || l.interleave != 0) {
    return Status::error(numbers(l) + "a plain vector has rows of one element and no tiles");
  }
  if (!l.bytes().fits(INT64_MAX))
    return Status::error(numbers(l) + "the size overflows 64 bits");
  return {};
}

StatusOr<PackedLayout> layoutOf(llm::WeightType type) {
  PackedLayout layout;
  layout.form = type.getForm();
  layout.n = type.getNumRows();
  layout.k = type.getShape().size() > 1 ? type.getShape().back() : 1;
  layout.stacked = type.getNumStacked();
  if (layout.form == WeightForm::Plain && type.getShape().size() > 1) {
    layout.n *= layout.k; // a list of vectors lies as one
    layout.k = 1;
  }
  layout.tile = type.getTile();
  layout.panel = type.getPanel();
  layout.interleave = type.getInterleave();
  LLMC_RETURN_IF_ERROR(checkLayout(layout));
  return layout;
}

} // namespace llmc
