#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::llm;

#include "dialects/llm/LlmDialect.cpp.inc"
#include "dialects/llm/LlmInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LlmAttributes.cpp.inc"

void LlmDialect::initialize() {
  registerTypes();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/llm/LlmAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/llm/LlmOps.cpp.inc"
      >();
}
