// Module-wide rules of state that no single op can check.
#include "dialects/llm/LlmDialect.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_VERIFYSTATEPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

constexpr int maxCallDepth = 64;

// What a function does with a state that it is given, or @step with one of its symbols.
struct StateUse {
  int growths = 0;
  bool readsFirst = false; // before the first growth, or without any
};

// Ops that read `state` or what it has grown into, in their order.
SmallVector<OpOperand *> usesInOrder(Value state) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : state.getUses()) {
    uses.push_back(&use);
    if (auto append = dyn_cast<llm::KvAppendOp>(use.getOwner()); append && append.getKv() == state)
      for (OpOperand &later : append.getResult().getUses())
        uses.push_back(&later);
  }
  llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
    if (a->getOwner() == b->getOwner())
      return a->getOperandNumber() < b->getOperandNumber();
    return a->getOwner()->isBeforeInBlock(b->getOwner());
  });
  return uses;
}

class StateVerifier {
public:
  explicit StateVerifier(ModuleOp module) : symbols_(module) {}
  LogicalResult verify(llm::UseStateOp use);

private:
  FailureOr<StateUse> useOf(Value state, StringRef symbol, int depth);
  FailureOr<StateUse> useOf(OpOperand &operand, StringRef symbol, int depth);

  SymbolTable symbols_;
  DenseMap<Value, StateUse> known_; // of arguments
};

FailureOr<StateUse> StateVerifier::useOf(OpOperand &operand, StringRef symbol, int depth) {
  Operation *owner = operand.getOwner();
  if (isa<llm::KvAppendOp, llm::ShortConvOp, llm::WindowPoolOp, llm::LinearAttentionOp>(owner))
    return StateUse{/*growths=*/1, /*readsFirst=*/false};
  if (isa<func::ReturnOp>(owner))
    return owner->emitOpError() << "returns state @" << symbol << "; hand the state to the later call itself";
  auto call = dyn_cast<func::CallOp>(owner);
  if (!call)
    return StateUse{/*growths=*/0, /*readsFirst=*/true};
  auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
  if (!callee || callee.isDeclaration())
    return call.emitOpError() << "calls @" << call.getCallee() << ", which has no body in this module";
  if (depth == maxCallDepth)
    return call.emitOpError() << "calls @" << call.getCallee() << " " << depth << " levels deep; layers do not recurse";
  return useOf(callee.getArgument(operand.getOperandNumber()), symbol, depth + 1);
}

FailureOr<StateUse> StateVerifier::useOf(Value state, StringRef symbol, int depth) {
  if (auto known = known_.find(state); known != known_.end())
    return known->second;
  StateUse all;
  for (OpOperand *operand : usesInOrder(state)) {
    FailureOr<StateUse> use = useOf(*operand, symbol, depth);
    if (failed(use))
      return failure();
    if (use->readsFirst && all.growths == 0) {
      // In @step nothing has grown it; a function may be called after one that does.
      if (auto call = dyn_cast<func::CallOp>(operand->getOwner()); call && depth == 0)
        return call.emitOpError() << "hands state @" << symbol << " to @" << call.getCallee()
                                  << ", which reads it before this step has grown it";
      if (depth == 0)
        return operand->getOwner()->emitOpError() << "reads state @" << symbol << " that this step has not grown";
      all.readsFirst = true;
    }
    all.growths += use->growths;
  }
  known_[state] = all;
  return all;
}

LogicalResult StateVerifier::verify(llm::UseStateOp use) {
  FailureOr<StateUse> all = useOf(use.getResult(), use.getSymbol(), /*depth=*/0);
  if (failed(all))
    return failure();
  if (all->growths != 1)
    return use.emitOpError() << "grows state @" << use.getSymbol() << " " << all->growths
                             << " times in a step, expected once";
  return success();
}

struct VerifyState : llmc::impl::VerifyStatePassBase<VerifyState> {
  void runOnOperation() override {
    StateVerifier verifier(getOperation());
    DenseMap<StringAttr, llm::UseStateOp> firstUse;
    auto result = getOperation().walk([&](llm::UseStateOp use) {
      auto [known, isFirst] = firstUse.try_emplace(use.getSymbolAttr().getAttr(), use);
      if (!isFirst) {
        InFlightDiagnostic diagnostic = use.emitOpError() << "uses state @" << use.getSymbol() << " a second time";
        diagnostic.attachNote(known->second.getLoc()) << "first used here";
        return WalkResult::interrupt();
      }
      return failed(verifier.verify(use)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
