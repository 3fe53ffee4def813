// Partitions by hand, and what holds for all of them.
#include "lib/sharding/Partition.h"
#include <gtest/gtest.h>

namespace llmc::sharding {
namespace {

TEST(Partition, TheFirstRanksGetOneMore) {
  EXPECT_EQ(balanced(8, 3), (Partition{{0, 3}, {3, 6}, {6, 8}}));
  EXPECT_EQ(balanced(2, 3), (Partition{{0, 1}, {1, 2}, {2, 2}}));
}

TEST(Partition, GroupsOfHeadsStayTogetherWhileTheyCan) {
  // 9 heads, three read each of 3 key heads: two ranks take 2 and 1 of these groups.
  EXPECT_EQ(partitionHeads(9, 3, 2), (Partition{{0, 6}, {6, 9}}));
  // 8 heads of 2 groups over 5 ranks: three share the first group, two the second.
  Partition heads = partitionHeads(8, 4, 5);
  EXPECT_EQ(heads, (Partition{{0, 2}, {2, 3}, {3, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(keyHeadsOf(heads, 4), (Partition{{0, 1}, {0, 1}, {0, 1}, {1, 2}, {1, 2}}));
}

TEST(Partition, HeadsReadTheirKeysInEqualGroups) {
  EXPECT_TRUE(readsEvenly({0, 8}, {0, 2}, 4));
  EXPECT_TRUE(readsEvenly({5, 7}, {1, 2}, 4));  // inside of one group
  EXPECT_TRUE(readsEvenly({2, 6}, {0, 2}, 4));  // two of each of two groups
  EXPECT_FALSE(readsEvenly({2, 8}, {0, 2}, 4)); // two of one group and four of the next
  EXPECT_FALSE(readsEvenly({3, 6}, {0, 2}, 4));
  EXPECT_TRUE(readsEvenly({4, 4}, {1, 1}, 4));
}

TEST(Partition, EveryUnitHasOneOwner) {
  for (int64_t heads = 1; heads <= 24; ++heads)
    for (int64_t groupSize = 1; groupSize <= heads; ++groupSize)
      for (int64_t ranks = 1; heads % groupSize == 0 && ranks <= 9; ++ranks) {
        int64_t next = 0;
        Partition partition = partitionHeads(heads, groupSize, ranks);
        ASSERT_EQ(partition.size(), static_cast<size_t>(ranks));
        for (const Range &range : partition) {
          EXPECT_EQ(range.begin, next) << heads << " heads in groups of " << groupSize << " over " << ranks;
          next = range.end;
          // Its heads are whole groups, or all in one.
          bool isWhole = range.begin % groupSize == 0 && range.end % groupSize == 0;
          EXPECT_TRUE(range.size() == 0 || isWhole || range.begin / groupSize == (range.end - 1) / groupSize);
        }
        EXPECT_EQ(next, heads);
      }
}

TEST(Partition, UnitsAreWideWhereThatLeavesEveryRankSome) {
  EXPECT_EQ(unitOf(1536, 1, 8), 64);
  EXPECT_EQ(unitOf(192, 1, 5), 32);
  EXPECT_EQ(unitOf(96, 1, 7), 1);
  EXPECT_EQ(unitOf(1536, 48, 4), 192);
}

} // namespace
} // namespace llmc::sharding
