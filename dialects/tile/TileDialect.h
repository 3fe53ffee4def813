// The tile dialect: everything a user of it includes.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "dialects/tile/TileDialect.h.inc"
#include "dialects/tile/TileEnums.h.inc"

namespace llmc::tile {
/// True for tensors of one static positive dimension, the only ones that a task computes with.
bool isTileType(mlir::Type type);
/// The largest code of a quantised tile: 127 of i8, 127 * 256 of i16.
int64_t largestCodeOf(mlir::Type codes);
/// Elements that the state of `heads` query heads takes in partials.
int64_t partialChannels(llm::KvType kv, int64_t heads);
} // namespace llmc::tile

#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/tile/TileOps.h.inc"
