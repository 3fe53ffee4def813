// The arithmetic of the tile ops that carry a state, in the exact order that their descriptions fix.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/weights/PackedLayout.h"
#include <span>

namespace llmc::reference {

/// The recurrent state of one layer and sequence, as it lies in its slot.
struct StateView {
  llm::RecurrentType type;
  float *memory;

  float &at(int64_t head, int64_t key, int64_t value) const { return memory[type.placeOf(head, key, value)]; }
  /// Of the column tile that starts with these: zeros, padding included.
  void clear(int64_t tile, int64_t tiles) const;
};

/// One row of tile.convolve: `tile` is the packed weight of the column, the state of a sequence that starts is cleared.
void convolve(std::span<const float> input, const uint8_t *tile, const PackedLayout &weight, int64_t column,
              const StateView &state, std::span<float> result);

/// The operands of tile.recur; decay and beta may be empty.
struct RecurOperands {
  std::span<const float> query, key, value, decay, beta;
};
void recur(const RecurOperands &operands, int64_t column, const StateView &state, std::span<float> result);

/// One row of tile.pool; `begins` says that it is the first of its window.
void pool(std::span<const float> value, std::span<const float> gate, bool begins, int64_t column,
          const StateView &state, std::span<float> result);

} // namespace llmc::reference
