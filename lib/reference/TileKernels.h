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

/// One layer's part of a paged cache as one sequence sees it.
struct CacheView {
  uint8_t *memory;      // of all pages
  int64_t pageBytes;    // from page to page
  int64_t offset;       // of this layer in a page
  const int32_t *pages; // of the sequence
  int64_t heads, headDim, page, panel;
  CacheElement element;
  bool pairs = false; // as llm::KvType::hasPairs


  // An element, or an i8's code, which times `scale` is the element.
  float load(bool value, int64_t head, int64_t position, int64_t channel) const;
  float scale(bool value, int64_t head, int64_t position) const;
  void append(bool value, int64_t head, int64_t position, std::span<const float> channels) const;

private:
  int64_t elementBytes() const { return element == CacheElement::F32 ? 4 : element == CacheElement::I8 ? 1 : 2; }
  uint8_t *at(bool value, int64_t head, int64_t position, int64_t channel) const;
  uint8_t *scaleAt(bool value, int64_t head, int64_t position) const;
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
