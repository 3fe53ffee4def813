// Many rows times one tile of a quantised weight through matrix tiles: the exact sums of a group come from one tile
// product, what follows is done per row in the order of the kernels for few rows, so both agree to the bit.
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"
#include "lib/codegen/cpu/MatrixTiles.h"
#include "lib/importer/files/Dequantize.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// A part of a group of an unpacked panel: codes s8 [8][16][4], as a tile reads them, zero outside the part, then 16
// scales and 16 minima in f32.
constexpr int64_t kCodesBytes = 512, kScalesAt = kCodesBytes, kMinimaAt = kScalesAt + 64, kPartBytes = kMinimaAt + 64;

void unpackCodes(KernelBuilder &k, const PackedLayout &weight, int64_t part, Value codes, Value to) {
  VectorType bytes = k.vectorOf(64, k.i8Type);
  auto byte = [&](int8_t value) { return arith::ConstantOp::create(k.b, DenseElementsAttr::get(bytes, value)); };
  if (weight.form == llm::WeightForm::I8) {
    for (int64_t quad = 0; quad < 8; ++quad)
      k.store(arith::XOrIOp::create(k.b, k.load(bytes, codes, 64 * quad), byte(-128)), to, 64 * quad);
    return;
  }
  for (int64_t quad = 0; quad < 4; ++quad) {
    Value words = k.load(k.vi, codes, 64 * quad);
    for (int64_t high : {0, 1}) {
      Value shifted = high ? arith::ShRUIOp::create(k.b, words, k.splatInt(4)).getResult() : words;
      Value nibbles = k.bitcast(arith::AndIOp::create(k.b, shifted, k.splatInt(0x0f0f0f0f)).getResult(), bytes);
      if (weight.form == llm::WeightForm::F4)
        nibbles = high == part ? lookup(k, twiceE2M1, nibbles) : Value(byte(0));
      if (weight.zeroPoint())
        nibbles = k.sub(nibbles, byte(static_cast<int8_t>(weight.zeroPoint())));
      k.store(nibbles, to, 64 * (quad + 4 * high));
    }
  }
}

// Once per panel and row block: every 16 rows then read plain signed bytes and f32 scales from the first-level cache.
void unpackPanel(KernelBuilder &k, const PackedLayout &weight, Value blocks, Value to) {
  VectorType halves = k.vectorOf(kLanes, k.b.getF16Type());
  k.loop(k.i64(0), k.i64(weight.numKBlocks()), 1, [&](Value index) {
    Value block = k.at(blocks, k.mul(index, vectorsOf(weight) * weight.blockBytes()));
    Value target = k.at(to, k.mul(index, 2 * weight.numParts() * kPartBytes));
    auto column = [&](int64_t from, int64_t at) {
      k.store(arith::ExtFOp::create(k.b, k.vf, k.load(halves, block, from)), target, at);
    };
    for (int64_t group : {0, 1})
      for (int64_t part = 0; part < weight.numParts(); ++part) {
        int64_t at = (group * weight.numParts() + part) * kPartBytes;
        unpackCodes(k, weight, part, k.at(block, group * weight.groupBytes()), k.at(target, at));
        column(weight.scalesAt() + 64 * part + 32 * group, at + kScalesAt);
        if (weight.form == llm::WeightForm::I4M)
          column(weight.minimaAt() + 32 * group, at + kMinimaAt);
      }
  });
}

// One block of 64 along K for sixteen rows: acc[r] += sums * scales, group after group.
void emitTiledBlock(KernelBuilder &k, const PackedLayout &weight, const QuantizedInputLayout &layout, RowArray input,
                    Value panel, Value products, Value block, MutableArrayRef<Value> acc) {
  const int64_t parts = weight.numParts();
  Value groups = k.at(panel, k.mul(block, 2 * parts * kPartBytes)), codes = k.at(input.pointer, k.mul(block, 64));
  Value perGroup = k.at(input.pointer, k.mul(block, 8));
  // All products first: one runs while another is scaled. Each byte of the codes has a product of its own.
  auto productAt = [&](int64_t index, int64_t plane) { return (2 * parts * plane + index) * kTileProductBytes; };
  for (int64_t plane = 0; plane < layout.codeBytes; ++plane)
    for (int64_t index = 0; index < 2 * parts; ++index)
      emitByteTiles(k, {index % 2, k.at(codes, plane * layout.lowAt + 32 * (index / parts)), input.strideBytes,
                        k.at(groups, index * kPartBytes), k.at(products, productAt(index, plane))});
  for (int64_t index = 0; index < 2 * parts; ++index) {
    int64_t group = index / parts;
    Value scales = k.load(k.vf, groups, index * kPartBytes + kScalesAt), minima;
    if (weight.form == llm::WeightForm::I4M)
      minima = k.load(k.vf, groups, index * kPartBytes + kMinimaAt);
    for (int64_t r = 0; r < kTileRows; ++r) {
      auto number = [&](int64_t at) {
        return k.broadcast(k.load(k.f32Type, perGroup, r * input.strideBytes + at + 4 * group));
      };
      Value scale = number(layout.scalesAt);
      Value sums = k.load(k.vi, products, productAt(index, 0) + r * 64);
      if (layout.codeBytes == 2)
        sums = joinPlanes(k, layout, sums, k.load(k.vi, products, productAt(index, 1) + r * 64));
      acc[r] = k.fma(arith::SIToFPOp::create(k.b, k.vf, sums), k.mulF(scales, scale), acc[r]);
      if (minima)
        acc[r] = k.fma(number(layout.sumsAt), k.mulF(minima, scale), acc[r]);
    }
  }
}

} // namespace

void llmc::cpu::emitTiledQuantizedDot(KernelBuilder &k, const PackedLayout &weight, const QuantizedInputLayout &layout,
                                      Value rows, RowArray input, Value tile, RowArray result) {
  const int64_t parts = weight.numParts();
  Value panel = k.allocate(weight.numGroups() * parts * kPartBytes);
  Value products = k.allocate(4 * parts * kTileProductBytes);
  beginByteTiles(k);
  k.loop(k.i64(0), k.i64(vectorsOf(weight)), 1, [&](Value vector) {
    unpackPanel(k, weight, k.at(tile, k.mul(vector, weight.blockBytes())), panel);
    k.loop(k.i64(0), rows, kTileRows, [&](Value first) {
      RowArray inputs{k.at(input.pointer, k.mul(first, input.strideBytes)), input.strideBytes};
      SmallVector<Value> init(kTileRows, k.splat(0.0f));
      SmallVector<Value> sums =
          k.loop(k.i64(0), k.i64(weight.numKBlocks()), 1, init, [&](Value block, ValueRange carried) {
            SmallVector<Value> acc(carried);
            emitTiledBlock(k, weight, layout, inputs, panel, products, block, acc);
            return acc;
          });
      Value to = k.at(k.at(result.pointer, k.mul(first, result.strideBytes)), k.mul(vector, 64));
      for (int64_t r = 0; r < kTileRows; ++r)
        k.store(sums[r], to, r * result.strideBytes);
    });
  });
  endTiles(k);
}
