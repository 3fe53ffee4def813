// Numbers that can be worked out by hand, on a machine with round figures.
#include "lib/sharding/Planner.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::sharding;

namespace {

constexpr double MB = 1e6;

// 100 MB each, a GB/s of memory, 2 devices a node.
Machine roundMachine() {
  Machine machine;
  machine.name = "round";
  machine.memoryBytes = 100 * 1000 * 1000;
  machine.memoryBytesPerSecond = 1e9;
  machine.flops16 = 1e12;
  machine.flops8 = 2e12;
  machine.flops4 = 4e12;
  machine.launchSeconds = 1e-6;
  machine.devicesPerNode = 2;
  machine.inside = {1e9, 1e-6};
  machine.between = {1e8, 1e-5};
  return machine;
}

// Four layers of 40 MB of bf16 that are cut evenly, 1000 cache elements a position that every rank of a group holds,
// and two sums of 1000 channels a layer.
std::optional<GridCosts> evenCosts(const Grid &grid) {
  if (4 % grid.stages != 0)
    return std::nullopt;
  GridCosts costs;
  costs.grid = grid;
  costs.weightBytes = 160 * MB;
  auto ranks = static_cast<double>(grid.group.ranks());
  for (int64_t stage = 0; stage < grid.stages; ++stage) {
    Unit unit;
    unit.stage = stage;
    unit.count = 4 / grid.stages;
    unit.kernels = 10;
    RankWork work;
    work.weightBytes = 40 * MB / ranks;
    work.flops[Bits16] = 40 * MB / ranks;
    work.cacheElements = {250, 125};
    unit.ranks.assign(static_cast<size_t>(grid.group.ranks()), work);
    unit.collectives.assign(2, {CollectiveKind::AllReduce, 1000});
    costs.units.push_back(unit);
  }
  costs.handedOn.assign(static_cast<size_t>(grid.stages - 1), 1000);
  Held held;
  held.matrices = 160 * MB / static_cast<double>(grid.ranks());
  held.cacheElements = 1000.0 / static_cast<double>(grid.stages);
  costs.held.assign(static_cast<size_t>(grid.ranks()), held);
  return costs;
}

Workload workload(int64_t context) {
  Workload load;
  load.context = context;
  load.prefillRows = 100;
  return load;
}

} // namespace

TEST(Planner, EveryGridOfAnyNumberOfRanks) {
  EXPECT_EQ(gridsOf(7, 10, 8).size(), 3u);
  EXPECT_EQ(gridsOf(7, 6, 8).size(), 2u);       // too few layers for seven stages
  EXPECT_EQ(gridsOf(7, 6, 0).size(), 1u);       // no experts
  EXPECT_EQ(gridsOf(12, 100, 100).size(), 18u); // 2^2 and 3 among three: 6 x 3
  for (const Grid &grid : gridsOf(12, 100, 100))
    EXPECT_EQ(grid.ranks(), 12);
}

TEST(Planner, AStepTakesWhatItReads) {
  Candidate alone = evaluate(*evenCosts({1, {1, 1}}), roundMachine(), workload(1000));
  // 4 x 40 MB and 4 x 250 elements of 2 bytes, at 1 GB/s; no collectives for one rank.
  EXPECT_NEAR(alone.decodeTime().memory, 0.16 + 2e-6, 1e-12);
  EXPECT_NEAR(alone.decodeTime().launches, 4e-5, 1e-12);
  EXPECT_EQ(alone.decodeTime().collectives, 0);
  EXPECT_EQ(alone.decodeTime().limit(), "memory");
  EXPECT_EQ(alone.decodeTime().compute, 0); // hidden behind memory
  // 100 rows of 40 MFLOP a layer at 1 TFLOP/s hide behind 40 MB as well.
  EXPECT_NEAR(alone.prefillTime().memory, 0.16 + 1e-6, 1e-12);
  Workload many = workload(1000);
  many.prefillRows = 100000;
  EXPECT_NEAR(evaluate(*evenCosts({1, {1, 1}}), roundMachine(), many).prefillTime().compute, 16, 1e-9);
}

TEST(Planner, CollectivesCrossNodesWhereGroupsDo) {
  // One row of 4000 bytes. Two ranks of a node: all terms at once, 1 us + 4 us, or in parts, 2 x (1 us + 2 us).
  Candidate pair = evaluate(*evenCosts({1, {1, 2}}), roundMachine(), workload(1000));
  EXPECT_NEAR(pair.decodeTime().collectives, 8 * 5e-6, 1e-12);
  EXPECT_EQ(pair.spannedNodes, 1);
  // Four over two nodes, at 10 us and 100 MB/s: 2 x (10 us + 30 us) in parts, 10 us + 120 us at once.
  Candidate four = evaluate(*evenCosts({1, {1, 4}}), roundMachine(), workload(1000));
  EXPECT_NEAR(four.decodeTime().collectives, 8 * 8e-5, 1e-12);
  EXPECT_EQ(four.spannedNodes, 2);
  // Two stages of a node each hand on 4000 bytes over the slow link.
  Candidate stages = evaluate(*evenCosts({2, {1, 2}}), roundMachine(), workload(1000));
  EXPECT_NEAR(stages.decode[0].handOver, 5e-5, 1e-12);
  EXPECT_NEAR(stages.decodeTime().memory, 2 * 2 * 0.02 + 2e-6, 1e-12);
}

TEST(Planner, ManyRowsAreExchangedWhileOthersAreComputed) {
  Workload load = workload(1000);
  load.prefillRows = 127;
  StepTime one = evaluate(*evenCosts({1, {1, 2}}), roundMachine(), load).prefillTime();
  EXPECT_EQ(one.hidden, 0);
  EXPECT_NEAR(one.launches, 4e-5, 1e-12);
  // Twice 100 rows of 4000 bytes, 1 us + 400 us each, two a layer; 20 MB of weights are read twice.
  load.prefillRows = 200;
  StepTime two = evaluate(*evenCosts({1, {1, 2}}), roundMachine(), load).prefillTime();
  EXPECT_NEAR(two.collectives, 4 * 2 * 2 * 401e-6, 1e-9);
  EXPECT_NEAR(two.memory, 4 * 2 * 0.02 + 1e-6, 1e-9);
  EXPECT_NEAR(two.launches, 8e-5, 1e-12);
  EXPECT_EQ(two.hidden, two.collectives);
  EXPECT_EQ(two.total(), two.work());
  // Over the link between nodes they take longer than what is computed, which is then all that hides them.
  load.prefillRows = 2000;
  StepTime far = evaluate(*evenCosts({1, {1, 4}}), roundMachine(), load).prefillTime();
  EXPECT_GT(far.collectives, far.work());
  EXPECT_NEAR(far.hidden, far.work(), 1e-12);
  EXPECT_NEAR(far.total(), far.collectives, 1e-12);
  EXPECT_EQ(evaluate(*evenCosts({1, {1, 1}}), roundMachine(), load).prefillTime().hidden, 0);
}

TEST(Planner, ExpertsAreReadAsTheyAreChosen) {
  GridCosts costs = *evenCosts({1, {1, 1}});
  costs.units.front().experts = 8;
  costs.units.front().chosen = 2;
  costs.units.front().ranks.front() = {};
  costs.units.front().ranks.front().expertBytes = 80 * MB;
  costs.units.front().ranks.front().expertsHeld = 8;
  Workload load = workload(1000);
  // One row reads 2 of 8; 16 rows all but 8 x (3/4)^16 of them.
  EXPECT_NEAR(evaluate(costs, roundMachine(), load).decodeTime().memory, 4 * 0.02, 1e-9);
  load.batch = 16;
  EXPECT_NEAR(evaluate(costs, roundMachine(), load).decodeTime().memory, 4 * 0.08 * (1 - std::pow(0.75, 16)), 1e-9);
}

TEST(Planner, TheFastestThatFitsIsBest) {
  std::vector<Candidate> found = search(4, 4, 1, evenCosts, roundMachine(), workload(1000));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0].fits());
  EXPECT_EQ(nameOf(found[0].grid), "tensor 4");
  EXPECT_EQ(nameOf(found[1].grid), "pipeline 2 x tensor 2");
  EXPECT_EQ(whyNot(found[0], found[1]),
            "decodes in 80.14 ms: 40.00 ms more to read memory, since stages run one after the other");
  // 30000 positions of 1000 elements: 60 MB on every rank, or 15 MB on each of four stages.
  found = search(4, 4, 1, evenCosts, roundMachine(), workload(30000));
  EXPECT_EQ(nameOf(found[0].grid), "tensor 4");
  found = search(4, 4, 1, evenCosts, roundMachine(), workload(31000));
  EXPECT_EQ(nameOf(found[0].grid), "pipeline 2 x tensor 2");
  EXPECT_FALSE(found.back().fits());
  EXPECT_EQ(whyNot(found[0], found.back()),
            "does not fit: rank 0 needs 0.1 GiB of 0.1 GiB, 0.1 GiB of it keys and values");
}

TEST(Planner, WhatWouldMakeItFit) {
  // 200000 positions of 1000 elements of 2 bytes are 400 MB, 100 MB on each of four stages beside 40 MB of weights.
  Remedies remedies = remediesFor(4, 4, 1, evenCosts, roundMachine(), workload(200000));
  EXPECT_EQ(remedies.batch, 0);        // there is one sequence
  EXPECT_EQ(remedies.context, 120000); // 4 x (100 - 40) MB
  EXPECT_TRUE(remedies.withInt8Cache); // half of it: 50 MB and 40 MB
  EXPECT_EQ(remedies.ranks, 0);        // five to 16: no more than four stages hold the cache
  EXPECT_EQ(remedies.machines.size(), knownMachines().size() - 1); // all that are no CPUs have more memory
  Workload two = workload(100000);
  two.batch = 2;
  EXPECT_EQ(remediesFor(4, 4, 1, evenCosts, roundMachine(), two).batch, 1);
  // 24 MB less for weights would do: eight ranks hold 20 MB each.
  EXPECT_EQ(remediesFor(1, 4, 1, evenCosts, roundMachine(), workload(1000)).ranks, 2);
}
