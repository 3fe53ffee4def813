// Small programs of dimensions, and which of them are cut.
#include "lib/sharding/Dimensions.h"
#include <gtest/gtest.h>

namespace llmc::sharding {
namespace {

constexpr Group four{1, 4};

TEST(Dimensions, AFeedForwardBlockIsCutInside) {
  Dimensions axes;
  Dimension stream = axes.fresh(64), inner = axes.fresh(256), out = axes.fresh(64);
  axes.contract(stream, inner);
  axes.contract(inner, out);
  axes.addWeight(stream, 64 * 256);
  axes.addWeight(inner, 2 * 64 * 256);
  axes.keepWhole(out);
  axes.decide(four);
  EXPECT_TRUE(axes.isCut(inner));
  EXPECT_FALSE(axes.isCut(stream)); // both at once would leave parts of partial sums
  EXPECT_EQ(axes.localSize(inner, 3), 64);
}

TEST(Dimensions, HeadsOfDifferentWidthsAreCutAlike) {
  // Latent attention: heads of 192 channels ask, heads of 128 answer.
  Dimensions axes;
  Dimension asked = axes.fresh(6 * 192), answered = axes.fresh(6 * 128);
  Dimension heads = axes.divided(asked, 192);
  axes.equate(heads, axes.divided(answered, 128));
  axes.anchor(heads);
  axes.decide(four);
  for (auto [rank, count] : {std::pair<size_t, int64_t>{0, 2}, {1, 2}, {2, 1}, {3, 1}}) {
    EXPECT_EQ(axes.localSize(heads, rank), count);
    EXPECT_EQ(axes.localSize(asked, rank), 192 * count);
    EXPECT_EQ(axes.localSize(answered, rank), 128 * count);
  }
}

TEST(Dimensions, PartsOfOneProductAreCutEach) {
  // Queries of 8 heads, keys and values of 2, in one product.
  Dimensions axes;
  Dimension all = axes.fresh(12 * 16);
  Dimension queries = axes.divided(axes.slice(all, 0, 8 * 16), 16),
            keys = axes.divided(axes.slice(all, 8 * 16, 2 * 16), 16);
  axes.anchor(queries);
  axes.readBy(keys, queries, 4);
  axes.decide(four);
  EXPECT_EQ(axes.localSize(queries, 1), 2);
  EXPECT_EQ(axes.localSize(keys, 1), 1); // one key head for two ranks
  EXPECT_EQ(axes.localSize(all, 1), (2 + 1) * 16 + 2 * 16);
  std::vector<Dimensions::Part> parts = axes.partsOf(all);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(*parts[1].partition, (Partition{{0, 16}, {0, 16}, {16, 32}, {16, 32}}));
  EXPECT_FALSE(parts[2].partition);
}

TEST(Dimensions, ExpertsAreDealtOutAndTheirMatricesShared) {
  Dimensions axes;
  Dimension experts = axes.fresh(5), inner = axes.fresh(64), stream = axes.fresh(32);
  axes.markExperts(experts);
  axes.markInsideExpert(inner);
  axes.markInsideExpert(stream);
  axes.markOutsideExperts(stream);
  axes.contract(stream, inner);
  axes.addWeight(inner, 5 * 64 * 32);
  axes.addWeight(stream, 5 * 64 * 32);
  axes.decide({2, 2});
  EXPECT_TRUE(axes.isCutByExperts(experts));
  EXPECT_EQ(axes.localSize(experts, 1), 3);
  EXPECT_EQ(axes.localSize(experts, 2), 2);
  EXPECT_EQ(axes.localSize(inner, 0), 32);
  EXPECT_FALSE(axes.isCut(stream));
}

TEST(Dimensions, WhatCannotBeCutStaysWhole) {
  Dimensions axes;
  Dimension row = axes.fresh(60);
  axes.anchor(row);
  Dimension odd = axes.slice(axes.divided(row, 10), 0, 3); // between heads: both sides may be cut
  Dimension inside = axes.slice(row, 35, 10);              // inside of a head
  axes.decide(four);
  EXPECT_FALSE(axes.isCut(inside));
  EXPECT_FALSE(axes.isCut(row));
  EXPECT_EQ(axes.sizeOf(odd), 3);
}

} // namespace
} // namespace llmc::sharding
