// Packing one tile per form, and the loop over tiles.
#include "lib/weights/Pack.h"
#include "lib/weights/BlockCodecs.h"
#include "lib/weights/OrderedWork.h"
#include "lib/weights/Quantize.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>

static_assert(std::endian::native == std::endian::little, "packed weights are written in the host's byte order");

namespace llmc {
namespace {

class TilePacker {
public:
  TilePacker(const WeightReader &reader, const PackedLayout &layout) : reader_(reader), layout_(layout) {}
  Status pack(int64_t tile, uint8_t *out) const;

private:
  // The rows of one tile: as f32, and for places whose stored blocks are moved, those blocks.
  struct Rows {
    std::vector<float> values;                // [paddedTile][K]; empty when all places are moved
    std::vector<const BlockCodec *> codecs;   // per place; null: quantise the f32
    std::vector<const uint8_t *> stored;      // per place that has a codec: its row
    std::vector<std::vector<uint8_t>> blocks; // per different codec: the rows of all places
    std::vector<uint8_t> halves;              // [paddedTile][K] of bf16 that stays as it is, in place of the f32
  };
  StatusOr<Rows> read(int64_t tile) const;
  bool isStoredBf16(std::span<const int64_t> rows) const;
  Status readStored(Rows &rows, int64_t tile) const;
  Status packPlain(uint8_t *out) const;
  void packF32(const Rows &rows, uint8_t *out) const;
  void packBf16(const Rows &rows, uint8_t *out) const;
  Status packBlocks(const Rows &rows, uint8_t *out) const;
  Status packGroup(const Rows &rows, int64_t panel, int64_t group, uint8_t *block) const;

  const WeightReader &reader_;
  const PackedLayout &layout_;
};

Status TilePacker::readStored(Rows &rows, int64_t tile) const {
  rows.stored.resize(rows.codecs.size());
  for (const BlockCodec *codec : rows.codecs) {
    size_t first = static_cast<size_t>(std::find(rows.codecs.begin(), rows.codecs.end(), codec) - rows.codecs.begin());
    if (!codec || rows.stored[first])
      continue;
    const TensorTypeInfo &type = infoOf(codec->type);
    if (layout_.k % type.blockValues != 0)
      return Status::error("weight '" + reader_.name() + "' has rows of " + std::to_string(layout_.k) +
                           ", which are no whole " + std::string(type.name) + " blocks of " +
                           std::to_string(type.blockValues));
    size_t rowBytes = static_cast<size_t>(layout_.k / type.blockValues * type.blockBytes);
    std::vector<uint8_t> &blocks = rows.blocks.emplace_back(rowBytes * rows.codecs.size());
    std::vector<int64_t> wanted(rows.codecs.size(), -1);
    for (size_t place = first; place < wanted.size(); ++place)
      if (rows.codecs[place] == codec) {
        wanted[place] = layout_.rowAt(tile, static_cast<int64_t>(place));
        rows.stored[place] = blocks.data() + place * rowBytes;
      }
    LLMC_RETURN_IF_ERROR(reader_.readBlocks(wanted, rowBytes, blocks.data()));
  }
  return {};
}

// By far the most of what is published: through f32 it takes twice as long.
bool TilePacker::isStoredBf16(std::span<const int64_t> rows) const {
  return layout_.form == WeightForm::BF16 && std::all_of(rows.begin(), rows.end(), [&](int64_t row) {
           return row < 0 || (reader_.typeOf(row) == TensorType::BF16 && reader_.isStoredRow(row));
         });
}

StatusOr<TilePacker::Rows> TilePacker::read(int64_t tile) const {
  Rows rows;
  size_t places = static_cast<size_t>(layout_.paddedTile());
  rows.codecs.resize(places);
  std::vector<int64_t> wanted(places);
  bool anyValues = !layout_.isQuantized();
  for (size_t place = 0; place < places; ++place) {
    int64_t row = layout_.rowAt(tile, static_cast<int64_t>(place));
    wanted[place] = row;
    if (row < 0 || !layout_.isQuantized())
      continue;
    if (reader_.isStoredRow(row))
      rows.codecs[place] = blockCodec(reader_.typeOf(row), layout_.form);
    if (rows.codecs[place]) {
      wanted[place] = -1;
      continue;
    }
    anyValues = true;
  }
  if (isStoredBf16(wanted)) {
    size_t rowBytes = static_cast<size_t>(layout_.k) * 2;
    rows.halves.resize(places * rowBytes);
    LLMC_RETURN_IF_ERROR(reader_.readBlocks(wanted, rowBytes, rows.halves.data()));
    return rows;
  }
  LLMC_RETURN_IF_ERROR(readStored(rows, tile));
  if (anyValues) {
    rows.values.resize(places * static_cast<size_t>(layout_.k));
    LLMC_RETURN_IF_ERROR(reader_.readRows(wanted, rows.values.data()));
  }
  return rows;
}

Status TilePacker::pack(int64_t tile, uint8_t *out) const {
  if (layout_.form == WeightForm::Plain)
    return packPlain(out);
  StatusOr<Rows> rows = read(tile);
  if (!rows.ok())
    return rows.status();
  if (layout_.isQuantized())
    return packBlocks(*rows, out);
  if (layout_.form == WeightForm::BF16)
    packBf16(*rows, out);
  else
    packF32(*rows, out);
  return {};
}

// All of it is one tile: a vector, or a list of them one behind the other, zero in what fills it up.
Status TilePacker::packPlain(uint8_t *out) const {
  std::vector<int64_t> rows(static_cast<size_t>(reader_.numRows()));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> values(static_cast<size_t>(layout_.paddedTile()));
  LLMC_RETURN_IF_ERROR(reader_.readRows(rows, values.data()));
  std::memcpy(out, values.data(), values.size() * sizeof(float));
  return {};
}

// A panel is a transposition [NP][K] -> [K][NP]; `chunk` of K at a time keeps the written lines in the first-level
// cache.
void TilePacker::packF32(const Rows &rows, uint8_t *out) const {
  constexpr int64_t chunk = 16;
  int64_t k = layout_.k, panel = layout_.panel;
  for (int64_t first = 0; first < layout_.paddedTile(); first += panel) {
    uint8_t *panelOut = out + first / panel * layout_.panelBytes();
    for (int64_t k0 = 0; k0 < k; k0 += chunk) {
      int64_t count = std::min(chunk, k - k0);
      for (int64_t lane = 0; lane < panel; ++lane) {
        const float *row = rows.values.data() + (first + lane) * k + k0;
        for (int64_t i = 0; i < count; ++i)
          std::memcpy(panelOut + ((k0 + i) * panel + lane) * 4, row + i, 4);
      }
    }
  }
}

// The same with a word of two neighbours along K as the element.
void TilePacker::packBf16(const Rows &rows, uint8_t *out) const {
  constexpr int64_t chunk = valuesPerGroup;
  int64_t k = layout_.k, panel = layout_.panel;
  for (int64_t first = 0; first < layout_.paddedTile(); first += panel) {
    uint8_t *panelOut = out + first / panel * layout_.panelBytes();
    for (int64_t k0 = 0; k0 < k; k0 += chunk) {
      int64_t count = std::min(chunk, k - k0);
      for (int64_t lane = 0; lane < panel; ++lane) {
        const int64_t at = (first + lane) * k + k0;
        uint16_t rounded[chunk] = {}; // zero past K
        if (rows.halves.empty())
          for (int64_t i = 0; i < count; ++i)
            rounded[i] = bf16FromF32(rows.values[static_cast<size_t>(at + i)]);
        else
          std::memcpy(rounded, rows.halves.data() + at * 2, static_cast<size_t>(count) * 2);
        for (int64_t word = 0; word < chunk / 2; ++word)
          std::memcpy(panelOut + ((k0 / 2 + word) * panel + lane) * 4, rounded + 2 * word, 4);
      }
    }
  }
}

Status TilePacker::packBlocks(const Rows &rows, uint8_t *out) const {
  int64_t panels = layout_.paddedTile() / lanesPerBlock, bytes = layout_.blockBytes(), codeBytes = layout_.scalesAt();
  // Code 0 of each form; what no group below reaches stays so, with scale and minimum 0.
  int zero = static_cast<int>(layout_.zeroPoint()) * (layout_.form == WeightForm::I8 ? 1 : 0x11); // 0 of floats
  int64_t groups = (layout_.k + valuesPerGroup - 1) / valuesPerGroup;
  for (int64_t kBlock = 0; kBlock < layout_.numKBlocks(); ++kBlock)
    for (int64_t panel = 0; panel < panels; ++panel) {
      uint8_t *block = out + (kBlock * panels + panel) * bytes;
      std::memset(block, zero, static_cast<size_t>(codeBytes));
      std::memset(block + codeBytes, 0, static_cast<size_t>(bytes - codeBytes));
      for (int64_t group = 2 * kBlock; group < std::min(2 * kBlock + 2, groups); ++group)
        LLMC_RETURN_IF_ERROR(packGroup(rows, panel, group, block));
    }
  return {};
}

Status TilePacker::packGroup(const Rows &rows, int64_t panel, int64_t group, uint8_t *block) const {
  int64_t place = panel * lanesPerBlock, k0 = group * valuesPerGroup;
  if (!rows.values.empty()) {
    auto *quantize = layout_.form == WeightForm::I8   ? quantizeI8
                     : layout_.form == WeightForm::I4 ? quantizeI4
                     : layout_.form == WeightForm::F4 ? quantizeF4
                     : layout_.form == WeightForm::F8 ? quantizeF8
                                                      : quantizeI4M;
    LaneGroup values;
    int64_t count = std::min(valuesPerGroup, layout_.k - k0);
    if (count < valuesPerGroup)
      std::fill_n(&values.w[0][0], valuesPerGroup * lanesPerBlock, 0.0f);
    for (int64_t lane = 0; lane < lanesPerBlock; ++lane) {
      const float *row = rows.values.data() + (place + lane) * layout_.k + k0;
      for (int64_t i = 0; i < count; ++i)
        values.w[i][lane] = row[i];
    }
    bool fits = quantize(values, block, group % 2);
    if (!fits)
      return Status::error("weight '" + reader_.name() + "' has elements near column " + std::to_string(k0) +
                           " that are not finite, or too large for an f16 scale; choose bf16 or f32");
  }
  // Moved lanes go over what was quantised from their zeros.
  for (int64_t lane = 0; lane < lanesPerBlock; ++lane) {
    size_t at = static_cast<size_t>(place + lane);
    const BlockCodec *codec = rows.codecs[at];
    if (!codec)
      continue;
    GroupTarget target = groupTarget(block, layout_.form, group % 2, lane);
    bool fits = codec->movePart
                    ? codec->movePart(rows.stored[at], group, std::min(valuesPerGroup, layout_.k - k0), target)
                    : codec->moveGroup(rows.stored[at], group, target);
    if (!fits)
      return Status::error(
          "weight '" + reader_.name() + "' has " + std::string(nameOf(codec->type)) +
          (layout_.form == WeightForm::F8
               ? " near column " + std::to_string(k0) + " that are not finite or have different scales; choose bf16"
               : " scales near column " + std::to_string(k0) + " that do not fit f16; choose bf16 or f32"));
  }
  return {};
}

// Tiles that are packed together: one large one, or several small ones.
constexpr uint64_t pieceBytes = 64 << 10;

// A part whose tensors are open.
struct OpenPart {
  WeightReader reader;
  const PackedLayout *layout;
  int64_t numTiles;
  size_t tileBytes;
};

struct Piece {
  size_t part;
  int64_t firstTile, numTiles;
  int64_t sourceRow; // about where its tensors are read
};

StatusOr<OpenPart> openPart(const WeightRecipe &recipe, const PackedLayout &layout, const TensorReader &tensors) {
  LLMC_RETURN_IF_ERROR(checkLayout(layout).inside("weight '" + recipe.name + "'"));
  LLMC_ASSIGN_OR_RETURN(WeightReader reader, WeightReader::open(recipe, tensors));
  bool isPlain = layout.form == WeightForm::Plain;
  int64_t rows = isPlain ? reader.numRows() * reader.rowLength() : reader.numRows();
  int64_t length = isPlain ? 1 : reader.rowLength();
  if (rows != layout.stacked * layout.n || length != layout.k)
    return Status::error("weight '" + recipe.name + "' is [" + std::to_string(rows) + ", " + std::to_string(length) +
                         "], but its layout is of [" + std::to_string(layout.stacked * layout.n) + ", " +
                         std::to_string(layout.k) + "]");
  uint64_t tileBytes =
      isPlain ? static_cast<uint64_t>(layout.paddedTile()) * sizeof(float) : *layout.tileBytes().value();
  return OpenPart{std::move(reader), &layout, isPlain ? 1 : layout.stacked * layout.numTiles(),
                  static_cast<size_t>(tileBytes)};
}

// Of all parts, in the order in which the tensors are read from front to back: parts that are columns of the same rows
// read them together. Each part's own pieces stay in order.
std::vector<Piece> piecesOf(std::span<const OpenPart> parts) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    const OpenPart &part = parts[i];
    auto step = static_cast<int64_t>(std::max<uint64_t>(1, pieceBytes / part.tileBytes));
    int64_t sourceRow = 0;
    for (int64_t tile = 0; tile < part.numTiles; tile += step) {
      if (part.layout->form != WeightForm::Plain)
        sourceRow = std::max(sourceRow, part.reader.wholeRow(std::max<int64_t>(0, part.layout->rowAt(tile, 0))));
      pieces.push_back({i, tile, std::min(step, part.numTiles - tile), sourceRow});
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) {
    return std::tie(a.sourceRow, a.part, a.firstTile) < std::tie(b.sourceRow, b.part, b.firstTile);
  });
  return pieces;
}

Status packPiece(const OpenPart &part, const Piece &piece, std::vector<uint8_t> &out) {
  TilePacker packer(part.reader, *part.layout);
  out.resize(static_cast<size_t>(piece.numTiles) * part.tileBytes);
  for (int64_t i = 0; i < piece.numTiles; ++i)
    LLMC_RETURN_IF_ERROR(packer.pack(piece.firstTile + i, out.data() + static_cast<size_t>(i) * part.tileBytes));
  return {};
}

} // namespace

Status packWeights(std::span<const WeightPart> parts, const TensorReader &tensors, int threads) {
  std::vector<OpenPart> open;
  for (const WeightPart &part : parts) {
    LLMC_ASSIGN_OR_RETURN(OpenPart opened, openPart(part.recipe, part.layout, tensors));
    open.push_back(std::move(opened));
  }
  const std::vector<Piece> pieces = piecesOf(open);
  size_t consumed = 0;
  return runInOrder(
      static_cast<int64_t>(pieces.size()), threads,
      [&](int64_t i, std::vector<uint8_t> &out) {
        const Piece &piece = pieces[static_cast<size_t>(i)];
        return packPiece(open[piece.part], piece, out);
      },
      [&](std::span<const uint8_t> bytes) { return parts[pieces[consumed++].part].sink(bytes); });
}

Status packWeight(const WeightRecipe &recipe, const PackedLayout &layout, const TensorReader &tensors,
                  const ByteSink &sink, int threads) {
  const WeightPart part{recipe, layout, sink};
  return packWeights({&part, 1}, tensors, threads);
}

} // namespace llmc
