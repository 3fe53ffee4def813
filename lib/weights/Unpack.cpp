// Reading back packed forms, the plainest way.
#include "lib/weights/Unpack.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/weights/BlockCodecs.h"
#include <algorithm>
#include <cstring>

namespace llmc {
namespace {

uint16_t halfAt(const uint8_t *bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, 2);
  return half;
}

void unpackF32(const PackedLayout &l, const uint8_t *tile, int64_t place, float *out) {
  const uint8_t *panel = tile + place / l.panel * l.panelBytes();
  for (int64_t k = 0; k < l.k; ++k)
    std::memcpy(out + k, panel + (k * l.panel + place % l.panel) * 4, 4);
}

void unpackBf16(const PackedLayout &l, const uint8_t *tile, int64_t place, float *out) {
  const uint8_t *panel = tile + place / l.panel * l.panelBytes();
  for (int64_t k = 0; k < l.k; ++k)
    out[k] = fromBf16(halfAt(panel + ((k / 2 * l.panel + place % l.panel) * 2 + k % 2) * 2));
}

// One group of 32 of one lane: code * scale, or code * scale + minimum, in f32. The second half may have its own scale.
void unpackGroup(const PackedLayout &l, const uint8_t *block, int64_t group, int64_t lane, int64_t count, float *out) {
  if (l.form == WeightForm::F8) {
    float scale;
    std::memcpy(&scale, block + l.scalesAt() + 4 * (lanesPerBlock * group + lane), 4);
    for (int64_t k = 0; k < count; ++k)
      out[k] = fromF8E4M3(block[l.groupBytes() * group + lanesPerBlock * k + lane]) * scale;
    return;
  }
  const uint8_t *codes = block + l.groupBytes() * group + 4 * lane;
  int64_t slot = 2 * (lanesPerBlock * group + lane);
  float scale = fromF16(halfAt(block + l.scalesAt() + slot));
  bool isFloat = l.form == WeightForm::F4;
  float second = isFloat || l.form == WeightForm::I4M ? fromF16(halfAt(block + l.minimaAt() + slot)) : 0.0f;
  for (int64_t k = 0; k < count; ++k) {
    // Words of four codes follow each other lane by lane; 4-bit forms hold k and k + 16 in one byte.
    bool isByte = l.form == WeightForm::I8;
    int stored = codes[laneStride * (isByte ? k / 4 : k / 4 % 4) + k % 4];
    int code = isByte ? stored : k < 16 ? stored & 15 : stored >> 4;
    if (isFloat)
      out[k] = twiceE2M1[code] * (k < 16 ? scale : second);
    else
      out[k] = static_cast<float>(code - l.zeroPoint()) * scale + second;
  }
}

void unpackBlocks(const PackedLayout &l, const uint8_t *tile, int64_t place, float *out) {
  int64_t panels = l.paddedTile() / lanesPerBlock;
  for (int64_t k0 = 0; k0 < l.k; k0 += valuesPerGroup) {
    const uint8_t *block = tile + (k0 / valuesPerBlock * panels + place / lanesPerBlock) * l.blockBytes();
    unpackGroup(l, block, k0 / valuesPerGroup % 2, place % lanesPerBlock, std::min(valuesPerGroup, l.k - k0), out + k0);
  }
}

} // namespace

Status unpackRow(const PackedLayout &layout, std::span<const uint8_t> packed, int64_t row, float *out) {
  uint64_t bytes = *layout.bytes().value();
  if (packed.size() != bytes)
    return Status::error("packed weight has " + std::to_string(packed.size()) + " bytes, its layout takes " +
                         std::to_string(bytes));
  if (row < 0 || row >= layout.stacked * layout.n)
    return Status::error("packed weight has " + std::to_string(layout.stacked * layout.n) + " rows, row " +
                         std::to_string(row) + " is asked for");
  TilePlace at = layout.placeOf(row);
  const uint8_t *tile = packed.data() + static_cast<uint64_t>(at.tile) * *layout.tileBytes().value();
  if (layout.form == WeightForm::Plain)
    std::memcpy(out, tile + at.place * 4, 4);
  else if (layout.form == WeightForm::F32)
    unpackF32(layout, tile, at.place, out);
  else if (layout.form == WeightForm::BF16)
    unpackBf16(layout, tile, at.place, out);
  else
    unpackBlocks(layout, tile, at.place, out);
  return {};
}

StatusOr<std::vector<float>> unpackWeight(const PackedLayout &layout, std::span<const uint8_t> packed) {
  LLMC_RETURN_IF_ERROR(checkLayout(layout));
  if (!layout.bytes().fits(packed.size())) // before a size that the bytes do not bear out is allocated
    return Status::error("packed weight has " + std::to_string(packed.size()) + " bytes, its layout takes " +
                         std::to_string(*layout.bytes().value()));
  const int64_t rows = layout.stacked * layout.n;
  std::vector<float> out(static_cast<size_t>(rows * layout.k));
  for (int64_t row = 0; row < rows; ++row)
    LLMC_RETURN_IF_ERROR(unpackRow(layout, packed, row, out.data() + row * layout.k));
  return out;
}

} // namespace llmc
