#include "tools/llmc/Coverage.h"
#include "lib/weights/ChooseForm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <tuple>

using namespace mlir;

namespace llmc {
namespace {

// How often a step runs each function.
llvm::MapVector<func::FuncOp, int64_t> callsOf(ModuleOp module) {
  llvm::MapVector<func::FuncOp, int64_t> calls;
  auto step = module.lookupSymbol<func::FuncOp>("step");
  calls[step] = 1;
  step.walk([&](func::CallOp call) { ++calls[module.lookupSymbol<func::FuncOp>(call.getCallee())]; });
  return calls;
}

bool isCounted(Operation *op) {
  return isa_and_nonnull<llm::LlmDialect>(op->getDialect()) &&
         !isa<llm::UseWeightOp, llm::UseStateOp, llm::RecordOp>(op) &&
         // What only a record reads is for people who look into a model.
         !(op->getNumResults() > 0 &&
           llvm::all_of(op->getUsers(), [](Operation *user) { return isa<llm::RecordOp>(user); }));
}

class Tally {
public:
  explicit Tally(const std::vector<StepSize> &steps) : steps_(steps) {}

  void add(Operation *op, int64_t calls) {
    TileForm form = tileFormOf(op);
    std::string name = op->getName().stripDialect().str();
    auto [it, isNew] = at_.emplace(std::tuple(name, form.kernel, form.reason), entries_.size());
    if (isNew)
      entries_.push_back({name, form, 0, std::vector<OperatorCost>(steps_.size())});
    OperatorCoverage &entry = entries_[it->second];
    entry.count += calls;
    auto cost = dyn_cast<llm::CostOpInterface>(op);
    for (size_t i = 0; cost && i < steps_.size(); ++i) {
      auto times = static_cast<double>(calls);
      entry.costs[i].flops += times * static_cast<double>(cost.flops(steps_[i].rows, steps_[i].context));
      entry.costs[i].bytes += times * static_cast<double>(cost.bytes(steps_[i].rows, steps_[i].context));
    }
  }
  std::vector<OperatorCoverage> take() { return std::move(entries_); }

private:
  const std::vector<StepSize> &steps_;
  std::vector<OperatorCoverage> entries_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> at_;
};

} // namespace

std::vector<OperatorCoverage> coverageOf(ModuleOp module, const std::vector<StepSize> &steps) {
  Tally tally(steps);
  for (auto [function, calls] : callsOf(module))
    for (Operation &op : function.getBody().front())
      if (isCounted(&op))
        tally.add(&op, calls);
  return tally.take();
}

std::vector<WeightCoverage> weightCoverageOf(ModuleOp module) {
  std::vector<WeightCoverage> entries;
  for (auto weight : module.getOps<llm::WeightOp>()) {
    auto type = cast<llm::WeightType>(weight.getType());
    auto reason = weight->getAttrOfType<StringAttr>("reason"), fate = weight->getAttrOfType<StringAttr>("fate");
    if (!reason || !fate)
      continue;
    std::string form = llm::stringifyWeightForm(type.getForm()).str();
    auto it = llvm::find_if(
        entries, [&](const WeightCoverage &entry) { return entry.form == form && entry.reason == reason.getValue(); });
    if (it == entries.end()) {
      bool isConverted = fate.str() == nameOf(WeightFate::Converted);
      entries.push_back({form, reason.str(), isConverted ? TileForm::Status::Composed : TileForm::Status::Native});
      it = entries.end() - 1;
    }
    double elements = 1;
    for (int64_t size : type.getShape())
      elements *= static_cast<double>(size);
    ++it->count;
    it->elements += elements;
  }
  return entries;
}

} // namespace llmc
