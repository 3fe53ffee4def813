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

void separateWeightUses(func::FuncOp step) {
  for (auto use : llvm::make_early_inc_range(step.getOps<llm::UseWeightOp>()))
    for (OpOperand &operand : llvm::make_early_inc_range(use.getResult().getUses()))
      if (!use->hasOneUse()) {
        OpBuilder builder(use);
        operand.set(builder.clone(*use)->getResult(0));
      }
}

void eraseUnusedSymbols(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  module.walk([&](Operation *op) {
    if (!isa<llm::UseWeightOp, llm::UseStateOp>(op))
      return;
    if (op->use_empty())
      op->erase();
    else
      used.insert(op->getAttrOfType<FlatSymbolRefAttr>("symbol").getAttr());
  });
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<llm::WeightOp, llm::StateOp>(op) && !used.contains(SymbolTable::getSymbolName(&op)))
      op.erase();
}

} // namespace llmc
