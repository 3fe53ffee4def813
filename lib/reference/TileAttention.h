// The paged cache and attention over it, in the exact order that tile.attend and tile.select_positions fix.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include <cstdint>
#include <optional>
#include <span>

namespace llmc::reference {

enum class CacheElement { F32, BF16, F16, I8 };
inline CacheElement elementOf(llm::KvType kv) {
  mlir::Type type = kv.getElementType();
  return type.isBF16()  ? CacheElement::BF16
         : type.isF16() ? CacheElement::F16
         : type.isF32() ? CacheElement::F32
                        : CacheElement::I8;
}
/// What a cache makes of one head's key or value, in place: codes for i8, whose scale is returned, else 1.
float roundToCache(std::span<float> head, CacheElement element);

/// One layer's part of a paged cache as one sequence sees it. Where the cache keeps one row of several positions,
/// `position` counts its rows, here and below.
struct CacheView {
  uint8_t *memory;      // of all pages
  int64_t pageBytes;    // from page to page
  int64_t offset;       // of this layer in a page
  const int32_t *pages; // of the sequence
  llm::KvType kv;

  // An element, or an i8's code, which times `scale` is the element. Values of latent caches are read from the keys.
  float load(bool value, int64_t head, int64_t position, int64_t channel) const;
  float scale(bool value, int64_t head, int64_t position) const;
  void append(bool value, int64_t head, int64_t position, std::span<const float> channels) const;

private:
  int64_t lastPositionOf(int64_t row) const { return (row + 1) * kv.getEvery() - 1; }
  int64_t rowInPage(int64_t row) const { return lastPositionOf(row) % kv.getPage() / kv.getEvery(); }
  uint8_t *pageOf(int64_t row) const { return memory + pages[lastPositionOf(row) / kv.getPage()] * pageBytes + offset; }
  int64_t elementBytes() const { return kv.getElementType().getIntOrFloatBitWidth() / 8; }
  uint8_t *at(bool value, int64_t head, int64_t position, int64_t channel) const;
  uint8_t *scaleAt(bool value, int64_t head, int64_t position) const;
};

struct AttendShape {
  float scale, softcap;
  int64_t window;
  int64_t span = 0;
  int64_t chunk = 0;
  std::span<const float> slopes = {}, sinks = {};      // of the query's heads; empty: none
  std::optional<std::span<const float>> selected = {}; // positions
};
/// Query heads that share key-value head `head`, online over the pages: see tile.attend. To the bit what kernels
/// compute, but for the tanh of a softcap and the log of logsums, which are given where they are wanted. A row at
/// position -1 sees nothing.
void attend(std::span<const float> query, const CacheView &cache, int64_t head, int64_t position,
            const AttendShape &shape, std::span<float> result, std::span<float> logsums = {});

/// See tile.select_positions.
void selectPositions(std::span<const float> query, std::span<const float> weights, const CacheView &cache,
                     int64_t position, std::span<float> result);

} // namespace llmc::reference
