// How many ranks share a model, and in which ways.
#pragma once
#include <cstdint>

namespace llmc::sharding {

// Ranks that share layers: `experts` of them hold different experts, for each of which `tensor` share every matrix;
// everything else is shared by all.
struct Group {
  int64_t experts = 1, tensor = 1;
  int64_t ranks() const { return experts * tensor; }
};

// Groups one after the other, each with its own layers. Rank number r of stage s is s * group.ranks() + r.
struct Grid {
  int64_t stages = 1;
  Group group = {};
  int64_t ranks() const { return stages * group.ranks(); }
};

} // namespace llmc::sharding
