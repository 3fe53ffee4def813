// RankCostsTest compares this with ShardModel on every model.
#include "passes/FunctionWork.h"
#include "dialects/llm/LlmShapes.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using sharding::Dimension;
using sharding::Dimensions;

namespace {

constexpr double rowElementBytes = 4; // rows are f32 between kernels

} // namespace

std::vector<double> FunctionWork::sizesByRank(const Dimension &dimension) {
  std::vector<double> sizes(ranks, 0);
  for (const Dimensions::Part &part : axes.partsOf(dimension))
    for (size_t rank = 0; rank < ranks; ++rank)
      sizes[rank] += static_cast<double>(part.partition ? (*part.partition)[rank].size() : part.size);
  return sizes;
}

const std::vector<double> &FunctionWork::elementsByRank(Value value) {
  std::unique_ptr<std::vector<double>> &known = elements[value];
  if (known)
    return *known;
  known = std::make_unique<std::vector<double>>(ranks, 1);
  for (const Dimension &dimension : rules.of(value))
    for (auto [all, size] : llvm::zip(*known, sizesByRank(dimension)))
      all *= size;
  return *known;
}

// Whether a rank does not run an operation, or does without this weight.
bool FunctionWork::hasNothingOf(Operation *op, Value weight, size_t rank) {
  if (auto experts = dyn_cast<ExpertLinearOp>(op);
      experts && experts.getBias() == weight && axes.isCut(rules.of(experts.getWeight())[2]))
    return rank % static_cast<size_t>(group.tensor) != 0; // of the terms of a sum one has the bias
  return op->getNumResults() > 0 && !rules.needsWholeRows(op) &&
         llvm::all_of(op->getResults(), [&](Value result) { return local(result, rank) == 0; });
}

size_t FunctionWork::useOfWeight(Value value) {
  auto [known, isNew] = useOf.try_emplace(value, uses.size());
  if (!isNew)
    return known->second;
  WeightUse use{value, elementsByRank(value), {}};
  for (const Dimension &dimension : rules.of(value))
    llvm::append_range(use.parts, axes.partsOf(dimension));
  for (size_t rank = 0; rank < ranks; ++rank)
    if (llvm::all_of(value.getUsers(), [&](Operation *user) { return hasNothingOf(user, value, rank); }))
      use.elements[rank] = 0;
  use.isMatrix = rules.of(value).size() > 1;
  uses.push_back(std::move(use));
  return uses.size() - 1;
}

// Sums over the group, once for all readers.
void FunctionWork::reduce(Value value, Work &work) {
  if (!reduced.insert(value).second)
    return;
  double elements = 0;
  for (size_t rank = 0; rank < ranks; ++rank)
    elements = std::max(elements, local(value, rank));
  work.collectives.push_back({sharding::CollectiveKind::AllReduce, elements});
  collectiveElements = std::max(collectiveElements, elements);
}

void FunctionWork::gather(Value value, Work &work) {
  if (!gathered.insert(value).second)
    return;
  work.collectives.push_back({sharding::CollectiveKind::AllGather, whole(value)});
  collectiveElements = std::max(collectiveElements, whole(value));
}

void FunctionWork::countCollectives(Operation &op, Work &work) {
  auto holdsOf = [&](Value value) { return holds.lookup(value); };
  auto isSum = [&](Value value) { return holdsOf(value) == Holds::Sum; };
  const bool mayBeSum = takesSums(&op, isSum), resultIsCut = op.getNumResults() > 0 && isCut(op.getResult(0));
  bool anySum = false, anySlots = false;
  for (OpOperand &operand : op.getOpOperands()) {
    if (isSum(operand.get()) && mayBeSum)
      anySum = true;
    else if (isSum(operand.get()))
      reduce(operand.get(), work);
    anySlots |= holdsOf(operand.get()) == Holds::Slots;
    if (rules.wantsWhole(operand, resultIsCut) && isCut(operand.get()))
      gather(operand.get(), work);
  }
  if (op.getNumResults() == 0 || rules.needsWholeRows(&op))
    return;
  Value result = op.getResult(0);
  if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
    if (axes.isCut(rules.of(embedding.getWeight())[1]))
      gather(result, work);
  } else if (auto linear = dyn_cast<LinearOp>(op)) {
    if (axes.isCut(rules.of(linear.getWeight())[1])) {
      if (linear.getBias())
        reduce(result, work);
      else
        holds[result] = Holds::Sum;
    }
  } else if (auto experts = dyn_cast<ExpertLinearOp>(op)) {
    if (axes.isCut(rules.of(experts.getWeight())[2]))
      holds[result] = Holds::Sum;
    else if (axes.isCutByExperts(rules.of(experts.getWeight())[0]))
      holds[result] = Holds::Slots;
  } else if (isa<CombineOp>(op)) {
    if (anySum || anySlots)
      holds[result] = Holds::Sum;
  } else if (anySum) {
    holds[result] = Holds::Sum;
  } else if (anySlots && op.getNumResults() == 1) {
    holds[result] = Holds::Slots;
  }
}

void FunctionWork::countOperation(Operation &op, Work &work) {
  work.ranks.resize(ranks);
  countCollectives(op, work);
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost || isa<RecordOp>(op))
    return;
  double flops = static_cast<double>(cost.flops(1, 1));
  auto countRowBytes = [&] {
    for (size_t rank = 0; rank < ranks; ++rank)
      for (ValueRange values : {ValueRange(op.getOperands()), ValueRange(op.getResults())})
        for (Value value : values)
          if (isRows(value))
            work.ranks[rank].rowBytes += rowElementBytes * local(value, rank);
  };
  auto share = [&](Value value, size_t rank) { return local(value, rank) / whole(value); };
  if (auto experts = dyn_cast<ExpertLinearOp>(op)) {
    size_t use = useOfWeight(experts.getWeight());
    ArrayRef<Dimension> dimensions = rules.of(experts.getWeight());
    work.experts = axes.sizeOf(dimensions[0]);
    work.chosen = channelsOf(experts.getExperts().getType());
    bool byExperts = axes.isCut(dimensions[0]);
    work.expertRanks = byExperts ? group.experts : 1;
    uses[use].isExperts = true;
    Product product{use, true, {}};
    const std::vector<double> held = sizesByRank(dimensions[0]), outer = sizesByRank(dimensions[1]),
                              inner = sizesByRank(dimensions[2]);
    auto all = static_cast<double>(axes.sizeOf(dimensions[1]) * axes.sizeOf(dimensions[2]));
    for (size_t rank = 0; rank < ranks; ++rank) {
      product.flops.push_back(flops / static_cast<double>(work.chosen) * outer[rank] * inner[rank] / all);
      work.ranks[rank].expertsHeld = held[rank];
    }
    work.products.push_back(std::move(product));
    countRowBytes();
    work.kernels +=
        kernelInputs.insert({experts.getInput().getAsOpaquePointer(), experts.getExperts().getAsOpaquePointer()})
            .second;
    return;
  }
  if (isa<LinearOp, HeadLinearOp>(op)) {
    size_t use = useOfWeight(op.getOperand(1));
    Product product{use, false, {}};
    for (size_t rank = 0; rank < ranks; ++rank)
      product.flops.push_back(flops * uses[use].elements[rank] / whole(op.getOperand(1)));
    work.products.push_back(std::move(product));
    countRowBytes();
    work.kernels += kernelInputs.insert({op.getOperand(0).getAsOpaquePointer(), nullptr}).second;
    return;
  }
  if (isa<AttentionOp, SelectPositionsOp>(op)) {
    Value query = op.getOperand(0);
    Value kv = *llvm::find_if(op.getOperands(), [](Value value) { return isa<KvType>(value.getType()); });
    for (int phase = 0; phase < sharding::numPhases; ++phase) {
      int64_t context = contexts[static_cast<size_t>(phase)];
      // Of the operands' rows the interface counts all; what is left is the cache, in elements of 4 bytes.
      double cache = static_cast<double>(cost.bytes(1, context) - cost.bytes(1, 0)) / 4;
      for (size_t rank = 0; rank < ranks; ++rank) {
        work.ranks[rank].attentionFlops[static_cast<size_t>(phase)] +=
            static_cast<double>(cost.flops(1, context)) * share(query, rank);
        work.ranks[rank].cacheElements[static_cast<size_t>(phase)] += cache * share(kv, rank);
      }
    }
    countRowBytes();
    ++work.kernels;
    return;
  }
  bool hasState = llvm::any_of(op.getOperands(), [](Value value) { return isa<RecurrentType>(value.getType()); });
  if (hasState) {
    countRowBytes();
    ++work.kernels;
    for (Value operand : op.getOperands())
      if (isa<RecurrentType>(operand.getType()))
        for (size_t rank = 0; rank < ranks; ++rank)
          work.ranks[rank].stateBytes += 4 * local(operand, rank);
  }
  work.kernels += isa<RouterOp, EmbeddingOp>(op);
  Value result = op.getNumResults() > 0 ? op.getResult(0) : Value();
  for (size_t rank = 0; rank < ranks && flops > 0 && result; ++rank)
    work.ranks[rank].flops[sharding::Bits16] +=
        flops * (isRows(result) && !rules.needsWholeRows(&op) ? share(result, rank) : 1);
}

// Values of rows from where they are made to their last reader.
void FunctionWork::countRowsAtOnce(Block &body) {
  llvm::DenseMap<Value, Operation *> last;
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      last[operand] = &op;
  std::vector<double> now(ranks, 0);
  rowsAtOnce = now;
  llvm::DenseMap<Operation *, SmallVector<Value>> ending;
  for (Operation &op : body) {
    if (isa<SelectRowsOp>(op))
      break; // what comes behind is on the rows of logits
    for (Value result : op.getResults())
      if (isRows(result)) {
        auto reader = last.find(result);
        ending[reader == last.end() ? &op : reader->second].push_back(result);
        for (size_t rank = 0; rank < ranks; ++rank)
          now[rank] += local(result, rank);
      }
    for (size_t rank = 0; rank < ranks; ++rank)
      rowsAtOnce[rank] = std::max(rowsAtOnce[rank], now[rank]);
    for (Value value : ending[&op])
      for (size_t rank = 0; rank < ranks; ++rank)
        now[rank] -= local(value, rank);
  }
}

FunctionWork::FunctionWork(func::FuncOp function, FunctionDimensions &rules, const sharding::Group &group,
                           ArrayRef<int64_t> contexts, const llvm::DenseMap<Operation *, int64_t> *stages)
    : rules(rules), axes(rules.axes()), group(group), ranks(static_cast<size_t>(group.ranks())), contexts(contexts) {
  axes.decide(group);
  Block &body = function.getBody().front();
  auto countState = [&](Value value) {
    double each = 1;
    if (auto kv = dyn_cast<KvType>(value.getType()))
      each = static_cast<double>(kv.getHeadDim() + kv.storedValueDim());
    else if (!isa<RecurrentType>(value.getType()))
      return;
    for (size_t rank = 0; rank < ranks; ++rank)
      states[value].push_back(each * local(value, rank));
  };
  for (Value argument : body.getArguments()) {
    countState(argument);
    if (isa<WeightType>(argument.getType()) && !argument.use_empty())
      useOfWeight(argument);
  }
  llvm::DenseSet<Value> logitRows;
  for (Operation &op : body) {
    if (isa<UseWeightOp, UseStateOp>(op)) {
      bool isOfLayer = llvm::any_of(op.getUsers(), [](Operation *user) { return isa<func::CallOp>(user); });
      if (isa<UseWeightOp>(op) && !isOfLayer && !op.use_empty())
        useOfWeight(op.getResult(0));
      else if (!isOfLayer)
        countState(op.getResult(0));
      continue;
    }
    bool onLogitRows =
        isa<SelectRowsOp>(op) || llvm::any_of(op.getOperands(), [&](Value value) { return logitRows.contains(value); });
    if (onLogitRows)
      for (Value result : op.getResults())
        logitRows.insert(result);
    int64_t stage = stages ? std::max<int64_t>(0, stages->lookup(&op)) : 0;
    Work &here = work[{stage, onLogitRows}];
    if (isa<func::CallOp>(op)) {
      here.ranks.resize(ranks);
      countCollectives(op, here);
    } else {
      countOperation(op, here);
    }
  }
  countRowsAtOnce(body);
}
