#include "passes/PartSymbols.h"
#include "passes/LayerCalls.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using sharding::Dimension;
using sharding::Dimensions;
using sharding::Range;

int64_t PartSymbols::indexOf(const sharding::Partition &partition) {
  auto known = llvm::find(partitions, partition);
  if (known == partitions.end())
    known = partitions.insert(known, partition);
  return known - partitions.begin();
}

ArrayAttr PartSymbols::partsOf(Dimensions &axes, ArrayRef<Dimension> dimensions) {
  Builder builder(module.getContext());
  SmallVector<Attribute> all;
  for (const Dimension &dimension : dimensions) {
    SmallVector<int64_t> triples;
    int64_t begin = 0;
    for (const Dimensions::Part &part : axes.partsOf(dimension)) {
      triples.append({part.partition ? indexOf(*part.partition) : -1, begin, part.size});
      begin += part.size;
    }
    all.push_back(builder.getDenseI64ArrayAttr(triples));
  }
  return builder.getArrayAttr(all);
}

void PartSymbols::take(UseWeightOp use, Dimensions &axes, ArrayRef<Dimension> dimensions) {
  auto weight = table.lookup<WeightOp>(use.getSymbol());
  SmallVector<int64_t> local, of;
  for (const Dimension &dimension : dimensions) {
    local.push_back(axes.localSize(dimension, rank));
    of.push_back(axes.sizeOf(dimension));
  }
  auto type = WeightType::get(module.getContext(), local);
  bool isPart = llvm::any_of(dimensions, [&](const Dimension &dimension) { return axes.isCut(dimension); });
  ArrayAttr parts = isPart ? partsOf(axes, dimensions) : ArrayAttr();
  if (decided.contains(weight.getSymNameAttr()) && weight.getPartsAttr() != parts) {
    // Whoever wants it cut otherwise gets a symbol of its own, the same one for all that cut it so.
    for (int copy = 2;; ++copy) {
      std::string name = (weight.getSymName() + "." + Twine(copy)).str();
      auto other = table.lookup<WeightOp>(name);
      if (!other) {
        other = cast<WeightOp>(weight->clone());
        other.setSymName(name);
        other.removeOfAttr();
        other.removePartsAttr();
        table.insert(other, std::next(Block::iterator(weight)));
      } else if (other.getPartsAttr() != parts) {
        continue;
      }
      weight = other;
      break;
    }
  }
  decided.insert(weight.getSymNameAttr());
  weight.setType(type);
  if (parts) {
    weight.setOf(of);
    weight.setPartsAttr(parts);
  }
  use.setSymbol(weight.getSymName());
  use.getResult().setType(type);
}

LogicalResult PartSymbols::take(UseStateOp use, Type type) {
  auto state = table.lookup<StateOp>(use.getSymbol());
  if (decided.contains(state.getSymNameAttr()) && state.getType() != type)
    return use.emitOpError() << "is cut as " << type << " here and as " << state.getType() << " by another layer";
  decided.insert(state.getSymNameAttr());
  state.setType(type);
  use.getResult().setType(type);
  return success();
}

std::string PartSymbols::firstExpert(const sharding::Partition &partition) {
  std::string numbers;
  sharding::Partition each;
  for (auto [i, range] : llvm::enumerate(partition)) {
    numbers += (i ? "," : "") + std::to_string(-range.begin);
    each.push_back({static_cast<int64_t>(i), static_cast<int64_t>(i) + 1});
  }
  std::string name = "first_expert." + std::to_string(indexOf(partition));
  if (table.lookup(name))
    return name;
  OpBuilder builder(module.getContext());
  auto source = builder.getDictionaryAttr(
      {builder.getNamedAttr("tensor", builder.getStringAttr("constant [" + numbers + "] 1"))});
  auto ranks = static_cast<int64_t>(partition.size());
  auto weight = WeightOp::create(builder, module.getLoc(), name, WeightType::get(module.getContext(), {1}),
                                 builder.getArrayAttr({source}), FloatAttr(), builder.getDenseI64ArrayAttr({ranks}),
                                 builder.getArrayAttr({builder.getDenseI64ArrayAttr({indexOf(each), 0, ranks})}));
  table.insert(weight, module.getBody()->begin());
  decided.insert(weight.getSymNameAttr());
  return name;
}

void PartSymbols::finish() {
  Builder builder(module.getContext());
  SmallVector<Attribute> all;
  for (const sharding::Partition &partition : partitions) {
    SmallVector<int64_t> flat;
    for (const Range &range : partition)
      flat.append({range.begin, range.end});
    all.push_back(builder.getDenseI64ArrayAttr(flat));
  }
  module->setAttr("llmc.partitions", builder.getArrayAttr(all));
  eraseUnusedSymbols(module);
}
