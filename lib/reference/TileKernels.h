// The arithmetic of the tile ops that are more than elementwise, in the exact order that their descriptions fix: what a
// kernel must match bit by bit.
#pragma once
#include "lib/weights/PackedLayout.h"
#include <cstdint>
#include <span>

namespace llmc::reference {

/// result[n] = fma(x[k], w[k, n], result[n]) for ascending k, on one tile of packed f32.
void dotF32(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout, std::span<float> result);
/// The same for bf16 numbers: per pair of k first the odd, then the even product is added by fma. Subnormal inputs and
/// sums count as zero of their sign, as the AVX-512 instruction has it.
void dotBf16(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout, std::span<float> result);
/// Exact integer sums per group of 32, then fma with the scales: see tile.scaled_dot.
void scaledDot(std::span<const int16_t> codes, std::span<const float> scales, const uint8_t *tile,
               const PackedLayout &layout, std::span<float> result);
void quantize(std::span<const float> x, std::span<int16_t> codes, std::span<float> scales);
/// Sixteen partial results, then halves.
float reduceAdd(std::span<const float> x);
float reduceMax(std::span<const float> x);

/// One layer's part of a paged cache as one sequence sees it.
struct CacheView {
  uint8_t *memory;      // of all pages
  int64_t pageBytes;    // from page to page
  int64_t offset;       // of this layer in a page
  const int32_t *pages; // of the sequence
  int64_t heads, headDim, page, panel;
  bool bf16; // else f32

  // As llm::KvType::hasPairs.
  bool pairs() const { return bf16 && headDim % panel == 0; }

  float load(bool value, int64_t head, int64_t position, int64_t channel) const;
  void store(bool value, int64_t head, int64_t position, int64_t channel, float x) const;

private:
  uint8_t *at(bool value, int64_t head, int64_t position, int64_t channel) const;
};

struct AttendShape {
  float scale, softcap;
  int64_t window;
  int64_t span = 0;
};
/// Query heads that share key-value head `head`, online over the pages: see tile.attend. To the bit what kernels
/// compute, but for the tanh of a softcap.
void attend(std::span<const float> query, const CacheView &cache, int64_t head, int64_t position,
            const AttendShape &shape, std::span<float> result);

} // namespace llmc::reference
