// The arrays behind an llmc_batch, whose comments say what they hold.
#pragma once
#include "runtime/llmc_abi.h"
#include <vector>

namespace llmc {

struct BatchArrays {
  std::vector<int32_t> tokens, positions, tokenSequence, queryStart, length, pageTable, stateSlots, logitRows;
  int32_t pageTableStride = 0;

  // As many tokens, sequences and logit rows as there are elements. Valid until one of the arrays grows.
  llmc_batch view() const {
    return {static_cast<int32_t>(tokens.size()),
            static_cast<int32_t>(length.size()),
            static_cast<int32_t>(logitRows.size()),
            pageTableStride,
            tokens.data(),
            positions.data(),
            tokenSequence.data(),
            queryStart.data(),
            length.data(),
            pageTable.data(),
            stateSlots.data(),
            logitRows.data()};
  }
};

} // namespace llmc
