// Layers go to stages in order, as evenly as their weights allow; a value travels from stage to stage until the last
// that reads it.
#include "passes/SplitStages.h"
#include "dialects/llm/LlmShapes.h"
#include "lib/sharding/Partition.h"
#include "passes/LayerCalls.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

class Stages {
public:
  Stages(func::FuncOp step, int64_t count) : step(step), count(count) {}
  LogicalResult assign();
  LogicalResult keep(int64_t stage);
  const llvm::DenseMap<Operation *, int64_t> &ofOperations() const { return stages; }

private:
  // -1 for what every stage computes for itself: symbols, tables of positions.
  int64_t stageOf(Value value) const {
    Operation *op = value.getDefiningOp();
    return op ? stages.lookup(op) : -1;
  }

  func::FuncOp step;
  int64_t count;
  llvm::DenseMap<Operation *, int64_t> stages;
  llvm::MapVector<Value, int64_t> lastReader; // of rows, in order of definition
};

// Of which weights a layer has, in elements.
int64_t weightOf(func::CallOp call) {
  int64_t elements = 0;
  for (Value operand : call.getOperands())
    if (auto weight = dyn_cast<WeightType>(operand.getType())) {
      int64_t size = 1;
      for (int64_t dimension : weight.getShape())
        size *= dimension;
      elements += size;
    }
  return elements;
}

// Layers before which no stage may begin: an earlier one and this or a later one read the same keys and values.
llvm::BitVector layersThatShareState(ArrayRef<func::CallOp> calls) {
  llvm::DenseMap<StringAttr, unsigned> first;
  llvm::BitVector joined(static_cast<unsigned>(calls.size()));
  for (auto [i, call] : llvm::enumerate(calls))
    for (Value operand : call->getOperands())
      if (auto use = operand.getDefiningOp<UseStateOp>()) {
        unsigned from = first.try_emplace(use.getSymbolAttr().getAttr(), static_cast<unsigned>(i)).first->second;
        joined.set(from + 1, static_cast<unsigned>(i) + 1);
      }
  return joined;
}

LogicalResult Stages::assign() {
  SmallVector<func::CallOp> calls(step.getOps<func::CallOp>());
  if (static_cast<int64_t>(calls.size()) < count)
    return step.emitError() << "has " << calls.size() << " layers, which " << count << " pipeline stages cannot share";
  int64_t total = 0;
  for (func::CallOp call : calls)
    total += weightOf(call);
  int64_t before = 0, stage = 0, inStage = 0;
  llvm::BitVector joined = layersThatShareState(calls);
  for (auto [i, call] : llvm::enumerate(calls)) {
    int64_t own = weightOf(call);
    // On to the next stage where the layer's middle lies there.
    bool isBeyond = (2 * before + own) * count > 2 * total * (stage + 1);
    if (inStage > 0 && stage + 1 < count && isBeyond && !joined[static_cast<unsigned>(i)]) {
      ++stage;
      inStage = 0;
    }
    stages[call] = stage;
    ++inStage;
    before += own;
  }
  // Where fewer were reached, the last layers that may stand alone do.
  for (int64_t i = static_cast<int64_t>(calls.size()) - 1, at = count - 1;
       i >= 0 && at > stages[calls[static_cast<size_t>(i)]]; --i) {
    stages[calls[static_cast<size_t>(i)]] = at;
    at -= joined[static_cast<unsigned>(i)] ? 0 : 1;
  }
  if (stages[calls.front()] > 0)
    return step.emitError() << "cannot be cut into " << count
                            << " stages: layers that read the same keys and values stay together";

  for (Operation &op : step.getBody().front()) {
    bool isLayer = isa<func::CallOp>(op), hasWeight = false;
    int64_t latest = -1;
    for (Value operand : op.getOperands()) {
      latest = std::max(latest, stageOf(operand));
      hasWeight |= isa<WeightType>(operand.getType());
    }
    if (!isLayer)
      stages[&op] = isa<UseWeightOp, UseStateOp>(op) ? -1
                    : isa<func::ReturnOp>(op)        ? count - 1
                    : hasWeight && latest < 0        ? 0
                                                     : latest;
    if (isLayer && latest > stages[&op])
      return op.emitError() << "reads what a later stage computes";
    for (Value operand : op.getOperands()) {
      if (isa<RankedTensorType>(operand.getType()) && stageOf(operand) >= 0) {
        int64_t &last = lastReader.insert({operand, stages[&op]}).first->second;
        last = std::max(last, stages[&op]);
      }
    }
  }
  return success();
}

LogicalResult Stages::keep(int64_t stage) {
  Value batch = step.getArgument(0);
  OpBuilder builder(step.getContext());
  Operation *terminator = step.getBody().front().getTerminator();
  Value logits = terminator->getOperand(0);
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  // Values of earlier stages are received at the beginning, in their order, and handed on at the end with our own.
  builder.setInsertionPointToStart(&step.getBody().front());
  SmallVector<Value> handedOn;
  for (Operation &op : step.getBody().front())
    for (Value value : op.getResults()) {
      auto reader = lastReader.find(value);
      if (reader == lastReader.end() || value == logits)
        continue;
      int64_t from = stageOf(value), to = reader->second;
      if (from < stage && stage <= to) {
        Value received = ReceiveOp::create(builder, value.getLoc(), value.getType(), batch, number(stage - 1));
        value.replaceAllUsesWith(received);
        if (stage < to)
          handedOn.push_back(received);
      } else if (from == stage && stage < to) {
        handedOn.push_back(value);
      }
    }
  builder.setInsertionPoint(terminator);
  for (Value value : handedOn)
    SendOp::create(builder, value.getLoc(), value, batch, number(stage + 1));
  if (stage == count - 1) {
    for (int64_t other = 0; other + 1 < count; ++other)
      SendOp::create(builder, logits.getLoc(), logits, batch, number(other));
  } else {
    terminator->setOperand(0, ReceiveOp::create(builder, logits.getLoc(), logits.getType(), batch, number(count - 1)));
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front()))) {
    auto own = stages.find(&op);
    if (own != stages.end() && own->second >= 0 && own->second != stage && &op != terminator) {
      op.dropAllUses();
      op.erase();
    }
  }
  return success();
}

} // namespace

LogicalResult llmc::splitStages(ModuleOp module, int64_t stages, int64_t stage) {
  if (stages == 1)
    return success();
  Stages split(module.lookupSymbol<func::FuncOp>("step"), stages);
  if (failed(split.assign()) || failed(split.keep(stage)))
    return failure();
  LayerCalls calls(module);
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function.isPrivate() && calls.callsOf(function).empty())
      function.erase();
  eraseUnusedSymbols(module);
  return success();
}

FailureOr<llvm::DenseMap<Operation *, int64_t>> llmc::stagesOf(func::FuncOp step, int64_t stages) {
  Stages split(step, stages);
  if (failed(split.assign()))
    return failure();
  return split.ofOperations();
}
