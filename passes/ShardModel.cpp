// Local shapes and explicit collectives: every function is rewritten for one rank by the sharding rules of its
// operators.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "passes/LayerCalls.h"
#include "passes/PartSymbols.h"
#include "passes/Passes.h"
#include "passes/ShardingRules.h"
#include "passes/SplitStages.h"
#include "llvm/ADT/TypeSwitch.h"

namespace llmc {
#define GEN_PASS_DEF_SHARDMODELPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using sharding::Dimension;
using sharding::Dimensions;
using sharding::Range;

namespace {

constexpr StringLiteral gridName = "ranks";
constexpr shard::GridAxis groupAxis = 1;

// What a rank has of a value where it is not simply the value's part.
enum class Holds {
  Part,
  Sum,       // a term of the sum over ranks
  Slots,     // the slots of its experts, zeros elsewhere
  DirtySlots // the slots of its experts, anything elsewhere
};

class FunctionSharder {
public:
  FunctionSharder(func::FuncOp function, const sharding::Group &group, size_t rank, PartSymbols &symbols)
      : function(function), dimensions(function), group(group), rank(rank), symbols(symbols) {
    dimensions.axes().decide(group);
  }
  LogicalResult run(ArrayRef<func::CallOp> calls);
  // Types of the arguments, null for those that this rank has nothing of.
  SmallVector<Type> localArgumentTypes();
  FunctionDimensions &rules() { return dimensions; }

private:
  // What the operands of an operation are, besides parts.
  struct Read {
    bool sum = false, slots = false, dirty = false;
  };
  LogicalResult rewrite(Operation &op);
  Read readOperands(Operation &op);
  void shareTable(EmbeddingOp op);
  void shareProduct(LinearOp op);
  void shareExperts(ExpertLinearOp op);
  LogicalResult passOn(Operation &op, const Read &read);
  void localizeAttributes(Operation &op);
  Value replaceByZeros(Operation &op);
  Value reduced(Value value);
  Value gathered(Value value);
  Value batch();
  Type localType(Value value);
  bool isAbsent(Value value) { return !localType(value); }
  void sliceResult(Operation *op, Value whole);
  Value localExperts(ExpertLinearOp op);
  Holds holdsOf(Value value) {
    auto known = holds.find(value);
    return known == holds.end() ? Holds::Part : known->second;
  }

  func::FuncOp function;
  FunctionDimensions dimensions;
  sharding::Group group;
  size_t rank;
  PartSymbols &symbols;
  llvm::DenseMap<Value, Type> wholeTypes; // of values whose type is local already
  llvm::DenseMap<Value, Holds> holds;
  llvm::DenseMap<Value, Value> reducedOf, gatheredOf, localExpertsOf;
  SmallVector<std::pair<BlockArgument, std::string>> newWeights; // arguments, and the symbols that calls pass
  SmallVector<Operation *> absentOps;
};

//===-- values
//------------------------------------------------------------------------------------------------------===//

// Null where the rank has nothing of the value.
Type FunctionSharder::localType(Value value) {
  auto known = wholeTypes.find(value);
  Type whole = known == wholeTypes.end() ? value.getType() : known->second;
  ArrayRef<Dimension> own = dimensions.of(value);
  if (own.empty() || !dimensions.isCut(value))
    return whole;
  SmallVector<int64_t> sizes;
  for (const Dimension &dimension : own)
    sizes.push_back(dimensions.axes().localSize(dimension, rank));
  if (llvm::is_contained(sizes, 0))
    return Type();
  return llvm::TypeSwitch<Type, Type>(whole)
      .Case<RankedTensorType>([&](RankedTensorType rows) {
        sizes.insert(sizes.begin(), ShapedType::kDynamic);
        return RankedTensorType::get(sizes, rows.getElementType());
      })
      .Case<WeightType>([&](WeightType weight) { return WeightType::get(weight.getContext(), sizes); })
      .Case<KvType>([&](KvType kv) {
        return KvType::get(sizes[0], kv.getHeadDim(), kv.getElementType(), kv.getValueDim(), kv.getLatent(),
                           kv.getEvery());
      })
      .Case<RecurrentType>(
          [&](RecurrentType state) { return RecurrentType::get(state.getContext(), sizes[0], sizes[1], sizes[2]); });
}

SmallVector<Type> FunctionSharder::localArgumentTypes() {
  SmallVector<Type> types;
  for (BlockArgument argument : function.getArguments())
    types.push_back(localType(argument));
  return types;
}

Value FunctionSharder::batch() {
  for (BlockArgument argument : function.getArguments())
    if (isa<BatchType>(argument.getType()))
      return argument;
  llvm_unreachable("every function has the batch before it is rewritten");
}

// Collectives stand right behind what they read, so that all users share them.
Value FunctionSharder::reduced(Value value) {
  Value &known = reducedOf[value];
  if (!known) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    known = shard::AllReduceOp::create(builder, value.getLoc(), value.getType(), gridName, {groupAxis}, value);
    dimensions.copy(value, known);
    wholeTypes[known] = wholeTypes.lookup(value);
  }
  return known;
}

Value FunctionSharder::gathered(Value value) {
  Value &known = gatheredOf[value];
  if (known)
    return known;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  SmallVector<Attribute> segments;
  int64_t begin = 0;
  for (const Dimensions::Part &part : dimensions.axes().partsOf(dimensions.rowOf(value))) {
    SmallVector<int64_t> ranges;
    for (size_t r = 0; r < static_cast<size_t>(group.ranks()); ++r) {
      Range range = part.partition ? (*part.partition)[r] : Range{0, part.size};
      ranges.append({begin + range.begin, begin + range.end});
    }
    segments.push_back(builder.getDenseI64ArrayAttr(ranges));
    begin += part.size;
  }
  Type whole = wholeTypes.lookup(value);
  known = AllGatherOp::create(builder, value.getLoc(), whole, batch(), isAbsent(value) ? Value() : value,
                              builder.getArrayAttr(segments));
  return known;
}

//===-- operators
//---------------------------------------------------------------------------------------------------===//

void FunctionSharder::sliceResult(Operation *op, Value whole) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  SmallVector<Value> parts;
  int64_t begin = 0;
  for (const Dimensions::Part &part : dimensions.axes().partsOf(dimensions.of(whole)[0])) {
    Range range = part.partition ? (*part.partition)[rank] : Range{0, part.size};
    if (range.size() > 0)
      parts.push_back(SliceOp::create(builder, op->getLoc(),
                                      RankedTensorType::get({ShapedType::kDynamic, range.size()}, builder.getF32Type()),
                                      whole, builder.getI64IntegerAttr(begin + range.begin)));
    begin += part.size;
  }
  if (parts.empty())
    return;
  Value local = parts.front();
  if (parts.size() > 1)
    local = ConcatOp::create(builder, op->getLoc(), localType(whole), parts);
  llvm::SmallPtrSet<Operation *, 4> own;
  for (Value part : parts)
    own.insert(part.getDefiningOp());
  // What stands for the value from here on is its part.
  dimensions.copy(whole, local);
  wholeTypes[local] = whole.getType();
  whole.replaceAllUsesExcept(local, own);
}

// Numbers that count from the rank's first expert.
Value FunctionSharder::localExperts(ExpertLinearOp op) {
  Value &known = localExpertsOf[op.getExperts()];
  if (known)
    return known;
  const sharding::Partition partition = *dimensions.axes().partsOf(dimensions.of(op.getWeight())[0]).front().partition;
  Block &body = function.getBody().front();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfterValue(op.getExperts());
  auto type = WeightType::get(op.getContext(), {1});
  Value first;
  std::string symbol = symbols.firstExpert(partition);
  if (function.getSymName() == "step") {
    first = UseWeightOp::create(builder, op.getLoc(), type, symbol);
  } else {
    BlockArgument argument = body.addArgument(type, op.getLoc());
    newWeights.push_back({argument, symbol});
    first = argument;
  }
  known =
      AffineOp::create(builder, op.getLoc(), op.getExperts().getType(), op.getExperts(), Value(), first, UnitAttr());
  return known;
}

// Sums are added up and parts are put together where the operator needs it.
FunctionSharder::Read FunctionSharder::readOperands(Operation &op) {
  auto isSum = [&](Value value) { return holdsOf(value) == Holds::Sum; };
  const bool mayBeSum = takesSums(&op, isSum),
             resultIsCut = op.getNumResults() > 0 && dimensions.isCut(op.getResult(0));
  Read read;
  for (OpOperand &operand : op.getOpOperands()) {
    Value value = operand.get();
    if (isSum(value) && !mayBeSum)
      operand.set(reduced(value));
    read.sum |= isSum(value) && mayBeSum;
    read.slots |= holdsOf(value) == Holds::Slots || holdsOf(value) == Holds::DirtySlots;
    read.dirty |= holdsOf(value) == Holds::DirtySlots;
    if (dimensions.wantsWhole(operand, resultIsCut) && dimensions.isCut(value))
      operand.set(gathered(value));
  }
  return read;
}

// For a sum of which this rank has no terms.
Value FunctionSharder::replaceByZeros(Operation &op) {
  OpBuilder builder(&op);
  Value result = op.getResult(0);
  Value zeros = FillOp::create(builder, op.getLoc(), localType(result), batch(), builder.getF32FloatAttr(0.0f));
  dimensions.copy(result, zeros);
  wholeTypes[zeros] = wholeTypes.lookup(result);
  result.replaceAllUsesWith(zeros);
  absentOps.push_back(&op);
  return zeros;
}

// Of the channels that the rank has, which are gathered at once.
void FunctionSharder::shareTable(EmbeddingOp op) {
  Value result = op.getResult();
  Dimension channels = dimensions.of(op.getWeight())[1];
  if (!dimensions.axes().isCut(channels))
    return;
  dimensions.set(result, channels);
  if (Type local = localType(result))
    result.setType(local);
  else
    absentOps.push_back(op);
  Value whole = gathered(result);
  result.replaceAllUsesExcept(whole, whole.getDefiningOp());
}

void FunctionSharder::shareProduct(LinearOp op) {
  if (!dimensions.axes().isCut(dimensions.of(op.getWeight())[1]))
    return;
  Value bias = op.getBias(), result = op.getResult();
  op.getBiasMutable().clear();
  if (isAbsent(op.getInput()))
    result = replaceByZeros(*op);
  holds[result] = Holds::Sum;
  if (!bias)
    return;
  Value sum = reduced(result);
  OpBuilder builder(op.getContext());
  builder.setInsertionPointAfterValue(sum);
  Value biased = AffineOp::create(builder, op.getLoc(), sum.getType(), sum, Value(), bias, UnitAttr());
  result.replaceUsesWithIf(biased, [&](OpOperand &use) { return use.getOwner() != sum.getDefiningOp(); });
}

void FunctionSharder::shareExperts(ExpertLinearOp op) {
  bool byExperts = dimensions.axes().isCutByExperts(dimensions.of(op.getWeight())[0]);
  bool isSum = dimensions.axes().isCut(dimensions.of(op.getWeight())[2]);
  Value result = op.getResult();
  if (isAbsent(op.getWeight())) {
    result = replaceByZeros(*op);
  } else {
    if (byExperts)
      op.getExpertsMutable().assign(localExperts(op));
    // Of the terms of a sum one has the bias.
    if (isSum && rank % static_cast<size_t>(group.tensor) != 0)
      op.getBiasMutable().clear();
  }
  if (byExperts || isSum)
    holds[result] = isSum ? Holds::Sum : Holds::Slots;
}

// What the rank has of the result, by what it has of the operands.
LogicalResult FunctionSharder::passOn(Operation &op, const Read &read) {
  if (op.getNumResults() != 1)
    return success();
  Holds &result = holds.try_emplace(op.getResult(0), Holds::Part).first->second;
  if (isa<CombineOp>(op)) {
    if (read.dirty)
      return op.emitOpError() << "adds up slots of experts that other ranks hold";
    if (read.sum || read.slots)
      result = Holds::Sum;
    return success();
  }
  auto scale = dyn_cast<ScaleOp>(op);
  bool keepsZero = isa<MultiplyOp>(op) || (scale && scale.getOffset().isZero());
  if (read.sum)
    result = Holds::Sum;
  else if (read.slots)
    result = keepsZero && !read.dirty ? Holds::Slots : Holds::DirtySlots;
  return success();
}

// What an operation says of the rows that it reads, of their part.
void FunctionSharder::localizeAttributes(Operation &op) {
  if (auto slice = dyn_cast<SliceOp>(op)) {
    ArrayRef<Dimension> from = dimensions.of(slice.getInput());
    if (from.size() != 1 || !dimensions.isCut(slice.getInput()))
      return;
    Dimension before = dimensions.axes().slice(from[0], 0, static_cast<int64_t>(slice.getBegin()));
    slice.setBegin(static_cast<uint64_t>(dimensions.axes().localSize(before, rank)));
  } else if (auto concat = dyn_cast<ConcatOp>(op)) {
    for (unsigned i = concat.getNumOperands(); i-- > 0;)
      if (isAbsent(concat.getOperand(i)))
        op.eraseOperand(i);
  } else if (auto attention = dyn_cast<AttentionOp>(op); attention && attention.getAlibi()) {
    if (!dimensions.isCut(attention.getQuery()))
      return;
    Range heads = (*dimensions.axes().partsOf(dimensions.of(attention.getQuery())[0]).front().partition)[rank];
    ArrayRef<float> slopes = *attention.getAlibi();
    attention.setAlibi(
        SmallVector<float>(slopes.slice(static_cast<size_t>(heads.begin), static_cast<size_t>(heads.size()))));
  }
}

LogicalResult FunctionSharder::rewrite(Operation &op) {
  const Read read = readOperands(op);
  const bool isWhole = dimensions.needsWholeRows(&op);
  for (Value result : op.getResults())
    wholeTypes.try_emplace(result, result.getType());
  if (isWhole) {
    if (dimensions.isCut(op.getResult(0)))
      sliceResult(&op, op.getResult(0));
    return success();
  }
  if (op.getNumResults() > 0 && llvm::all_of(op.getResults(), [&](Value value) { return isAbsent(value); })) {
    absentOps.push_back(&op);
    return success();
  }
  for (Value result : op.getResults())
    if (Type local = localType(result))
      result.setType(local);
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](EmbeddingOp embedding) { return shareTable(embedding), success(); })
      .Case([&](LinearOp linear) { return shareProduct(linear), success(); })
      .Case([&](ExpertLinearOp experts) { return shareExperts(experts), success(); })
      .Default([&](Operation *other) {
        localizeAttributes(*other);
        return passOn(*other, read);
      });
}

LogicalResult FunctionSharder::run(ArrayRef<func::CallOp> calls) {
  Block &body = function.getBody().front();
  SmallVector<Type> types = localArgumentTypes();
  for (auto [argument, type] : llvm::zip(body.getArguments(), types)) {
    wholeTypes[argument] = argument.getType();
    if (type)
      argument.setType(type);
  }
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (isa<UseWeightOp, UseStateOp>(op))
      continue;
    if (failed(rewrite(op)))
      return failure();
  }
  for (Operation *op : llvm::reverse(absentOps))
    op->erase();
  // Weights and states that the rank has nothing of, or does not need.
  llvm::BitVector absent(body.getNumArguments());
  for (auto [i, type] : llvm::enumerate(types)) {
    BlockArgument argument = body.getArgument(static_cast<unsigned>(i));
    absent[static_cast<unsigned>(i)] = !type || (isa<WeightType>(argument.getType()) && argument.use_empty());
  }
  body.eraseArguments(absent);
  absent.resize(static_cast<unsigned>(types.size()));
  for (func::CallOp call : calls)
    call->eraseOperands(absent);
  OpBuilder builder(function.getContext());
  for (func::CallOp call : calls)
    for (auto &[argument, symbol] : newWeights) {
      builder.setInsertionPoint(call);
      call->insertOperands(call.getNumOperands(),
                           UseWeightOp::create(builder, call.getLoc(), argument.getType(), symbol).getResult());
    }
  updateFunctionType(function);
  return success();
}

//===-- the pass
//----------------------------------------------------------------------------------------------------===//

// What makes rows out of nothing needs the batch.
void passBatch(func::FuncOp function, ArrayRef<func::CallOp> calls, Value batch) {
  Block &body = function.getBody().front();
  if (llvm::any_of(body.getArguments(), [](BlockArgument argument) { return isa<BatchType>(argument.getType()); }))
    return;
  body.addArgument(BatchType::get(function.getContext()), function.getLoc());
  for (func::CallOp call : calls)
    call->insertOperands(call.getNumOperands(), batch);
  updateFunctionType(function);
}

struct ShardModel : llmc::impl::ShardModelPassBase<ShardModel> {
  using ShardModelPassBase::ShardModelPassBase;

  void runOnOperation() override {
    sharding::Group group{experts, tensor};
    if (group.ranks() * stages == 1)
      return;
    if (failed(check(group)) || failed(share(group)))
      signalPassFailure();
  }

private:
  LogicalResult check(const sharding::Group &group) {
    int64_t stageCount = stages, wanted = rank;
    if (group.experts < 1 || group.tensor < 1 || stageCount < 1 || wanted < 0 || wanted >= group.ranks() * stageCount)
      return getOperation().emitError() << "rank " << wanted << " of " << stageCount << " stages of " << group.experts
                                        << " x " << group.tensor << " ranks does not exist";
    return success();
  }

  LogicalResult share(const sharding::Group &group) {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step || step.isExternal())
      return module.emitError() << "has no function @step to share";
    int64_t stage = rank / group.ranks(), inGroup = rank % group.ranks();
    if (failed(splitStages(module, stages, stage)))
      return failure();
    OpBuilder builder(module.getContext());
    builder.setInsertionPointToStart(module.getBody());
    shard::GridOp::create(builder, module.getLoc(), gridName, {stages, group.ranks()});
    for (auto [name, value] : {std::pair<StringRef, int64_t>{"llmc.rank", inGroup},
                               {"llmc.ranks", group.ranks()},
                               {"llmc.stage", stage},
                               {"llmc.stages", stages}})
      module->setAttr(name, builder.getI64IntegerAttr(value));

    separateWeightUses(step);
    LayerCalls calls(module);
    PartSymbols symbols(module, static_cast<size_t>(inGroup));
    Value batch = step.getArgument(0);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function == step)
        continue;
      passBatch(function, calls.callsOf(function), batch);
      FunctionSharder sharder(function, group, static_cast<size_t>(inGroup), symbols);
      SmallVector<Type> types = sharder.localArgumentTypes();
      for (func::CallOp call : calls.callsOf(function))
        if (failed(takeOperands(call, sharder, types, symbols)))
          return failure();
      if (failed(sharder.run(calls.callsOf(function))))
        return failure();
    }
    FunctionSharder sharder(step, group, static_cast<size_t>(inGroup), symbols);
    for (auto use : step.getOps<UseWeightOp>())
      if (use->hasOneUse() && !isa<func::CallOp>(*use->user_begin()))
        symbols.take(use, sharder.rules().axes(), sharder.rules().of(use.getResult()));
    if (failed(sharder.run({})))
      return failure();
    symbols.finish();
    return success();
  }

  // The symbols behind a call's operands become what the callee has of them.
  LogicalResult takeOperands(func::CallOp call, FunctionSharder &callee, ArrayRef<Type> types, PartSymbols &symbols) {
    auto function = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
    for (auto [i, type] : llvm::enumerate(types)) {
      Value operand = call.getOperand(static_cast<unsigned>(i));
      if (!type)
        continue;
      BlockArgument argument = function.getArgument(static_cast<unsigned>(i));
      if (auto use = operand.getDefiningOp<UseWeightOp>())
        symbols.take(use, callee.rules().axes(), callee.rules().of(argument));
      if (auto use = operand.getDefiningOp<UseStateOp>())
        if (failed(symbols.take(use, type)))
          return failure();
    }
    return success();
  }
};

} // namespace
