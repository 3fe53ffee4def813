// The tile dialect: everything a user of it includes.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "dialects/tile/TileDialect.h.inc"
#include "dialects/tile/TileEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/tile/TileOps.h.inc"
