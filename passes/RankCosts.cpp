// The same decisions as ShardModel's, counted instead of carried out: RankCostsTest compares the two on every model.
// What a function does is kept per group of ranks; weights differ from layer to layer in how they are stored only.
#include "passes/RankCosts.h"
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "passes/FunctionWork.h"
#include "passes/LayerCalls.h"
#include "passes/SplitStages.h"
#include "llvm/ADT/STLExtras.h"
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

struct StoredWeight {
  double bytes = 0, elements = 0;
  WeightBits bits() const {
    double each = 8 * bytes / elements;
    return each < 6 ? sharding::Bits4 : each < 12 ? sharding::Bits8 : sharding::Bits16;
  }
};

double elementsOf(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0,
                         [](double product, int64_t size) { return product * static_cast<double>(size); });
}

std::string withoutLayer(StringRef name) {
  return name.consume_front("layers.") ? name.split('.').second.str() : name.str();
}

} // namespace

//===-- the model
//---------------------------------------------------------------------------------------------------===//

// A layer's function, or the step.
struct RankCosts::Function {
  explicit Function(func::FuncOp op) : op(op), rules(op) {}
  func::FuncOp op;
  FunctionDimensions rules; // nothing is decided yet
};

struct RankCosts::Model {
  ModuleOp module;
  func::FuncOp step;
  std::array<int64_t, sharding::numPhases> contexts;
  llvm::StringMap<StoredWeight> weights;
  llvm::StringMap<int64_t> numUses; // of symbols, in the step
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::vector<func::CallOp> calls;
  int64_t vocabulary = 0;
  std::map<std::tuple<std::string, int64_t, int64_t>, std::unique_ptr<FunctionWork>> shares;

  FunctionWork &shareOf(StringRef name, const sharding::Group &group);
  void addWork(const Work &work, const FunctionWork &share, function_ref<StringRef(Value)> symbolOf,
               sharding::Unit unit, std::vector<sharding::Unit> &units);
  StringRef symbolOf(Value value) {
    if (auto use = value.getDefiningOp<UseWeightOp>())
      return use.getSymbol();
    auto state = value.getDefiningOp<UseStateOp>();
    return state ? state.getSymbol() : StringRef();
  }
};

FunctionWork &RankCosts::Model::shareOf(StringRef name, const sharding::Group &group) {
  std::unique_ptr<FunctionWork> &known = shares[{name.str(), group.experts, group.tensor}];
  if (!known)
    known = std::make_unique<FunctionWork>(functions.at(name.str())->op, functions.at(name.str())->rules, group,
                                           contexts, nullptr);
  return *known;
}

// One more layer, on top of units of the same numbers where the last is one.
void RankCosts::Model::addWork(const Work &work, const FunctionWork &share, function_ref<StringRef(Value)> symbolOf,
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
  separateWeightUses(model_->step);
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
  auto holdRows = [&](int64_t stage, const FunctionWork &share, std::vector<double> &most) {
    for (size_t rank = 0; rank < inGroup; ++rank) {
      double &own = most[static_cast<size_t>(stage) * inGroup + rank];
      own = std::max(own, share.rowsAtOnce[rank]);
      double &widest = costs.held[static_cast<size_t>(stage) * inGroup + rank].collectiveElements;
      widest = std::max(widest, share.collectiveElements);
    }
  };

  Function &own = *model.functions.at("step");
  FunctionWork step(own.op, own.rules, grid.group, model.contexts, grid.stages > 1 ? &stages : nullptr);
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
    const FunctionWork &share = model.shareOf(call.getCallee(), grid.group);
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
      for (int64_t stage = std::max<int64_t>(from, 0);
           from >= 0 && isa<RankedTensorType>(result.getType()) && stage < to; ++stage)
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
