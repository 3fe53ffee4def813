// Kernels that multiply a few rows with one column tile. Every variant keeps one accumulator per output element and
// adds in ascending order of k, so that a row's result does not depend on how many rows were computed with it.
#pragma once
#include "lib/codegen/cpu/KernelBuilder.h"
#include "lib/weights/PackedLayout.h"

namespace llmc::cpu {

// Vectors of 16 output channels of a column tile, and its bytes: a layout that was checked fits 64 bits.
inline int64_t vectorsOf(const PackedLayout &weight) { return weight.paddedTile() / kLanes; }
inline int64_t tileBytesOf(const PackedLayout &weight) { return static_cast<int64_t>(*weight.tileBytes().value()); }

// Rows of kernel inputs: row r at pointer + r * strideBytes.
struct RowArray {
  mlir::Value pointer;
  int64_t strideBytes = 0;
};

// How the prologue must store a row for `emitDotTile`.
struct DotInputLayout {
  mlir::Type element;      // bf16 pairs for the bf16 dot, else f32
  int64_t paddedDepth = 0; // elements to write, zero past K
  int64_t strideBytes = 0;
};
DotInputLayout dotInputLayout(KernelBuilder &kernel, const PackedLayout &weight);

// A part of the depth, in blocks of 64; what is there of the result is added to.
struct DepthPart {
  mlir::Value from, to;
};

// result[r][n] = sum_k input[r][k] * tile[n, k] for `rows` rows, over a part of the depth where one is given.
void emitDotTile(KernelBuilder &kernel, const PackedLayout &weight, int64_t rows, RowArray input, mlir::Value tile,
                 RowArray result, const DepthPart &part = {});

// The same for weights in 8-bit floats.
void emitFloat8DotTile(KernelBuilder &kernel, const PackedLayout &weight, int64_t rows, RowArray input,
                       mlir::Value tile, RowArray result, const DepthPart &part = {});
// Sixteen codes as f32, each 1 / float8Factor of its value.
constexpr float float8Factor = 256.0f;
mlir::Value loadFloat8(KernelBuilder &kernel, mlir::Value pointer, int64_t bytes);

// The same for quantised rows: codes, then scales f32, start values i32 (one for each part of a group) and sums f32,
// one per group.
// A code of two bytes is radix * high + low: the high bytes of a row come first, its low bytes at `lowAt`. With a radix
// of 255 neither is -128, whose sign cannot be turned; that of 256 is cheaper to put together.
struct QuantizedInputLayout {
  int64_t codeBytes = 0, radix = 0, lowAt = 0, scalesAt = 0, startAt = 0, sumsAt = 0, strideBytes = 0;
  int64_t zeroPoint = 0; // what kernels add to a weight's code; a start value is -zeroPoint * the sum of the codes
  int64_t parts = 1;     // of a group
};
QuantizedInputLayout quantizedInputLayout(const CpuTarget &target, const PackedLayout &weight, int64_t codeBytes);
// The sum of products with whole codes from those with their bytes.
mlir::Value joinPlanes(KernelBuilder &kernel, const QuantizedInputLayout &layout, mlir::Value high, mlir::Value low);
void emitQuantizedDotTile(KernelBuilder &kernel, const PackedLayout &weight, const QuantizedInputLayout &layout,
                          int64_t rows, RowArray input, mlir::Value tile, RowArray result, const DepthPart &part = {});
// Zeros for the first part to add to.
void clearResult(KernelBuilder &kernel, const PackedLayout &weight, mlir::Value rows, RowArray result);

// The same through matrix tiles for any number of rows; reads and writes whole groups of kTileRows rows.
void emitTiledQuantizedDot(KernelBuilder &kernel, const PackedLayout &weight, const QuantizedInputLayout &layout,
                           mlir::Value rows, RowArray input, mlir::Value tile, RowArray result);

// bf16 weights through matrix tiles, for any number of rows, whose bits do not depend on it; reads and writes whole
// groups of kPairRows rows. Between beginPairTiles for min(rows, kTileRows) and endTiles.
constexpr int64_t kPairRows = 32;
bool usesPairTiles(KernelBuilder &kernel, const PackedLayout &weight);
void emitTiledPairDot(KernelBuilder &kernel, const PackedLayout &weight, mlir::Value rows, RowArray input,
                      mlir::Value tile, RowArray result);

// Passes over `vectors` vectors, at most `perPass` at a time. Vector v lies at offsetOf(v) bytes from `base`; the body
// gets the base of the pass, the offsets of its vectors from there, and its first vector.
void emitPasses(KernelBuilder &kernel, int64_t vectors, int64_t perPass, int64_t panelVectors, int64_t panelBytes,
                mlir::Value base, llvm::function_ref<void(mlir::Value, llvm::ArrayRef<int64_t>, mlir::Value)> body);

} // namespace llmc::cpu
