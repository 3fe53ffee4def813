// bf16 weights through matrix tiles. One kernel serves every number of rows: a tile product takes no longer than its
// weights take from memory, and one order of additions is one result.
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/MatrixTiles.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

void llmc::cpu::emitTiledPairDot(KernelBuilder &k, const PackedLayout &weight, Value rows, RowArray input, Value tile,
                                 RowArray result) {
  PairTiles tiles;
  tiles.aStrideBytes = input.strideBytes;
  tiles.bStepBytes = weight.panel * 4;
  tiles.depth = weight.numSteps() / 16;
  tiles.resultStrideBytes = result.strideBytes;
  auto passes = [&](int64_t perPass, llvm::function_ref<void(Value)> body) {
    emitPasses(k, vectorsOf(weight), perPass, weight.panel / kLanes, weight.panelBytes(), tile,
               [&](Value base, ArrayRef<int64_t> offsets, Value first) {
                 tiles.b = base;
                 tiles.columns = offsets;
                 body(k.at(result.pointer, k.mul(first, 64)));
               });
  };
  Value few = k.less(rows, k.i64(kTileRows + 1));
  k.when(few, [&] {
    tiles.rows = rows;
    tiles.rowTiles = 1;
    tiles.a = input.pointer;
    tiles.prefetchBytes = k.target.tilePrefetchBytes;
    passes(4, [&](Value to) {
      tiles.result = to;
      emitPairTiles(k, tiles);
    });
  });
  // Two by two: each tile that is loaded takes part in two products.
  k.when(k.less(k.i64(kTileRows), rows), [&] {
    tiles.rowTiles = 2;
    tiles.prefetchBytes = 0;
    passes(2, [&](Value to) {
      k.loop(k.i64(0), rows, kPairRows, [&](Value first) {
        tiles.rows = k.min(k.sub(rows, first), k.i64(kPairRows));
        tiles.a = k.at(input.pointer, k.mul(first, input.strideBytes));
        tiles.result = k.at(to, k.mul(first, result.strideBytes));
        emitPairTiles(k, tiles);
      });
    });
  });
}
