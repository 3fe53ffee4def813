#include "dialects/tile/TileDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::tile;

#include "dialects/tile/TileDialect.cpp.inc"
#include "dialects/tile/TileEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttributes.cpp.inc"

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/tile/TileTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tile/TileAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tile/TileOps.cpp.inc"
      >();
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (attribute.getName() != "tile.block" && attribute.getName() != "tile.layer")
    return op->emitOpError() << "has an attribute " << attribute.getName().getValue()
                             << ", expected tile.block or tile.layer";
  if (!number || number.getInt() < 0)
    return op->emitOpError() << "has " << attribute.getName().getValue() << " " << attribute.getValue()
                             << ", expected an integer from 0 on";
  return success();
}

LogicalResult RowsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t channels) {
  if (channels <= 0 || channels > llm::maxSize)
    return emitError() << "rows have " << channels << " channels, expected 1 to " << llm::maxSize;
  return success();
}
