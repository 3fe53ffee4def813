// The choice of a grid: every way to write the number of ranks as stages x experts x tensor is costed on a machine.
// docs/planning.md has the formulas.
#pragma once
#include "lib/sharding/GridCosts.h"
#include "lib/target/Machine.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace llmc::sharding {

struct Workload {
  int64_t batch = 1;         // sequences, each of which decodes a token in a step
  int64_t context = 0;       // positions that each may have
  int64_t prefillRows = 512; // of one sequence in a step, at half of the context
  double cacheElementBytes = 2;
};

// Bytes of a rank, by kind.
struct RankMemory {
  double experts = 0, matrices = 0, vectors = 0; // weights
  double activations = 0, scratch = 0, collectives = 0, kv = 0, state = 0, logits = 0, staging = 0;
  double weights() const { return experts + matrices + vectors; }
  double total() const { return weights() + activations + scratch + collectives + kv + state + logits + staging; }
};

// Seconds of a step, by what took them. A layer takes what its slowest rank takes.
struct StepTime {
  double compute = 0, memory = 0, launches = 0, collectives = 0, handOver = 0;
  double hidden = 0; // of the collectives: under way while something else is computed
  double work() const { return compute + memory + launches; }
  double exposed() const { return collectives - hidden; }
  double total() const { return work() + exposed() + handOver; }
  StepTime &operator+=(const StepTime &other);
  // "memory": the largest.
  std::string limit() const;
};

struct Candidate {
  Grid grid;
  std::vector<RankMemory> ranks;         // of the grid
  double limit = 0;                      // bytes of a rank
  double duplicated = 0;                 // bytes of weights that ranks hold more than once
  std::vector<StepTime> decode, prefill; // by stage
  int64_t spannedNodes = 1;              // by the group that spans most
  size_t fullest() const;                // rank
  bool fits() const { return ranks[fullest()].total() <= limit; }
  StepTime decodeTime() const, prefillTime() const;
};

// Why a grid cannot be, or its costs.
using CostsOf = std::function<std::optional<GridCosts>(const Grid &)>;

// All grids of `ranks` ranks; those with more stages than layers, or more experts' ranks than experts, are none.
std::vector<Grid> gridsOf(int64_t ranks, int64_t layers, int64_t experts);

RankMemory memoryOf(const GridCosts &costs, const Held &held, const Workload &workload);
Candidate evaluate(const GridCosts &costs, const Machine &machine, const Workload &workload);

// Best first: what fits before what does not; of those the fastest to decode, of the others the one that lacks least.
std::vector<Candidate> search(int64_t ranks, int64_t layers, int64_t experts, const CostsOf &costsOf,
                              const Machine &machine, const Workload &workload);

// "8 stages x 1 x 2"; the best grid's own name for people.
std::string nameOf(const Grid &grid);
// Why `other` is not the choice.
std::string whyNot(const Candidate &best, const Candidate &other);

// What would make a model fit that does not: each alone, nothing where it does not help.
struct Remedies {
  int64_t batch = 0;   // the most sequences
  int64_t context = 0; // the longest
  bool withInt8Cache = false;
  int64_t ranks = 0;                 // the fewest
  std::vector<std::string> machines; // others, with as many ranks
};
Remedies remediesFor(int64_t ranks, int64_t layers, int64_t experts, const CostsOf &costsOf, const Machine &machine,
                     const Workload &workload);

} // namespace llmc::sharding
