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

// A step of a rank is computed in as many blocks of rows, of so many rows or more, where it exchanges rows with its
// group: one is computed while the other is on its way. A smaller step is one block.
inline constexpr int64_t rowBlocks = 2, rowsPerBlock = 64;

} // namespace llmc::sharding
