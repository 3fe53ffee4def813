#include "lib/sharding/Planner.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace llmc::sharding {
namespace {

constexpr double rowElementBytes = 4; // rows are f32 wherever they lie or travel

//===-- links
//-------------------------------------------------------------------------------------------------------===//

// The first rank of a stage is where the stage before ends: groups may lie across nodes.
int64_t nodesOf(const Grid &grid, int64_t stage, int64_t devicesPerNode) {
  int64_t first = stage * grid.group.ranks(), last = first + grid.group.ranks() - 1;
  return last / devicesPerNode - first / devicesPerNode + 1;
}

// Everyone sends its part to all others: n - 1 parts of 1/n leave a device, twice for a sum. Where a row is small,
// whole terms in one exchange are faster than parts in two. Across nodes the slower link bounds both.
double collectiveSeconds(const Collective &collective, double rows, double ranks, bool crossesNodes,
                         const Machine &machine) {
  const Link &link = crossesNodes ? machine.between : machine.inside;
  double bytes = collective.elements * rowElementBytes * rows;
  double parts = link.seconds + bytes * (ranks - 1) / ranks / link.bytesPerSecond;
  if (collective.kind == CollectiveKind::AllGather)
    return parts;
  double whole = link.seconds + bytes * (ranks - 1) / link.bytesPerSecond;
  return std::min(2 * parts, whole);
}

//===-- work
//--------------------------------------------------------------------------------------------------------===//

// The most of `total` things that fall to one of `bins` at random, about.
double mostOf(double total, double bins) {
  double mean = total / bins;
  return bins <= 1 ? total : std::min(total, mean + std::sqrt(2 * mean * std::log(bins)));
}

struct Rows {
  Phase phase;
  double rows, sequences;
};

StepTime unitTime(const Unit &unit, const Rows &step, const Machine &machine, const Workload &workload,
                  bool crossesNodes) {
  double rows = unit.onLogitRows ? step.sequences : step.rows;
  const bool exchanges = unit.ranks.size() > 1 && !unit.collectives.empty();
  const bool isCut = exchanges && !unit.onLogitRows && rows >= static_cast<double>(rowBlocks * rowsPerBlock);
  const double blocks = isCut ? static_cast<double>(rowBlocks) : 1; // each reads the weights
  // A router that favours nobody: experts that at least one row chooses, and the slots of the busiest rank.
  double experts = static_cast<double>(unit.experts), chosen = static_cast<double>(unit.chosen);
  double expertRanks = static_cast<double>(unit.expertRanks);
  double read = experts > 0 ? experts * (1 - std::pow(1 - chosen / experts, rows)) : 0;
  double readByOne = mostOf(read, expertRanks), slotsOfOne = mostOf(rows * chosen, expertRanks);
  const double rates[] = {machine.flops16, machine.flops8, machine.flops4};
  auto phase = static_cast<size_t>(step.phase);
  StepTime slowest;
  for (const RankWork &rank : unit.ranks) {
    StepTime own;
    double bytes = blocks * rank.weightBytes + rank.rowBytes * rows + 2 * rank.stateBytes * step.sequences +
                   rank.cacheElements[phase] * workload.cacheElementBytes * step.sequences;
    if (rank.expertsHeld > 0)
      bytes += blocks * rank.expertBytes * std::min(1.0, readByOne / rank.expertsHeld);
    double compute = rank.attentionFlops[phase] * rows / rates[Bits16];
    for (size_t bits = 0; bits < numWeightBits; ++bits)
      compute += (rank.flops[bits] * rows + rank.expertFlops[bits] * slotsOfOne) / rates[bits];
    compute /= machine.reachedFlops;
    double memory = bytes / (machine.memoryBytesPerSecond * machine.reachedMemory);
    (compute > memory ? own.compute : own.memory) = std::max(compute, memory);
    if (own.total() > slowest.total())
      slowest = own;
  }
  slowest.launches = blocks * static_cast<double>(unit.kernels) * machine.launchSeconds;
  if (exchanges)
    for (const Collective &collective : unit.collectives)
      slowest.collectives += blocks * collectiveSeconds(collective, rows / blocks,
                                                        static_cast<double>(unit.ranks.size()), crossesNodes, machine);
  if (isCut)
    slowest.hidden = std::min(slowest.collectives, slowest.work());
  auto count = static_cast<double>(unit.count);
  return {slowest.compute * count, slowest.memory * count, slowest.launches * count, slowest.collectives * count, 0,
          slowest.hidden * count};
}

std::vector<StepTime> stepTimes(const GridCosts &costs, const Rows &step, const Machine &machine,
                                const Workload &workload) {
  const Grid &grid = costs.grid;
  std::vector<StepTime> stages(static_cast<size_t>(grid.stages));
  for (const Unit &unit : costs.units)
    stages[static_cast<size_t>(unit.stage)] +=
        unitTime(unit, step, machine, workload, nodesOf(grid, unit.stage, machine.devicesPerNode) > 1);
  for (int64_t stage = 0; stage + 1 < grid.stages; ++stage) {
    int64_t from = stage * grid.group.ranks(), to = from + grid.group.ranks();
    bool crossesNodes = (to + grid.group.ranks() - 1) / machine.devicesPerNode != from / machine.devicesPerNode;
    const Link &link = crossesNodes ? machine.between : machine.inside;
    stages[static_cast<size_t>(stage)].handOver +=
        link.seconds + costs.handedOn[static_cast<size_t>(stage)] * rowElementBytes * step.rows / link.bytesPerSecond;
  }
  // The last stage tells all others the logits.
  if (grid.stages > 1) {
    const Link &link = grid.ranks() > machine.devicesPerNode ? machine.between : machine.inside;
    stages.back().handOver += link.seconds + static_cast<double>(grid.stages - 1) *
                                                 static_cast<double>(costs.vocabulary) * rowElementBytes *
                                                 step.sequences / link.bytesPerSecond;
  }
  return stages;
}

StepTime sumOf(const std::vector<StepTime> &stages) {
  StepTime sum;
  for (const StepTime &stage : stages)
    sum += stage;
  return sum;
}

std::string gib(double bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / (1 << 30));
  return text;
}

std::string milliseconds(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  return text;
}

} // namespace

//===-- steps
//-------------------------------------------------------------------------------------------------------===//

StepTime &StepTime::operator+=(const StepTime &other) {
  compute += other.compute;
  memory += other.memory;
  launches += other.launches;
  collectives += other.collectives;
  handOver += other.handOver;
  hidden += other.hidden;
  return *this;
}

std::string StepTime::limit() const {
  std::pair<double, const char *> parts[] = {{compute, "compute"},
                                             {memory, "memory"},
                                             {launches, "launches"},
                                             {exposed(), "collectives"},
                                             {handOver, "hand-over between stages"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

StepTime Candidate::decodeTime() const { return sumOf(decode); }
StepTime Candidate::prefillTime() const { return sumOf(prefill); }

size_t Candidate::fullest() const {
  return static_cast<size_t>(
      std::max_element(ranks.begin(), ranks.end(),
                       [](const RankMemory &a, const RankMemory &b) { return a.total() < b.total(); }) -
      ranks.begin());
}

//===-- memory
//------------------------------------------------------------------------------------------------------===//

RankMemory memoryOf(const GridCosts &costs, const Held &held, const Workload &workload) {
  auto batch = static_cast<double>(workload.batch);
  double rows = std::max(static_cast<double>(workload.prefillRows), batch);
  RankMemory memory;
  memory.experts = held.experts;
  memory.matrices = held.matrices;
  memory.vectors = held.vectors;
  memory.activations = held.rowElements * rowElementBytes * rows;
  memory.collectives = costs.grid.ranks() > 1 ? held.collectiveElements * rowElementBytes * rows : 0;
  memory.kv = held.cacheElements * workload.cacheElementBytes * static_cast<double>(workload.context) * batch;
  memory.state = held.stateBytes * batch;
  memory.logits = static_cast<double>(costs.vocabulary) * rowElementBytes * batch;
  return memory;
}

Candidate evaluate(const GridCosts &costs, const Machine &machine, const Workload &workload) {
  Candidate candidate;
  candidate.grid = costs.grid;
  candidate.limit = static_cast<double>(machine.usableBytes());
  candidate.duplicated = costs.duplicatedBytes;
  for (const Held &held : costs.held)
    candidate.ranks.push_back(memoryOf(costs, held, workload));
  auto batch = static_cast<double>(workload.batch);
  candidate.decode = stepTimes(costs, {Decode, batch, batch}, machine, workload);
  candidate.prefill = stepTimes(costs, {Prefill, static_cast<double>(workload.prefillRows), 1}, machine, workload);
  for (int64_t stage = 0; stage < costs.grid.stages; ++stage)
    candidate.spannedNodes = std::max(candidate.spannedNodes, nodesOf(costs.grid, stage, machine.devicesPerNode));
  return candidate;
}

//===-- search
//------------------------------------------------------------------------------------------------------===//

std::vector<Grid> gridsOf(int64_t ranks, int64_t layers, int64_t experts) {
  std::vector<Grid> grids;
  for (int64_t stages = 1; stages <= std::min(ranks, layers); ++stages) {
    if (ranks % stages != 0)
      continue;
    int64_t inGroup = ranks / stages;
    for (int64_t apart = 1; apart <= std::min(inGroup, std::max<int64_t>(experts, 1)); ++apart)
      if (inGroup % apart == 0)
        grids.push_back({stages, {apart, inGroup / apart}});
  }
  return grids;
}

std::vector<Candidate> search(int64_t ranks, int64_t layers, int64_t experts, const CostsOf &costsOf,
                              const Machine &machine, const Workload &workload) {
  std::vector<Candidate> candidates;
  for (const Grid &grid : gridsOf(ranks, layers, experts))
    if (std::optional<GridCosts> costs = costsOf(grid))
      candidates.push_back(evaluate(*costs, machine, workload));
  // Ties (of nothing but rounding) go to fewer stages, then fewer ranks of a matrix.
  auto key = [](const Candidate &candidate) {
    double lack = candidate.ranks[candidate.fullest()].total() - candidate.limit;
    return std::tuple(!candidate.fits(), candidate.fits() ? candidate.decodeTime().total() : lack,
                      candidate.grid.stages, candidate.grid.group.tensor);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate &a, const Candidate &b) { return key(a) < key(b); });
  return candidates;
}

std::string nameOf(const Grid &grid) {
  std::string name;
  auto add = [&](int64_t count, const char *what) {
    if (count > 1)
      name += (name.empty() ? "" : " x ") + std::string(what) + " " + std::to_string(count);
  };
  add(grid.stages, "pipeline");
  add(grid.group.experts, "experts");
  add(grid.group.tensor, "tensor");
  return name.empty() ? "one rank" : name;
}

std::string whyNot(const Candidate &best, const Candidate &other) {
  if (!other.fits()) {
    size_t rank = other.fullest();
    const RankMemory &memory = other.ranks[rank];
    std::pair<double, const char *> kinds[] = {{memory.weights(), "weights"},
                                               {memory.kv, "keys and values"},
                                               {memory.state, "states"},
                                               {memory.activations + memory.collectives + memory.logits, "rows"}};
    auto most = std::max_element(std::begin(kinds), std::end(kinds));
    return "does not fit: rank " + std::to_string(rank) + " needs " + gib(memory.total()) + " of " + gib(other.limit) +
           ", " + gib(most->first) + " of it " + most->second;
  }
  StepTime ours = best.decodeTime(), theirs = other.decodeTime();
  std::pair<double, const char *> parts[] = {{theirs.compute - ours.compute, "to multiply"},
                                             {theirs.memory - ours.memory, "to read memory"},
                                             {theirs.launches - ours.launches, "for launches"},
                                             {theirs.exposed() - ours.exposed(), "for collectives"},
                                             {theirs.handOver - ours.handOver, "between stages"}};
  auto most = std::max_element(std::begin(parts), std::end(parts));
  std::string reason =
      "decodes in " + milliseconds(theirs.total()) + ": " + milliseconds(most->first) + " more " + most->second;
  if (other.spannedNodes > 1 && most->second == std::string("for collectives"))
    reason += ", whose groups span " + std::to_string(other.spannedNodes) + " nodes";
  else if (most->second == std::string("to read memory") && other.grid.stages > best.grid.stages)
    reason += ", since stages run one after the other";
  return reason;
}

//===-- remedies
//----------------------------------------------------------------------------------------------------===//

namespace {

bool anyFits(int64_t ranks, int64_t layers, int64_t experts, const CostsOf &costsOf, double limit,
             const Workload &workload) {
  for (const Grid &grid : gridsOf(ranks, layers, experts)) {
    std::optional<GridCosts> costs = costsOf(grid);
    if (costs && std::all_of(costs->held.begin(), costs->held.end(),
                             [&](const Held &held) { return memoryOf(*costs, held, workload).total() <= limit; }))
      return true;
  }
  return false;
}

// The largest value of 1 .. most for which `fits`, 0 where there is none.
int64_t largest(int64_t most, const std::function<bool(int64_t)> &fits) {
  if (most < 1 || !fits(1))
    return 0;
  int64_t good = 1, bad = most + 1;
  while (bad - good > 1) {
    int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

} // namespace

Remedies remediesFor(int64_t ranks, int64_t layers, int64_t experts, const CostsOf &costsOf, const Machine &machine,
                     const Workload &workload) {
  Remedies remedies;
  auto limit = static_cast<double>(machine.usableBytes());
  auto fitsOn = [&](int64_t count, double bytes, const Workload &changed) {
    return anyFits(count, layers, experts, costsOf, bytes, changed);
  };
  remedies.batch = largest(workload.batch - 1, [&](int64_t batch) {
    Workload changed = workload;
    changed.batch = batch;
    return fitsOn(ranks, limit, changed);
  });
  remedies.context = largest(workload.context - 1, [&](int64_t context) {
    Workload changed = workload;
    changed.context = context;
    return fitsOn(ranks, limit, changed);
  });
  if (workload.cacheElementBytes > 1) {
    Workload changed = workload;
    changed.cacheElementBytes = 1;
    remedies.withInt8Cache = fitsOn(ranks, limit, changed);
  }
  // No fewer than the bytes of all ranks ask for; more than a few times as many are no remedy.
  double weights = 0;
  if (std::optional<GridCosts> costs = costsOf({1, {1, 1}}))
    weights = costs->weightBytes;
  auto least = std::max(ranks + 1, static_cast<int64_t>(std::ceil(weights / limit)));
  for (int64_t count = least; count <= 4 * std::max(ranks, least) && remedies.ranks == 0; ++count)
    if (fitsOn(count, limit, workload))
      remedies.ranks = count;
  for (const Machine &other : knownMachines())
    if (other.name != machine.name && other.isCpu == machine.isCpu &&
        fitsOn(ranks, static_cast<double>(other.usableBytes()), workload))
      remedies.machines.push_back(other.name);
  return remedies;
}

} // namespace llmc::sharding
