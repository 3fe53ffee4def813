// Matrix tiles: products of 16 rows with 16 columns, and their expansions in vectors, which give the same bits.
#pragma once
#include "lib/codegen/cpu/KernelBuilder.h"

namespace llmc::cpu {

constexpr int64_t kTileRows = 16, kTileProductBytes = 16 * 16 * 4, kTileDepth = 32;

// Around products of bytes: configures the tiles of this thread, and gives their state back.
void beginByteTiles(KernelBuilder &kernel);
// The same for products of bf16 pairs over tiles of `rows` (1 .. 16) rows.
void beginPairTiles(KernelBuilder &kernel, mlir::Value rows);
void endTiles(KernelBuilder &kernel);

// product[r][n] = sum_k a[r][k] * b[k / 4][n][k % 4], exact, for 16 rows and columns and 32 k: a s8, rows
// `rowStrideBytes` apart; b s8 [8][16][4]; product s32 [16][16]. Products of different sets (0 or 1) overlap in time.
struct ByteTiles {
  int64_t set;
  mlir::Value a;
  int64_t rowStrideBytes;
  mlir::Value b, product;
};
void emitByteTiles(KernelBuilder &kernel, const ByteTiles &tiles);

// result[r][n] = sum_k a[r][k] * b[k][n] for `rows` rows and 16 columns from each of `columns`. Of every 32 k the even
// and the odd products are added up apart, each from zero by fused multiply-adds; their sum is added to the result.
// Subnormal inputs and results are zero.
struct PairTiles {
  mlir::Value rows;     // at most 16 * rowTiles; more than 16 * (rowTiles - 1)
  int64_t rowTiles = 1; // rowTiles * columns.size() <= 4
  mlir::Value a;        // bf16, rows `aStrideBytes` apart, readable up to 16 * rowTiles
  int64_t aStrideBytes = 0;
  mlir::Value b; // bf16 pairs of 16 columns, steps of one pair `bStepBytes` apart
  int64_t bStepBytes = 0;
  llvm::ArrayRef<int64_t> columns; // offsets from b in bytes
  int64_t depth = 0;               // K / 32
  int64_t prefetchBytes = 0;       // ahead in b; 0: none
  mlir::Value result;              // f32, rows `resultStrideBytes` apart, columns side by side
  int64_t resultStrideBytes = 0;
};
void emitPairTiles(KernelBuilder &kernel, const PairTiles &tiles);

// The registers of pair tiles one by one, for code that has asked usesPairTiles: 0 .. 3 are products, 4 and 5 rows of
// a, 6 and 7 columns of b. dotTiles adds as above to what the product holds.
bool usesPairTiles(KernelBuilder &kernel);
void zeroTile(KernelBuilder &kernel, int64_t tile);
void loadTile(KernelBuilder &kernel, int64_t tile, mlir::Value from, int64_t strideBytes);
void storeTile(KernelBuilder &kernel, int64_t tile, mlir::Value to, int64_t strideBytes);
void dotTiles(KernelBuilder &kernel, int64_t product, int64_t a, int64_t b);

} // namespace llmc::cpu
