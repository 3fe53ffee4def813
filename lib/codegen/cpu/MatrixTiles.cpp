// Tile registers are configured by hand: tiles 0 .. 3 hold products, and the others what is multiplied.
#include "lib/codegen/cpu/MatrixTiles.h"
#include "lib/codegen/cpu/Instructions.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

bool usesTiles(KernelBuilder &k, Instruction instruction) { return !k.emulate && isLegal(instruction, k.target); }

void callTiles(KernelBuilder &k, StringRef intrinsic, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(k.b, k.b.getStringAttr(intrinsic), operands);
}

// Numbers of tile registers are bytes, known when code is generated.
Value tileNumber(KernelBuilder &k, int64_t number) {
  return arith::ConstantOp::create(k.b, k.b.getI8IntegerAttr(static_cast<int8_t>(number)));
}

void multiply(KernelBuilder &k, Instruction instruction, int64_t product, int64_t a, int64_t b) {
  callTiles(k, rowOf(instruction).intrinsic, {tileNumber(k, product), tileNumber(k, a), tileNumber(k, b)});
}

// Intel SDM volume 1, "XTILECFG": palette 1, then at byte 16 the bytes per row of tiles 0 .. 7 (16 bits each), and at
// byte 48 their rows (8 bits each).
struct TileConfig {
  static constexpr int64_t rowsAt = 48;
  SmallVector<uint8_t> bytes = SmallVector<uint8_t>(64, 0);

  TileConfig() { bytes[0] = 1; }
  void set(int64_t tile, int64_t rows, int64_t rowBytes) {
    bytes[16 + 2 * tile] = static_cast<uint8_t>(rowBytes);
    bytes[rowsAt + tile] = static_cast<uint8_t>(rows);
  }
  // Into memory of this function.
  Value write(KernelBuilder &k) const {
    Value buffer = k.allocate(64);
    auto type = k.vectorOf(64, k.i8Type);
    ArrayRef<char> raw(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    k.store(arith::ConstantOp::create(k.b, DenseElementsAttr::getFromRawBuffer(type, raw)), buffer);
    return buffer;
  }
};

// Of byte tiles, by set: the product, rows of inputs, weights.
constexpr int64_t kByteInputs = 2, kByteWeights = 4;
// Of pair tiles: two tiles of rows, and two of weights that take turns.
constexpr int64_t kPairInputs = 4, kPairWeights = 6;

void expandByteTiles(KernelBuilder &k, const ByteTiles &tiles) {
  VectorType bytes = k.vectorOf(64, k.i8Type);
  k.loop(k.i64(0), k.i64(kTileRows), 1, [&](Value row) {
    Value codes = k.at(tiles.a, k.mul(row, tiles.rowStrideBytes)), sum = k.splatInt(0);
    for (int64_t quad = 0; quad < 8; ++quad) {
      Value a = k.bitcast(k.broadcast(k.load(k.i32Type, codes, 4 * quad)), bytes);
      sum = k.add(sum, sumOfProducts(k, k.load(bytes, tiles.b, 64 * quad), /*xSigned=*/true, a, 4));
    }
    k.store(sum, k.at(tiles.product, k.mul(row, 64)));
  });
}

// Even and odd sums of the 16 pairs of one block.
std::pair<Value, Value> pairSums(KernelBuilder &k, const PairTiles &tiles, Value a, Value b) {
  SmallVector<Value> zero(2, k.splat(0.0f));
  SmallVector<Value> sums = k.loop(k.i64(0), k.i64(16), 1, zero, [&](Value step, ValueRange carried) {
    SmallVector<Value> next;
    Value w = k.load(k.vi, k.at(b, k.mul(step, tiles.bStepBytes)));
    Value x = k.broadcast(k.load(k.i32Type, k.at(a, k.mul(step, 4))));
    for (bool odd : {false, true}) {
      auto half = [&](Value words) { return flushSubnormal(k, halfOfPairs(k, words, odd)); };
      next.push_back(flushSubnormal(k, k.fma(half(x), half(w), carried[odd])));
    }
    return next;
  });
  return {sums[0], sums[1]};
}

void expandPairTiles(KernelBuilder &k, const PairTiles &tiles) {
  k.loop(k.i64(0), tiles.rows, 1, [&](Value row) {
    Value a = k.at(tiles.a, k.mul(row, tiles.aStrideBytes));
    for (auto [index, column] : llvm::enumerate(tiles.columns)) {
      SmallVector<Value> zero(1, k.splat(0.0f));
      SmallVector<Value> sum =
          k.loop(k.i64(0), k.i64(tiles.depth), 1, zero, [&, column = column](Value block, ValueRange carried) {
            Value b = k.at(k.at(tiles.b, k.mul(block, 16 * tiles.bStepBytes)), column);
            auto [even, odd] = pairSums(k, tiles, k.at(a, k.mul(block, 64)), b);
            Value both = flushSubnormal(k, k.addF(even, odd));
            return SmallVector<Value>{flushSubnormal(k, k.addF(carried[0], both))};
          });
      k.store(sum[0], k.at(tiles.result, k.mul(row, tiles.resultStrideBytes)), 64 * static_cast<int64_t>(index));
    }
  });
}

} // namespace

void llmc::cpu::beginByteTiles(KernelBuilder &k) {
  if (!usesTiles(k, Instruction::TileDotS8))
    return;
  TileConfig config;
  for (int64_t set : {0, 1}) {
    config.set(set, kTileRows, 64);
    config.set(kByteInputs + set, kTileRows, 32);
    config.set(kByteWeights + set, 8, 64);
  }
  callTiles(k, "llvm.x86.ldtilecfg", {config.write(k)});
}

void llmc::cpu::beginPairTiles(KernelBuilder &k, Value rows) {
  if (!usesTiles(k, Instruction::TileDotBf16))
    return;
  TileConfig config;
  for (int64_t tile = 0; tile < 8; ++tile)
    config.set(tile, 16, 64);
  Value buffer = config.write(k), count = arith::TruncIOp::create(k.b, k.i8Type, rows);
  for (int64_t tile = 0; tile < kPairWeights; ++tile) // products and inputs
    k.store(count, buffer, TileConfig::rowsAt + tile);
  callTiles(k, "llvm.x86.ldtilecfg", {buffer});
}

void llmc::cpu::endTiles(KernelBuilder &k) {
  if (usesTiles(k, Instruction::TileDotS8))
    callTiles(k, "llvm.x86.tilerelease", {});
}

void llmc::cpu::emitByteTiles(KernelBuilder &k, const ByteTiles &tiles) {
  if (!usesTiles(k, Instruction::TileDotS8))
    return expandByteTiles(k, tiles);
  int64_t product = tiles.set, a = kByteInputs + tiles.set, b = kByteWeights + tiles.set;
  zeroTile(k, product);
  loadTile(k, a, tiles.a, tiles.rowStrideBytes);
  loadTile(k, b, tiles.b, 64);
  multiply(k, Instruction::TileDotS8, product, a, b);
  storeTile(k, product, tiles.product, 64);
}

void llmc::cpu::emitPairTiles(KernelBuilder &k, const PairTiles &tiles) {
  if (!usesTiles(k, Instruction::TileDotBf16))
    return expandPairTiles(k, tiles);
  auto count = static_cast<int64_t>(tiles.columns.size());
  assert(tiles.rowTiles * count <= kPairInputs && tiles.rowTiles <= 2);
  auto product = [&](int64_t r, int64_t c) { return r * count + c; };
  auto rowsOf = [&](Value rows, int64_t r, int64_t strideBytes) { return k.at(rows, r * kTileRows * strideBytes); };
  for (int64_t r = 0; r < tiles.rowTiles; ++r)
    for (int64_t c = 0; c < count; ++c)
      zeroTile(k, product(r, c));
  k.loop(k.i64(0), k.i64(tiles.depth), 1, [&](Value block) {
    Value a = k.at(tiles.a, k.mul(block, 64)), b = k.at(tiles.b, k.mul(block, 16 * tiles.bStepBytes));
    for (int64_t r = 0; r < tiles.rowTiles; ++r)
      loadTile(k, kPairInputs + r, rowsOf(a, r, tiles.aStrideBytes), tiles.aStrideBytes);
    for (int64_t c = 0; c < count; ++c) {
      int64_t weights = kPairWeights + c % 2;
      for (int64_t step = 0; tiles.prefetchBytes && step < 16; ++step)
        k.prefetch(b, tiles.columns[c] + step * tiles.bStepBytes + tiles.prefetchBytes, KernelBuilder::Cache::First);
      loadTile(k, weights, k.at(b, tiles.columns[c]), tiles.bStepBytes);
      for (int64_t r = 0; r < tiles.rowTiles; ++r)
        dotTiles(k, product(r, c), kPairInputs + r, weights);
    }
  });
  for (int64_t r = 0; r < tiles.rowTiles; ++r)
    for (int64_t c = 0; c < count; ++c)
      storeTile(k, product(r, c), k.at(rowsOf(tiles.result, r, tiles.resultStrideBytes), 64 * c),
                tiles.resultStrideBytes);
}

bool llmc::cpu::usesPairTiles(KernelBuilder &k) { return usesTiles(k, Instruction::TileDotBf16); }
void llmc::cpu::zeroTile(KernelBuilder &k, int64_t tile) { callTiles(k, "llvm.x86.tilezero", {tileNumber(k, tile)}); }
void llmc::cpu::loadTile(KernelBuilder &k, int64_t tile, Value from, int64_t strideBytes) {
  callTiles(k, "llvm.x86.tileloadd64", {tileNumber(k, tile), from, k.i64(strideBytes)});
}
void llmc::cpu::storeTile(KernelBuilder &k, int64_t tile, Value to, int64_t strideBytes) {
  callTiles(k, "llvm.x86.tilestored64", {tileNumber(k, tile), to, k.i64(strideBytes)});
}
void llmc::cpu::dotTiles(KernelBuilder &k, int64_t product, int64_t a, int64_t b) {
  multiply(k, Instruction::TileDotBf16, product, a, b);
}
