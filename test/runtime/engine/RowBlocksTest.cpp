// A block is what a smaller step would be: sequences that begin before it or end behind it, and rows of nobody else.
#include "runtime/engine/RowBlocks.h"
#include "runtime/engine/BatchArrays.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

using Ints = std::vector<int32_t>;

// Sequences of (positions before the step, rows).
BatchArrays batchOf(const std::vector<std::pair<int32_t, int32_t>> &sequences) {
  BatchArrays arrays;
  arrays.pageTableStride = 2;
  arrays.queryStart.push_back(0);
  for (auto [before, rows] : sequences) {
    auto sequence = static_cast<int32_t>(arrays.length.size());
    for (int32_t row = 0; row < rows; ++row) {
      arrays.tokens.push_back(100 * sequence + row);
      arrays.positions.push_back(before + row);
      arrays.tokenSequence.push_back(sequence);
    }
    arrays.queryStart.push_back(static_cast<int32_t>(arrays.tokens.size()));
    arrays.length.push_back(before + rows);
    arrays.stateSlots.push_back(10 + sequence);
    arrays.pageTable.insert(arrays.pageTable.end(), {2 * sequence, 2 * sequence + 1});
  }
  return arrays;
}

Ints some(const int32_t *values, int32_t count) { return Ints(values, values + count); }

TEST(RowBlocks, CutSequencesWhereTheRowsAre) {
  BatchArrays arrays = batchOf({{7, 1}, {3, 1}, {0, 5}, {4, 4}});
  RowBlocks blocks(2, 5, 16, 4);
  blocks.cut(arrays.view());
  ASSERT_EQ(blocks.used(), 2);
  const llmc_batch &a = blocks.batches()[0], &b = blocks.batches()[1];
  EXPECT_EQ(blocks.firstRow(0), 0);
  EXPECT_EQ(blocks.firstRow(1), 5); // 11 rows / 2

  ASSERT_EQ(a.num_tokens, 5);
  ASSERT_EQ(a.num_sequences, 3);
  EXPECT_EQ(some(a.tokens, 5), (Ints{0, 100, 200, 201, 202}));
  EXPECT_EQ(some(a.positions, 5), (Ints{7, 3, 0, 1, 2}));
  EXPECT_EQ(some(a.token_sequence, 5), (Ints{0, 1, 2, 2, 2}));
  EXPECT_EQ(some(a.query_start, 4), (Ints{0, 1, 2, 5}));
  EXPECT_EQ(some(a.length, 3), (Ints{8, 4, 3})); // the third has not ended: as many as its rows, it starts here
  EXPECT_EQ(some(a.state_slots, 3), (Ints{10, 11, 12}));

  ASSERT_EQ(b.num_tokens, 6);
  ASSERT_EQ(b.num_sequences, 2);
  EXPECT_EQ(some(b.tokens, 6), (Ints{203, 204, 300, 301, 302, 303}));
  EXPECT_EQ(some(b.positions, 6), (Ints{3, 4, 4, 5, 6, 7}));
  EXPECT_EQ(some(b.token_sequence, 6), (Ints{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(some(b.query_start, 3), (Ints{0, 2, 6}));
  EXPECT_EQ(some(b.length, 2), (Ints{5, 8}));
  EXPECT_EQ(some(b.state_slots, 2), (Ints{12, 13}));
  EXPECT_EQ(some(b.page_table, 4), (Ints{4, 5, 6, 7}));
  EXPECT_EQ(a.num_logit_rows + b.num_logit_rows, 0);
}

TEST(RowBlocks, ASequenceMayLieInAllOfThem) {
  BatchArrays arrays = batchOf({{2, 9}});
  RowBlocks blocks(3, 3, 16, 4);
  blocks.cut(arrays.view());
  ASSERT_EQ(blocks.used(), 3);
  for (int32_t block = 0; block < 3; ++block) {
    const llmc_batch &part = blocks.batches()[static_cast<size_t>(block)];
    EXPECT_EQ(blocks.firstRow(static_cast<size_t>(block)), 3 * block);
    EXPECT_EQ(part.num_tokens, 3);
    EXPECT_EQ(some(part.query_start, 2), (Ints{0, 3}));
    EXPECT_EQ(part.length[0], 5 + 3 * block);
  }
}

TEST(RowBlocks, FewRowsAreOneBlock) {
  RowBlocks blocks(3, 4, 16, 4);
  for (auto [rows, used] : {std::pair(1, 1), std::pair(7, 1), std::pair(8, 2), std::pair(11, 2), std::pair(12, 3)}) {
    BatchArrays arrays = batchOf({{0, rows}});
    blocks.cut(arrays.view());
    EXPECT_EQ(blocks.used(), used);
    int32_t all = 0;
    for (const llmc_batch &part : blocks.batches())
      all += part.num_tokens;
    EXPECT_EQ(all, rows);
    EXPECT_EQ(blocks.batches()[2].num_tokens > 0, used == 3);
  }
}

} // namespace
} // namespace llmc
