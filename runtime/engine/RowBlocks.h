// RowBlocks: one step's batch cut into blocks of consecutive rows, each a batch of its own. To a step program a block
// is what a smaller step would be, with those before it computed: a sequence may begin in one block and go on in the
// next.
#pragma once
#include "runtime/llmc_abi.h"
#include <span>
#include <vector>

namespace llmc {

class RowBlocks {
public:
  // Up to `blocks` blocks of at least `rowsPerBlock` rows, of batches of up to so many rows and sequences.
  RowBlocks(int32_t blocks, int32_t rowsPerBlock, int32_t maxTokens, int32_t maxSequences);

  // Blocks of `batch`, valid until the next call; allocates nothing. They have no logit rows.
  void cut(const llmc_batch &batch);
  // All of them; the last ones may be empty.
  std::span<const llmc_batch> batches() const { return batches_; }
  int32_t firstRow(size_t block) const { return firstRows_[block]; }
  // How many are not empty.
  int32_t used() const { return used_; }

private:
  // Sequences of rows `first` .. `end` - 1, whose arrays begin where those of the blocks before end.
  void cutBlock(const llmc_batch &batch, int32_t first, int32_t end, size_t block);

  int32_t rowsPerBlock_;
  int32_t used_ = 0;
  std::vector<llmc_batch> batches_;
  std::vector<int32_t> firstRows_;
  std::vector<int32_t> tokenSequence_;
  std::vector<std::vector<int32_t>> queryStart_, length_; // by block
};

} // namespace llmc
