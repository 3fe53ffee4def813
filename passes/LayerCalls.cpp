#include "passes/LayerCalls.h"

using namespace mlir;

namespace llmc {

LayerCalls::LayerCalls(ModuleOp module) {
  module.walk([&](func::CallOp call) { calls_[call.getCalleeAttr().getAttr()].push_back(call); });
}

ArrayRef<func::CallOp> LayerCalls::callsOf(func::FuncOp function) const {
  auto known = calls_.find(function.getSymNameAttr());
  return known == calls_.end() ? ArrayRef<func::CallOp>() : ArrayRef<func::CallOp>(known->second);
}

void updateFunctionType(func::FuncOp function) {
  Block &body = function.getBody().front();
  function.setType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
}

} // namespace llmc
