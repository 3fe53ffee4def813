// What RankCosts counts is what ShardModel makes, for every model and rank; together the ranks hold the whole.
#include "passes/RankCosts.h"
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "lib/importer/BuildModule.h"
#include "lib/importer/ReadModel.h"
#include "lib/sharding/Planner.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace mlir;
using namespace llmc::llm;

namespace llmc {
namespace {

double elementsOf(ArrayRef<int64_t> shape) {
  double elements = 1;
  for (int64_t size : shape)
    elements *= static_cast<double>(size);
  return elements;
}

std::vector<std::string> modelNames() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(LLMC_TEST_DATA "/../models"))
    if (std::filesystem::exists(entry.path() / "config.json"))
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class RankCostsOfModel : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    StatusOr<ModelDescriptions> descriptions = loadModelDescriptions();
    StatusOr<ModelFiles> files = ModelFiles::open(LLMC_TEST_DATA "/../models/" + GetParam() + "/config.json");
    ASSERT_TRUE(descriptions.ok() && files.ok());
    StatusOr<ModelSpec> read = readModel(*descriptions, *files);
    ASSERT_TRUE(read.ok()) << read.status().message();
    spec = std::move(*read);
    context.loadDialect<LlmDialect, func::FuncDialect, shard::ShardDialect>();
  }
  OwningOpRef<ModuleOp> imported() {
    return buildModule(context, spec, 128, [](const std::string &) { return std::string("F32"); });
  }
  // Null where the pass refuses.
  OwningOpRef<ModuleOp> sharded(const sharding::Grid &grid, int64_t rank) {
    OwningOpRef<ModuleOp> module = imported();
    PassManager manager(&context);
    manager.addPass(createShardModelPass({grid.group.experts, grid.group.tensor, grid.stages, rank}));
    return succeeded(manager.run(*module)) ? std::move(module) : OwningOpRef<ModuleOp>();
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  ScopedDiagnosticHandler quiet{&context, [](Diagnostic &) { return success(); }};
  ModelSpec spec;
};

// Of one rank, as the pass leaves it.
struct Counted {
  double weights = 0, cache = 0, states = 0;
  std::multiset<std::pair<int, int64_t>> collectives; // kind and elements of a row, of a step
};

Counted countIn(ModuleOp module) {
  Counted counted;
  for (auto weight : module.getOps<WeightOp>())
    if (!weight.getSymName().starts_with("first_expert."))
      counted.weights += 4 * elementsOf(cast<WeightType>(weight.getType()).getShape());
  for (auto state : module.getOps<StateOp>()) {
    if (auto kv = dyn_cast<KvType>(state.getType()))
      counted.cache += static_cast<double>(kv.getHeads() * (kv.getHeadDim() + kv.storedValueDim()));
    else
      counted.states += 4 * static_cast<double>(cast<RecurrentType>(state.getType()).elements());
  }
  auto count = [&](func::FuncOp function) {
    for (Operation &op : function.getBody().front())
      if (isa<shard::AllReduceOp>(op))
        counted.collectives.insert({0, elementsPerRow(op.getResult(0).getType())});
      else if (isa<AllGatherOp>(op))
        counted.collectives.insert({1, elementsPerRow(op.getResult(0).getType())});
  };
  auto step = module.lookupSymbol<func::FuncOp>("step");
  count(step);
  for (auto call : step.getOps<func::CallOp>())
    count(module.lookupSymbol<func::FuncOp>(call.getCallee()));
  return counted;
}

// Every element of every weight is on a rank: the ranges that the parts of ranks name cover each dimension.
void expectCovered(ModuleOp module, const std::string &where) {
  auto partitions = module->getAttrOfType<ArrayAttr>("llmc.partitions");
  for (auto weight : module.getOps<WeightOp>())
    for (Attribute dimension : weight.getPartsAttr() ? weight.getPartsAttr().getValue() : ArrayRef<Attribute>()) {
      ArrayRef<int64_t> triples = cast<DenseI64ArrayAttr>(dimension).asArrayRef();
      for (size_t i = 0; i < triples.size(); i += 3) {
        if (triples[i] < 0)
          continue;
        std::vector<std::pair<int64_t, int64_t>> ranges;
        ArrayRef<int64_t> flat = cast<DenseI64ArrayAttr>(partitions[static_cast<size_t>(triples[i])]).asArrayRef();
        for (size_t at = 0; at < flat.size(); at += 2)
          ranges.push_back({flat[at], flat[at + 1]});
        std::sort(ranges.begin(), ranges.end());
        int64_t covered = 0;
        for (auto [begin, end] : ranges)
          covered = begin <= covered ? std::max(covered, end) : covered;
        EXPECT_EQ(covered, triples[i + 2]) << where << " of " << weight.getSymName().str();
      }
    }
}

} // namespace

TEST_P(RankCostsOfModel, AreWhatThePassMakes) {
  OwningOpRef<ModuleOp> module = imported();
  RankCosts costs(*module, {}, {128, 64});
  int64_t shared = 0;
  for (int64_t ranks : {2, 3, 4, 7})
    for (const sharding::Grid &grid : sharding::gridsOf(ranks, costs.layers(), costs.experts())) {
      std::string where = GetParam() + " on " + sharding::nameOf(grid);
      FailureOr<sharding::GridCosts> known = costs.of(grid);
      double held = 0;
      for (int64_t rank = 0; rank < grid.ranks(); ++rank) {
        OwningOpRef<ModuleOp> made = sharded(grid, rank);
        ASSERT_EQ(succeeded(known), static_cast<bool>(made)) << where;
        if (!made)
          break;
        ++shared;
        Counted counted = countIn(*made);
        const sharding::Held &own = known->held[static_cast<size_t>(rank)];
        EXPECT_DOUBLE_EQ(own.weights(), counted.weights) << where << ", rank " << rank;
        EXPECT_DOUBLE_EQ(own.cacheElements, counted.cache) << where << ", rank " << rank;
        EXPECT_DOUBLE_EQ(own.stateBytes, counted.states) << where << ", rank " << rank;
        Counted expected;
        for (const sharding::Unit &unit : known->units)
          for (int64_t layer = 0; layer < unit.count && unit.stage == rank / grid.group.ranks(); ++layer)
            for (const sharding::Collective &collective : unit.collectives)
              expected.collectives.insert(
                  {collective.kind == sharding::CollectiveKind::AllGather, static_cast<int64_t>(collective.elements)});
        EXPECT_EQ(expected.collectives.size(), counted.collectives.size()) << where << ", rank " << rank;
        if (rank % grid.group.ranks() == 0) { // elsewhere a part may be narrower
          EXPECT_EQ(expected.collectives, counted.collectives) << where << ", rank " << rank;
          expectCovered(*made, where);
        }
        held += counted.weights;
      }
      if (succeeded(known))
        EXPECT_NEAR(held, known->weightBytes + known->duplicatedBytes, 1e-9 * held) << where;
    }
  EXPECT_GT(shared, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RankCostsOfModel, testing::ValuesIn(modelNames()), [](const auto &info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return !std::isalnum(letter); }, '_');
  return name;
});

} // namespace llmc
