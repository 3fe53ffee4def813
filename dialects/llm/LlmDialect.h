// The llm dialect: everything a user of it includes.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/llm/LlmDialect.h.inc"
#include "dialects/llm/LlmEnums.h.inc"
#include "dialects/llm/LlmInterfaces.h.inc"

namespace llmc::llm {
/// Upper bound of every size in a type, and of the elements of a row: bytes of a whole weight still fit 64 bits.
constexpr int64_t maxSize = int64_t(1) << 28;
/// Elements that a matrix unit adds up at once where a cache lies in pairs for it.
constexpr int64_t pairBlock = 32;
/// Elements of a block of recurrent state that a vector holds; fewer values than these leave the lanes to keys.
constexpr int64_t stateLanes = 16;
/// True for activations: tensor<?xCxf32> and tensor<?xHxDxf32>, sizes positive and at most maxSize elements per row.
bool isRowsType(mlir::Type type);
} // namespace llmc::llm

#define GET_TYPEDEF_CLASSES
#include "dialects/llm/LlmTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LlmAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/llm/LlmOps.h.inc"
