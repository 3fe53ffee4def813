#include "lib/sharding/Partition.h"
#include <algorithm>
#include <numeric>

namespace llmc::sharding {

Partition balanced(int64_t units, int64_t ranks) {
  Partition partition;
  int64_t begin = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t end = begin + units / ranks + (rank < units % ranks ? 1 : 0);
    partition.push_back({begin, end});
    begin = end;
  }
  return partition;
}

Partition partitionHeads(int64_t heads, int64_t groupSize, int64_t ranks) {
  int64_t groups = heads / groupSize;
  if (groups >= ranks)
    return scaled(balanced(groups, ranks), groupSize);
  Partition partition;
  int64_t group = 0;
  for (const Range &own : balanced(ranks, groups)) {
    for (const Range &part : balanced(groupSize, own.size()))
      partition.push_back({group * groupSize + part.begin, group * groupSize + part.end});
    ++group;
  }
  return partition;
}

Partition keyHeadsOf(const Partition &heads, int64_t groupSize) {
  Partition partition;
  for (const Range &range : heads)
    partition.push_back(range.size() == 0 ? Range{range.begin / groupSize, range.begin / groupSize}
                                          : Range{range.begin / groupSize, (range.end + groupSize - 1) / groupSize});
  return partition;
}

bool readsEvenly(const Range &heads, const Range &keys, int64_t groupSize) {
  if (keys.size() == 0)
    return heads.size() == 0;
  if (heads.size() % keys.size() != 0)
    return false;
  for (int64_t head = heads.begin; head < heads.end; ++head)
    if (keys.begin + (head - heads.begin) / (heads.size() / keys.size()) != head / groupSize)
      return false;
  return true;
}

Partition scaled(Partition partition, int64_t factor) {
  for (Range &range : partition)
    range = {range.begin * factor, range.end * factor};
  return partition;
}

int64_t unitOf(int64_t size, int64_t granule, int64_t ranks) {
  for (int64_t width : {64, 32, 16}) {
    int64_t unit = std::lcm(granule, width);
    if (size % unit == 0 && size / unit >= ranks)
      return unit;
  }
  return granule;
}

} // namespace llmc::sharding
