// Which part of a dimension every rank of a group holds. Ranges may be empty, overlap (a key head of two ranks) and be
// of different sizes: nothing here needs a number of ranks that divides anything.
#pragma once
#include <cstdint>
#include <vector>

namespace llmc::sharding {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range &) const = default;
};

// Per rank of the group.
using Partition = std::vector<Range>;

// `units` consecutive things over `ranks`, the first ones get one more where it does not come out even.
Partition balanced(int64_t units, int64_t ranks);

// `heads` query heads, `groupSize` of which read one key-value head. Whole groups while there are as many groups as
// ranks, else the heads of a group over several ranks.
Partition partitionHeads(int64_t heads, int64_t groupSize, int64_t ranks);

// The key-value heads that the query heads of each rank read.
Partition keyHeadsOf(const Partition &heads, int64_t groupSize);

// Whether heads that are numbered from 0 in `heads`, and keys in `keys`, still read theirs by equal groups.
bool readsEvenly(const Range &heads, const Range &keys, int64_t groupSize);

// Every range times a factor.
Partition scaled(Partition partition, int64_t factor);

// Of `size` elements, the width that parts are multiples of: a multiple of `granule`, as wide as kernels like it (64,
// 32, 16) where that leaves every rank something.
int64_t unitOf(int64_t size, int64_t granule, int64_t ranks);

} // namespace llmc::sharding
