// Module-wide rules of state that no single op can check.
#include "dialects/llm/LlmDialect.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_VERIFYSTATEPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;

namespace {

// Whether some llm.kv_append of `function` grows its argument `index`.
bool grows(func::FuncOp function, unsigned index) {
  return llvm::any_of(function.getArgument(index).getUsers(), [](Operation *user) { return isa<llmc::llm::KvAppendOp>(user); });
}

LogicalResult verifyUse(llmc::llm::UseStateOp use, SymbolTable &symbols) {
  int growths = 0;
  for (OpOperand &operand : use.getResult().getUses()) {
    if (isa<llmc::llm::KvAppendOp>(operand.getOwner())) {
      ++growths;
      continue;
    }
    auto call = dyn_cast<func::CallOp>(operand.getOwner());
    if (!call)
      return operand.getOwner()->emitOpError() << "reads state @" << use.getSymbol() << " that this step has not grown";
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isDeclaration())
      return call.emitOpError() << "calls @" << call.getCallee() << ", which has no body in this module";
    if (!grows(callee, operand.getOperandNumber()))
      return call.emitOpError() << "hands state @" << use.getSymbol() << " to @" << call.getCallee()
                                << ", which does not grow it";
    ++growths;
  }
  if (growths != 1)
    return use.emitOpError() << "grows state @" << use.getSymbol() << " " << growths << " times in a step, expected once";
  return success();
}

struct VerifyState : llmc::impl::VerifyStatePassBase<VerifyState> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    DenseMap<StringAttr, llmc::llm::UseStateOp> firstUse;
    auto result = getOperation().walk([&](llmc::llm::UseStateOp use) {
      auto [known, isFirst] = firstUse.try_emplace(use.getSymbolAttr().getAttr(), use);
      if (!isFirst) {
        InFlightDiagnostic diagnostic = use.emitOpError() << "uses state @" << use.getSymbol() << " a second time";
        diagnostic.attachNote(known->second.getLoc()) << "first used here";
        return WalkResult::interrupt();
      }
      return failed(verifyUse(use, symbols)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
