// How ranks share a model on a machine: the best grid, those behind it, and what would make a model fit that does not.
#pragma once
#include "lib/sharding/Planner.h"
#include "tools/llmc/Plan.h"

namespace llmc {

struct RankPlan {
  std::string model;
  const Machine *machine;
  int64_t ranks = 1;
  sharding::Workload workload;
  std::vector<sharding::Candidate>
      candidates; // best first, never none; only the grid of the options where they have one
  bool isGiven = false;
  sharding::GridCosts costs; // of the best
  // Of the model where it does not fit.
  std::optional<sharding::Remedies> remedies;
  double publishedBytes = 0; // of all files
  double notRunBytes = 0;    // of them, of parts that are not run and elements that nobody reads
  // The bytes are those of the artifact of every rank; where not, and that is a matter of the model, why.
  bool isExact = false;
  std::string estimatedBecause;
  const sharding::Candidate &best() const { return candidates.front(); }
};

struct RankPlanOptions {
  int64_t ranks = 0; // 0: the devices of a node
  int64_t batch = 1;
  const Machine *machine;
};

StatusOr<RankPlan> planRanks(const Model &model, const CompileOptions &options, const RankPlanOptions &wanted);

Json jsonOf(const RankPlan &plan);
// With `explain`, every grid and why it is not the choice.
std::string textOf(const RankPlan &plan, bool explain);
// One page without outside parts: ranks by kind of memory, a step over time.
std::string pageOf(const RankPlan &plan);

} // namespace llmc
