#include "runtime/engine/RowBlocks.h"
#include <algorithm>

namespace llmc {

RowBlocks::RowBlocks(int32_t blocks, int32_t rowsPerBlock, int32_t maxTokens, int32_t maxSequences)
    : rowsPerBlock_(rowsPerBlock), batches_(static_cast<size_t>(blocks)), firstRows_(batches_.size()),
      tokenSequence_(static_cast<size_t>(maxTokens)),
      queryStart_(batches_.size(), std::vector<int32_t>(static_cast<size_t>(maxSequences) + 1)),
      length_(batches_.size(), std::vector<int32_t>(static_cast<size_t>(maxSequences))) {}

void RowBlocks::cut(const llmc_batch &batch) {
  auto blocks = static_cast<int32_t>(batches_.size());
  used_ = std::clamp(batch.num_tokens / rowsPerBlock_, 1, blocks);
  for (int32_t block = 0; block < blocks; ++block) {
    auto edge = [&](int32_t number) {
      return static_cast<int32_t>(static_cast<int64_t>(batch.num_tokens) * std::min(number, used_) / used_);
    };
    cutBlock(batch, edge(block), edge(block + 1), static_cast<size_t>(block));
  }
}

void RowBlocks::cutBlock(const llmc_batch &batch, int32_t first, int32_t end, size_t block) {
  llmc_batch &part = batches_[block];
  part = batch;
  part.num_tokens = end - first;
  part.num_sequences = part.num_logit_rows = 0;
  firstRows_[block] = first;
  if (first == end)
    return;
  const int32_t firstSequence = batch.token_sequence[first];
  part.num_sequences = batch.token_sequence[end - 1] - firstSequence + 1;
  for (int32_t row = first; row < end; ++row)
    tokenSequence_[static_cast<size_t>(row)] = batch.token_sequence[row] - firstSequence;
  std::vector<int32_t> &starts = queryStart_[block], &lengths = length_[block];
  for (int32_t i = 0; i < part.num_sequences; ++i) {
    const int32_t sequence = firstSequence + i, sequenceEnd = batch.query_start[sequence + 1];
    starts[static_cast<size_t>(i)] = std::max(batch.query_start[sequence], first) - first;
    starts[static_cast<size_t>(i) + 1] = std::min(sequenceEnd, end) - first;
    lengths[static_cast<size_t>(i)] = batch.length[sequence] - std::max(sequenceEnd - end, 0);
  }
  part.tokens += first;
  part.positions += first;
  part.token_sequence = tokenSequence_.data() + first;
  part.query_start = starts.data();
  part.length = lengths.data();
  part.page_table += static_cast<int64_t>(firstSequence) * batch.page_table_stride;
  part.state_slots += firstSequence;
}

} // namespace llmc
