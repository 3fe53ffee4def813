// One row of the ops that carry a state: the state lies in memory, where a worker keeps it in its first-level cache.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "lib/codegen/cpu/KernelBuilder.h"

namespace llmc::cpu {

// Where a row's operands lie, f32, zero from their last element to a whole vector. Those that the op lacks are null.
struct RecurOperands {
  mlir::Value query, key, value, decay, beta, result;
};

// `state` is where the tile's part of the state starts.
void emitRecurRow(KernelBuilder &kernel, tile::RecurOp op, const RecurOperands &operands, mlir::Value state);

// `weight` is the column's tile, `state` its block.
void emitConvolveRow(KernelBuilder &kernel, tile::ConvolveOp op, mlir::Value input, mlir::Value weight,
                     mlir::Value state, mlir::Value result);

// Where value and gate of a row lie; `begins` (i1) says that it is the first of its window. `state` is the column's
// block.
void emitPoolRow(KernelBuilder &kernel, tile::PoolOp op, mlir::Value value, mlir::Value gate, mlir::Value begins,
                 mlir::Value state, mlir::Value result);

} // namespace llmc::cpu
