// The tile dialect: everything a user of it includes.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "dialects/tile/TileDialect.h.inc"
#include "dialects/tile/TileEnums.h.inc"
#include <optional>

namespace llmc::tile {
/// True for tensors of one static positive dimension, the only ones that a task computes with.
bool isTileType(mlir::Type type);
/// The largest code of a quantised tile: 127 of i8, 127 * 256 of i16.
int64_t largestCodeOf(mlir::Type codes);
/// Elements that the state of `heads` query heads takes in partials.
int64_t partialChannels(llm::KvType kv, int64_t heads);
/// True for the ops of TileCollectiveOps.td by which ranks exchange rows.
bool isCollective(mlir::Operation *op);
/// The llmc_collective of such an op, with what follows it, for groups of `ranks` and rows so many elements apart.
llvm::SmallVector<int64_t> describeCollective(mlir::Operation *op, int64_t ranks, int64_t inputStride,
                                              int64_t resultStride, int64_t number = 0);
/// Which rows such an op is about.
Space spaceOfCollective(mlir::Operation *op);
/// Which block of the rows of a step an op of @step is about, by its `tile.block`; of nothing: all rows.
/// `llmc-overlap-collectives` says more.
std::optional<int64_t> blockOf(mlir::Operation *op);
/// Whether an argument of a task is room for what parts of rows find (`partials`), not rows of the batch.
bool isRoom(mlir::BlockArgument argument);
/// Ranks of a group, of which the module is the program of one; 1 where nobody shares it.
int64_t ranksOf(mlir::ModuleOp module);
} // namespace llmc::tile

#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/tile/TileOps.h.inc"
