// The same decisions as ShardModel's, counted instead of carried out: RankCostsTest compares the two on every model.
// What a function does is kept per group of ranks; weights differ from layer to layer in how they are stored only.
#include "passes/RankCosts.h"
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "passes/ShardingRules.h"
#include "passes/SplitStages.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using sharding::Dimension;
using sharding::Dimensions;
using sharding::WeightBits;

namespace {

constexpr double rowElementBytes = 4; // rows are f32 between kernels

struct StoredWeight {
  double bytes = 0, elements = 0;
  WeightBits bits() const {
    double each = 8 * bytes / elements;
    return each < 6 ? sharding::Bits4 : each < 12 ? sharding::Bits8 : sharding::Bits16;
  }
};

// A weight as one function uses it.
struct WeightUse {
  Value value;                                              // argument of a layer, use_weight of the step
  std::vector<double> elements;                             // by rank of the group
  std::vector<Dimensions::Part> parts;                      // of all its dimensions, one behind the other
  bool isMatrix = false, isExperts = false, isRead = false; // read: by every step
};

// A product with a weight.
struct Product {
  size_t use;
  bool isExperts;
  std::vector<double> flops; // by rank; of a row, or of a row's slot
};

// Operations of a step that run on rows of the same kind.
struct Work {
  std::vector<Product> products;
  std::vector<sharding::RankWork> ranks; // but for weights
  std::vector<sharding::Collective> collectives;
  int64_t kernels = 0, experts = 0, chosen = 0, expertRanks = 1;
  bool isEmpty() const { return products.empty() && collectives.empty() && kernels == 0; }
};

double elementsOf(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0,
                         [](double product, int64_t size) { return product * static_cast<double>(size); });
}

std::string withoutLayer(StringRef name) {
  return name.consume_front("layers.") ? name.split('.').second.str() : name.str();
}

bool isRows(Value value) { return isa<RankedTensorType>(value.getType()); }

// Operands of which FunctionSharder::rewrite takes what the rank has; it gathers others.
bool wantsWhole(OpOperand &operand, FunctionDimensions &rules, function_ref<bool(Value)> isCut) {
  Operation *op = operand.getOwner();
  if (!isRows(operand.get()))
    return false;
  if (rules.needsWholeRows(op))
    return true;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<LinearOp, HeadLinearOp, ActivationOp, GatedActivationOp, AddOp, ScaleOp, SoftcapOp, ClampOp,
            PositionScaleOp, SelectRowsOp, XieluOp, AffineOp, RmsNormOp, LayerNormOp, SliceOp, ConcatOp, RepeatHeadsOp,
            SplitHeadsOp, MergeHeadsOp, KvAppendOp, ShortConvOp, LinearAttentionOp>([](auto) { return false; })
      .Case<MultiplyOp>(
          [&](MultiplyOp multiply) { return operand.getOperandNumber() == 1 && !isCut(multiply.getResult()); })
      .Case<ExpertLinearOp>([&](ExpertLinearOp experts) { return operand.get() == experts.getExperts(); })
      .Case<CombineOp, RopeOp>([&](auto) { return operand.getOperandNumber() == 1; })
      .Case<AttentionOp>([&](AttentionOp) { return operand.getOperandNumber() != 0; })
      .Default([](Operation *) { return true; });
}

} // namespace

//===-- functions
//---------------------------------------------------------------------------------------------------===//

// A layer's function, or the step.
struct RankCosts::Function {
  explicit Function(func::FuncOp op) : op(op), rules(op) {}
  func::FuncOp op;
  FunctionDimensions rules; // nothing is decided yet
};

// A function as the ranks of one group share it.
struct RankCosts::Share {
  Share(Function &function, const sharding::Group &group, ArrayRef<int64_t> contexts,
        const llvm::DenseMap<Operation *, int64_t> *stages);

  // Of a layer there is one; of the step, by stage and whether it runs on the rows of logits.
  std::map<std::pair<int64_t, bool>, Work> work;
  std::vector<WeightUse> uses;
  llvm::DenseMap<Value, size_t> useOf;
  // By argument or use_state: of a position in a cache, of a sequence otherwise.
  llvm::MapVector<Value, std::vector<double>> states;
  std::vector<double> rowsAtOnce; // elements of a row
  double collectiveElements = 0;

private:
  bool isCut(Value value) {
    return llvm::any_of(rules.of(value), [&](const Dimension &dimension) { return axes.isCut(dimension); });
  }
  // Elements that a rank has, of a row where the value is rows.
  double local(Value value, size_t rank) { return elementsByRank(value)[rank]; }
  const std::vector<double> &elementsByRank(Value value);
  double whole(Value value) {
    double elements = 1;
    for (const Dimension &dimension : rules.of(value))
      elements *= static_cast<double>(axes.sizeOf(dimension));
    return elements;
  }
  size_t useOfWeight(Value value);
  void countOperation(Operation &op, Work &work);
  void countCollectives(Operation &op, Work &work);
  void reduce(Value value, Work &work);
  void gather(Value value, Work &work);
  void countRowsAtOnce(Block &body);

  std::vector<double> sizesByRank(const Dimension &dimension);

  FunctionDimensions &rules;
  Dimensions axes; // with what is cut
  llvm::DenseMap<Value, std::unique_ptr<std::vector<double>>> elements;
  sharding::Group group;
  size_t ranks;
  ArrayRef<int64_t> contexts;
  enum class Holds { Part, Sum, Slots };
  llvm::DenseMap<Value, Holds> holds;
  llvm::DenseSet<Value> reduced, gathered;
  std::set<std::pair<void *, void *>> kernelInputs; // products of one input are one kernel
};

std::vector<double> RankCosts::Share::sizesByRank(const Dimension &dimension) {
  std::vector<double> sizes(ranks, 0);
  for (const Dimensions::Part &part : axes.partsOf(dimension))
    for (size_t rank = 0; rank < ranks; ++rank)
      sizes[rank] += static_cast<double>(part.partition ? (*part.partition)[rank].size() : part.size);
  return sizes;
}

const std::vector<double> &RankCosts::Share::elementsByRank(Value value) {
  std::unique_ptr<std::vector<double>> &known = elements[value];
  if (known)
    return *known;
  known = std::make_unique<std::vector<double>>(ranks, 1);
  for (const Dimension &dimension : rules.of(value))
    for (auto [all, size] : llvm::zip(*known, sizesByRank(dimension)))
      all *= size;
  return *known;
}

size_t RankCosts::Share::useOfWeight(Value value) {
  auto [known, isNew] = useOf.try_emplace(value, uses.size());
  if (!isNew)
    return known->second;
  WeightUse use{value, elementsByRank(value), {}};
  for (const Dimension &dimension : rules.of(value))
    llvm::append_range(use.parts, axes.partsOf(dimension));
  use.isMatrix = rules.of(value).size() > 1;
  uses.push_back(std::move(use));
  return uses.size() - 1;
}

// Sums over the group, once for all readers.
void RankCosts::Share::reduce(Value value, Work &work) {
  if (!reduced.insert(value).second)
    return;
  double elements = 0;
  for (size_t rank = 0; rank < ranks; ++rank)
    elements = std::max(elements, local(value, rank));
  work.collectives.push_back({sharding::CollectiveKind::AllReduce, elements});
  collectiveElements = std::max(collectiveElements, elements);
}

void RankCosts::Share::gather(Value value, Work &work) {
  if (!gathered.insert(value).second)
    return;
  work.collectives.push_back({sharding::CollectiveKind::AllGather, whole(value)});
  collectiveElements = std::max(collectiveElements, whole(value));
}

void RankCosts::Share::countCollectives(Operation &op, Work &work) {
  auto holdsOf = [&](Value value) { return holds.lookup(value); };
  auto isSum = [&](Value value) { return holdsOf(value) == Holds::Sum; };
  bool takesSums = llvm::TypeSwitch<Operation *, bool>(&op)
                       .Case<AddOp>([&](AddOp add) { return isSum(add.getLhs()) && isSum(add.getRhs()); })
                       .Case<ScaleOp>([](ScaleOp scale) { return scale.getOffset().isZero(); })
                       .Case<MultiplyOp>([&](MultiplyOp multiply) { return !isSum(multiply.getRhs()); })
                       .Case<CombineOp, SelectRowsOp>([](auto) { return true; })
                       .Default([](Operation *) { return false; });
  bool anySum = false, anySlots = false;
  for (OpOperand &operand : op.getOpOperands()) {
    if (isSum(operand.get()) && takesSums)
      anySum = true;
    else if (isSum(operand.get()))
      reduce(operand.get(), work);
    anySlots |= holdsOf(operand.get()) == Holds::Slots;
    if (wantsWhole(operand, rules, [&](Value value) { return isCut(value); }) && isCut(operand.get()))
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

void RankCosts::Share::countOperation(Operation &op, Work &work) {
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
    uses[use].isRead = true;
    Product product{use, false, {}};
    for (size_t rank = 0; rank < ranks; ++rank)
      product.flops.push_back(flops * uses[use].elements[rank] / whole(op.getOperand(1)));
    work.products.push_back(std::move(product));
    countRowBytes();
    work.kernels += kernelInputs.insert({op.getOperand(0).getAsOpaquePointer(), nullptr}).second;
    return;
  }
  for (Value operand : op.getOperands())
    if (isa<WeightType>(operand.getType()) && !isa<EmbeddingOp, PositionEmbeddingOp>(op))
      uses[useOfWeight(operand)].isRead = true;
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
void RankCosts::Share::countRowsAtOnce(Block &body) {
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

RankCosts::Share::Share(Function &function, const sharding::Group &group, ArrayRef<int64_t> contexts,
                        const llvm::DenseMap<Operation *, int64_t> *stages)
    : rules(function.rules), axes(function.rules.axes()), group(group), ranks(static_cast<size_t>(group.ranks())),
      contexts(contexts) {
  axes.decide(group);
  Block &body = function.op.getBody().front();
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

//===-- the model
//---------------------------------------------------------------------------------------------------===//

struct RankCosts::Model {
  ModuleOp module;
  func::FuncOp step;
  std::array<int64_t, sharding::numPhases> contexts;
  llvm::StringMap<StoredWeight> weights;
  llvm::StringMap<int64_t> numUses; // of symbols, in the step
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::vector<func::CallOp> calls;
  int64_t vocabulary = 0;
  std::map<std::tuple<std::string, int64_t, int64_t>, std::unique_ptr<Share>> shares;

  Share &shareOf(StringRef name, const sharding::Group &group);
  void addWork(const Work &work, const Share &share, function_ref<StringRef(Value)> symbolOf, sharding::Unit unit,
               std::vector<sharding::Unit> &units);
  StringRef symbolOf(Value value) {
    if (auto use = value.getDefiningOp<UseWeightOp>())
      return use.getSymbol();
    auto state = value.getDefiningOp<UseStateOp>();
    return state ? state.getSymbol() : StringRef();
  }
};

RankCosts::Share &RankCosts::Model::shareOf(StringRef name, const sharding::Group &group) {
  std::unique_ptr<Share> &known = shares[{name.str(), group.experts, group.tensor}];
  if (!known)
    known = std::make_unique<Share>(*functions.at(name.str()), group, contexts, nullptr);
  return *known;
}

// One more layer, on top of units of the same numbers where the last is one.
void RankCosts::Model::addWork(const Work &work, const Share &share, function_ref<StringRef(Value)> symbolOf,
                               sharding::Unit unit, std::vector<sharding::Unit> &units) {
  unit.experts = work.experts;
  unit.chosen = work.chosen;
  unit.expertRanks = work.expertRanks;
  unit.kernels = work.kernels;
  unit.ranks = work.ranks;
  unit.collectives = work.collectives;
  llvm::DenseSet<size_t> counted;
  for (const Product &product : work.products) {
    const WeightUse &use = share.uses[product.use];
    const StoredWeight &weight = weights[symbolOf(use.value)];
    bool isFirst = counted.insert(product.use).second;
    for (size_t rank = 0; rank < unit.ranks.size(); ++rank) {
      sharding::RankWork &own = unit.ranks[rank];
      double bytes = isFirst ? weight.bytes * use.elements[rank] / weight.elements : 0;
      (product.isExperts ? own.expertBytes : own.weightBytes) += bytes;
      (product.isExperts ? own.expertFlops : own.flops)[weight.bits()] += product.flops[rank];
    }
  }
  auto isSame = [&](const sharding::Unit &other) {
    if (other.name != unit.name || other.stage != unit.stage || other.kernels != unit.kernels)
      return false;
    for (auto [a, b] : llvm::zip(other.ranks, unit.ranks))
      if (a.weightBytes != b.weightBytes || a.expertBytes != b.expertBytes)
        return false;
    return true;
  };
  if (auto known = llvm::find_if(units, isSame); known != units.end())
    ++known->count;
  else
    units.push_back(std::move(unit));
}

RankCosts::RankCosts(ModuleOp module, llvm::StringMap<double> weightBytes,
                     std::array<int64_t, sharding::numPhases> contexts)
    : model_(std::make_unique<Model>()) {
  model_->module = module;
  model_->contexts = contexts;
  model_->step = module.lookupSymbol<func::FuncOp>("step");
  for (auto weight : module.getOps<WeightOp>()) {
    StoredWeight &stored = model_->weights[weight.getSymName()];
    stored.elements = elementsOf(cast<WeightType>(weight.getType()).getShape());
    auto known = weightBytes.find(weight.getSymName());
    stored.bytes = known == weightBytes.end() ? 4 * stored.elements : known->second;
  }
  // One user for every use of a weight: a tied embedding is cut in two ways.
  for (auto use : llvm::make_early_inc_range(model_->step.getOps<UseWeightOp>()))
    for (OpOperand &operand : llvm::make_early_inc_range(use.getResult().getUses()))
      if (!use->hasOneUse()) {
        OpBuilder builder(use);
        operand.set(builder.clone(*use)->getResult(0));
      }
  for (auto use : model_->step.getOps<UseWeightOp>())
    ++model_->numUses[use.getSymbol()];
  for (auto function : module.getOps<func::FuncOp>())
    model_->functions[function.getSymName().str()] = std::make_unique<Function>(function);
  model_->calls.assign(model_->step.getOps<func::CallOp>().begin(), model_->step.getOps<func::CallOp>().end());
  model_->vocabulary = channelsOf(model_->step.getFunctionType().getResult(0));
}

RankCosts::~RankCosts() = default;

int64_t RankCosts::layers() const { return static_cast<int64_t>(model_->calls.size()); }

int64_t RankCosts::experts() const {
  int64_t most = 0;
  model_->module.walk(
      [&](ExpertLinearOp op) { most = std::max(most, cast<WeightType>(op.getWeight().getType()).getShape()[0]); });
  return most;
}

FailureOr<sharding::GridCosts> RankCosts::of(const sharding::Grid &grid) {
  Model &model = *model_;
  llvm::DenseMap<Operation *, int64_t> stages;
  if (grid.stages > 1) {
    auto assigned = stagesOf(model.step, grid.stages);
    if (failed(assigned))
      return failure();
    stages = std::move(*assigned);
  }
  auto stageOf = [&](Operation *op) { return grid.stages > 1 ? stages.lookup(op) : 0; };
  sharding::GridCosts costs;
  costs.grid = grid;
  costs.vocabulary = model.vocabulary;
  costs.held.resize(static_cast<size_t>(grid.ranks()));
  auto inGroup = static_cast<size_t>(grid.group.ranks());

  llvm::StringMap<double> heldBytes; // of each weight, by all ranks
  // Symbols that a stage has already, cut as they are.
  std::vector<std::map<std::string, std::vector<const WeightUse *>>> seen(static_cast<size_t>(grid.stages));
  auto hold = [&](int64_t stage, StringRef symbol, const WeightUse &use) {
    if (symbol.empty())
      return;
    if (model.numUses.lookup(symbol) > 1) {
      auto &known = seen[static_cast<size_t>(stage)][symbol.str()];
      auto isSame = [&](const WeightUse *other) {
        return std::equal(other->parts.begin(), other->parts.end(), use.parts.begin(), use.parts.end(),
                          [](const Dimensions::Part &a, const Dimensions::Part &b) {
                            return a.size == b.size && a.partition == b.partition;
                          });
      };
      if (llvm::any_of(known, isSame))
        return;
      known.push_back(&use);
    }
    const StoredWeight &weight = model.weights[symbol];
    double &all = heldBytes[symbol];
    for (size_t rank = 0; rank < inGroup; ++rank) {
      sharding::Held &held = costs.held[static_cast<size_t>(stage) * inGroup + rank];
      double bytes = weight.bytes * use.elements[rank] / weight.elements;
      (use.isExperts ? held.experts : use.isMatrix ? held.matrices : held.vectors) += bytes;
      all += bytes;
    }
  };
  std::vector<std::set<std::string>> statesSeen(static_cast<size_t>(grid.stages));
  auto holdState = [&](int64_t stage, StringRef symbol, Value type, const std::vector<double> &elements) {
    if (symbol.empty() || !statesSeen[static_cast<size_t>(stage)].insert(symbol.str()).second)
      return;
    for (size_t rank = 0; rank < inGroup; ++rank) {
      sharding::Held &held = costs.held[static_cast<size_t>(stage) * inGroup + rank];
      (isa<KvType>(type.getType()) ? held.cacheElements : held.stateBytes) +=
          elements[rank] * (isa<KvType>(type.getType()) ? 1 : 4);
    }
  };
  auto holdRows = [&](int64_t stage, const Share &share, std::vector<double> &most) {
    for (size_t rank = 0; rank < inGroup; ++rank) {
      double &own = most[static_cast<size_t>(stage) * inGroup + rank];
      own = std::max(own, share.rowsAtOnce[rank]);
      double &widest = costs.held[static_cast<size_t>(stage) * inGroup + rank].collectiveElements;
      widest = std::max(widest, share.collectiveElements);
    }
  };

  Share step(*model.functions.at("step"), grid.group, model.contexts, grid.stages > 1 ? &stages : nullptr);
  std::vector<double> inLayers(costs.held.size(), 0);
  std::vector<sharding::Unit> behind;
  for (const auto &[key, work] : step.work) {
    auto [stage, onLogitRows] = key;
    if (work.isEmpty())
      continue;
    sharding::Unit unit;
    unit.name = onLogitRows ? "head" : stage == 0 ? "embedding" : "between layers";
    unit.stage = stage;
    unit.onLogitRows = onLogitRows;
    model.addWork(
        work, step, [&](Value value) { return model.symbolOf(value); }, std::move(unit),
        onLogitRows ? behind : costs.units);
  }
  for (const WeightUse &use : step.uses)
    for (Operation *user : use.value.getUsers()) {
      int64_t stage = std::max<int64_t>(0, stageOf(user));
      hold(stage, model.symbolOf(use.value), use);
    }
  for (const auto &[value, elements] : step.states)
    for (Operation *user : value.getUsers())
      holdState(std::max<int64_t>(0, stageOf(user)), model.symbolOf(value), value, elements);

  for (func::CallOp call : model.calls) {
    const Share &share = model.shareOf(call.getCallee(), grid.group);
    int64_t stage = stageOf(call);
    auto symbolOf = [&](Value argument) {
      return model.symbolOf(call.getOperand(cast<BlockArgument>(argument).getArgNumber()));
    };
    for (const WeightUse &use : share.uses)
      hold(stage, symbolOf(use.value), use);
    for (const auto &[argument, elements] : share.states)
      holdState(stage, symbolOf(argument), argument, elements);
    holdRows(stage, share, inLayers);
    sharding::Unit unit;
    unit.name = call.getCallee().str();
    unit.stage = stage;
    for (const auto &[key, work] : share.work)
      model.addWork(work, share, symbolOf, unit, costs.units);
  }
  llvm::append_range(costs.units, behind);
  std::vector<sharding::Unit> inOrder;
  for (int64_t stage = 0; stage < grid.stages; ++stage)
    llvm::copy_if(costs.units, std::back_inserter(inOrder),
                  [&](const sharding::Unit &unit) { return unit.stage == stage; });
  costs.units = std::move(inOrder);

  for (size_t rank = 0; rank < costs.held.size(); ++rank)
    costs.held[rank].rowElements = inLayers[rank] + step.rowsAtOnce[rank % inGroup];
  // A value travels to the last stage that reads it.
  costs.handedOn.assign(static_cast<size_t>(grid.stages - 1), 0);
  for (Operation &op : model.step.getBody().front())
    for (Value result : op.getResults()) {
      int64_t from = grid.stages > 1 ? stageOf(&op) : 0, to = from;
      for (Operation *user : result.getUsers())
        to = std::max(to, grid.stages > 1 && !isa<func::ReturnOp>(user) ? stageOf(user) : to);
      for (int64_t stage = std::max<int64_t>(from, 0); from >= 0 && isRows(result) && stage < to; ++stage)
        costs.handedOn[static_cast<size_t>(stage)] += static_cast<double>(elementsPerRow(result.getType()));
    }
  std::map<std::string, double> duplicates;
  for (const auto &use : model.numUses) {
    double once = model.weights[use.first()].bytes, more = heldBytes.lookup(use.first()) - once;
    costs.weightBytes += once;
    costs.duplicatedBytes += more;
    if (more > 0.5) // less is rounding
      duplicates[withoutLayer(use.first())] += more;
  }
  costs.duplicates.assign(duplicates.begin(), duplicates.end());
  return costs;
}
