#include "lib/reference/TileKernels.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/reference/Formulas.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace llmc;
using namespace llmc::reference;

// A fused multiply-add is one instruction or a library call; the result is the same. This picks by the host.
#if defined(__x86_64__) && defined(__clang__)
#define LLMC_FAST_FMA __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define LLMC_FAST_FMA
#endif

namespace {

constexpr int64_t lanes = lanesPerBlock; // columns of a panel that are summed together

inline float flushSubnormal(float x) { return std::abs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }

template <typename T> T read(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The columns of one tile in groups of 16: their panel, their place in it, and how many of them the result has.
template <typename Body> void forLanes(const PackedLayout &layout, std::span<float> result, Body body) {
  for (int64_t first = 0; first < static_cast<int64_t>(result.size()); first += lanes) {
    float sums[lanes] = {};
    body(first / layout.panel, first % layout.panel, sums);
    std::copy_n(sums, std::min<int64_t>(lanes, static_cast<int64_t>(result.size()) - first), result.begin() + first);
  }
}

LLMC_FAST_FMA void sumF32(const float *x, int64_t k, const uint8_t *w, int64_t step, float *sums) {
  for (int64_t i = 0; i < k; ++i, w += step) {
    float row[lanes];
    std::memcpy(row, w, sizeof(row));
    for (int64_t l = 0; l < lanes; ++l)
      sums[l] = __builtin_fmaf(x[i], row[l], sums[l]);
  }
}

LLMC_FAST_FMA void sumBf16(const float *x, int64_t pairs, const uint8_t *w, int64_t step, float *sums) {
  for (int64_t i = 0; i < pairs; ++i, w += step) {
    uint32_t row[lanes];
    std::memcpy(row, w, sizeof(row));
    const float even = x[2 * i], odd = x[2 * i + 1];
    for (int64_t l = 0; l < lanes; ++l) {
      const float high = flushSubnormal(std::bit_cast<float>(row[l] & 0xffff0000u));
      const float low = flushSubnormal(std::bit_cast<float>(row[l] << 16));
      sums[l] = flushSubnormal(__builtin_fmaf(odd, high, sums[l]));
      sums[l] = flushSubnormal(__builtin_fmaf(even, low, sums[l]));
    }
  }
}

// Code of lane l at place k of group g in a block.
int32_t codeAt(const uint8_t *block, WeightForm form, int64_t g, int64_t l, int64_t k) {
  if (form == WeightForm::I8)
    return block[512 * g + 64 * (k / 4) + 4 * l + k % 4] - 128;
  const uint8_t byte = block[256 * g + 64 * ((k / 4) % 4) + 4 * l + k % 4];
  const int32_t nibble = k < 16 ? byte & 15 : byte >> 4;
  return form == WeightForm::I4 ? nibble - 8 : nibble;
}

} // namespace

void llmc::reference::dotF32(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout,
                             std::span<float> result) {
  const int64_t step = layout.panel * 4;
  forLanes(layout, result, [&](int64_t panel, int64_t place, float *sums) {
    sumF32(x.data(), layout.k, tile + panel * layout.k * step + place * 4, step, sums);
  });
}

void llmc::reference::dotBf16(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout,
                              std::span<float> result) {
  const int64_t pairs = (layout.k + 1) / 2, step = layout.panel * 4;
  std::vector<float> padded(static_cast<size_t>(2 * pairs));
  std::ranges::transform(x, padded.begin(), flushSubnormal);
  forLanes(layout, result, [&](int64_t panel, int64_t place, float *sums) {
    sumBf16(padded.data(), pairs, tile + panel * pairs * step + place * 4, step, sums);
  });
}

void llmc::reference::scaledDot(std::span<const int16_t> codes, std::span<const float> scales, const uint8_t *tile,
                                const PackedLayout &layout, std::span<float> result) {
  const int64_t blocks = layout.paddedTile() / lanes, scaleAt = layout.form == WeightForm::I8 ? 1024 : 512;
  std::ranges::fill(result, 0.0f);
  for (size_t group = 0; group < scales.size(); ++group) {
    const int16_t *x = codes.data() + group * valuesPerGroup;
    const int64_t g = static_cast<int64_t>(group % 2);
    int32_t codeSum = 0;
    for (int64_t k = 0; k < valuesPerGroup; ++k)
      codeSum += x[k];
    for (size_t n = 0; n < result.size(); ++n) {
      const int64_t l = static_cast<int64_t>(n) % lanes;
      const uint8_t *block =
          tile + (static_cast<int64_t>(group / 2) * blocks + static_cast<int64_t>(n) / lanes) * layout.blockBytes();
      int32_t sum = 0;
      for (int64_t k = 0; k < valuesPerGroup; ++k)
        sum += x[k] * codeAt(block, layout.form, g, l, k);
      const float scale = fromF16(read<uint16_t>(block + scaleAt + 32 * g + 2 * l)) * scales[group];
      result[n] = std::fma(static_cast<float>(sum), scale, result[n]);
      if (layout.form != WeightForm::I4M)
        continue;
      const float minimum = fromF16(read<uint16_t>(block + 576 + 32 * g + 2 * l)) * scales[group];
      result[n] = std::fma(static_cast<float>(codeSum), minimum, result[n]);
    }
  }
}

// 127 * 256: see tile.quantize.
constexpr float largestCode = 32512;

void llmc::reference::quantize(std::span<const float> x, std::span<int16_t> codes, std::span<float> scales) {
  std::ranges::fill(codes, static_cast<int16_t>(0));
  for (size_t group = 0; group < scales.size(); ++group) {
    const size_t first = std::min(group * valuesPerGroup, x.size());
    std::span<const float> part = x.subspan(first, std::min<size_t>(valuesPerGroup, x.size() - first));
    float top = 0;
    for (float value : part)
      top = std::max(top, std::abs(value));
    scales[group] = top / largestCode;
    if (top == 0)
      continue;
    const float inverse = 1 / scales[group];
    for (size_t i = 0; i < part.size(); ++i) {
      // The clamp only bites where the inverse overflows (a maximum near the smallest numbers) or x is no number.
      const float code = std::nearbyint(part[i] * inverse);
      codes[first + i] = static_cast<int16_t>(std::isnan(code) ? 0 : std::clamp(code, -largestCode, largestCode));
    }
  }
}

namespace {
template <typename Combine> float reduce(std::span<const float> x, float identity, Combine combine) {
  float partial[16];
  std::ranges::fill(partial, identity);
  for (size_t i = 0; i < x.size(); ++i)
    partial[i % 16] = combine(partial[i % 16], x[i]);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      partial[i] = combine(partial[i], partial[i + half]);
  return partial[0];
}
} // namespace

float llmc::reference::reduceAdd(std::span<const float> x) {
  return reduce(x, 0, [](float a, float b) { return a + b; });
}

float llmc::reference::reduceMax(std::span<const float> x) {
  return reduce(x, -std::numeric_limits<float>::infinity(), [](float a, float b) { return std::max(a, b); });
}

//===-- cache
//-------------------------------------------------------------------------------------------------------===//

uint8_t *CacheView::at(bool value, int64_t head, int64_t position, int64_t channel) const {
  const int64_t inPage = position % page, unit = pairs ? 2 : 1;
  int64_t place = (value ? heads + head : head) * page * headDim;
  if (!value)
    place += inPage / panel * panel * headDim + (channel / unit * panel + inPage % panel) * unit + channel % unit;
  else if (pairs)
    place += channel / panel * panel * page + (inPage / 2 * panel + channel % panel) * 2 + inPage % 2;
  else
    place += inPage * headDim + channel;
  return memory + pages[position / page] * pageBytes + offset + place * elementBytes();
}

uint8_t *CacheView::scaleAt(bool value, int64_t head, int64_t position) const {
  const int64_t place = 2 * heads * page * headDim + 4 * ((value ? heads + head : head) * page + position % page);
  return memory + pages[position / page] * pageBytes + offset + place;
}

float CacheView::load(bool value, int64_t head, int64_t position, int64_t channel) const {
  const uint8_t *bytes = at(value, head, position, channel);
  switch (element) {
  case CacheElement::F32:
    return read<float>(bytes);
  case CacheElement::BF16:
    return fromBf16(read<uint16_t>(bytes));
  case CacheElement::F16:
    return fromF16(read<uint16_t>(bytes));
  case CacheElement::I8:
    return static_cast<float>(read<int8_t>(bytes));
  }
  return 0;
}

float CacheView::scale(bool value, int64_t head, int64_t position) const {
  return element == CacheElement::I8 ? read<float>(scaleAt(value, head, position)) : 1;
}

float llmc::reference::roundToCache(std::span<float> head, CacheElement element) {
  float top = 0;
  for (float &x : head) {
    if (element == CacheElement::BF16)
      x = roundToBf16(x);
    if (element == CacheElement::F16)
      x = fromF16(f16FromF32(x));
    top = std::max(top, std::abs(x));
  }
  if (element != CacheElement::I8)
    return 1;
  const float scale = top / 127, inverse = top > 0 ? 1 / scale : 0;
  for (float &x : head) // the clamp only bites where the inverse overflows, or x is no number
    x = std::clamp(std::nearbyint(x * inverse), -127.0f, 127.0f);
  return scale;
}

void CacheView::append(bool value, int64_t head, int64_t position, std::span<const float> channels) const {
  std::vector<float> rounded(channels.begin(), channels.end());
  const float scale = roundToCache(rounded, element);
  if (element == CacheElement::I8)
    std::memcpy(scaleAt(value, head, position), &scale, 4);
  for (int64_t channel = 0; channel < headDim; ++channel) {
    const float x = rounded[static_cast<size_t>(channel)];
    const uint16_t half = element == CacheElement::BF16 ? bf16FromF32(x) : f16FromF32(x);
    const auto code = static_cast<int8_t>(element == CacheElement::I8 ? x : 0);
    const void *bytes = element == CacheElement::F32  ? static_cast<const void *>(&x)
                        : element == CacheElement::I8 ? static_cast<const void *>(&code)
                                                      : &half;
    std::memcpy(at(value, head, position, channel), bytes, static_cast<size_t>(elementBytes()));
  }
}

namespace {

constexpr float kNothing = -1.0e30f; // below every score
constexpr double log2e = 1.4426950408889634;
constexpr int64_t pairBlock = 32; // what a matrix unit adds up at once

// Minimax on [-1/2, 1/2] with the constant fixed to 1; the exponent is added to its bits.
float exp2Polynomial(float x) {
  x = std::max(x, -126.0f);
  const float whole = std::nearbyint(x), rest = x - whole;
  float result = 0.00132647271f;
  for (float coefficient : {0.00967151265f, 0.0555073374f, 0.240222421f, 0.693146978f, 1.0f})
    result = std::fma(result, rest, coefficient);
  return std::bit_cast<float>(std::bit_cast<int32_t>(result) + (static_cast<int32_t>(whole) << 23));
}

// sum += x(i) * y(i) for i < count, one after the other or as a matrix unit adds pairs.
template <typename X, typename Y> void addProducts(float &sum, int64_t count, bool pairs, X x, Y y) {
  if (!pairs) {
    for (int64_t i = 0; i < count; ++i)
      sum = std::fma(y(i), x(i), sum);
    return;
  }
  for (int64_t block = 0; block < count; block += pairBlock) {
    float halves[2] = {};
    for (int64_t i = block; i < std::min(block + pairBlock, count); ++i)
      halves[i % 2] = flushSubnormal(std::fma(flushSubnormal(y(i)), flushSubnormal(x(i)), halves[i % 2]));
    sum = flushSubnormal(flushSubnormal(sum) + flushSubnormal(halves[0] + halves[1]));
  }
}

// Online softmax of one query head: running maximum, sixteen sums, result.
struct Softmax {
  explicit Softmax(int64_t depth) : result(static_cast<size_t>(depth)) {}
  float maximum = kNothing;
  float sums[lanes] = {};
  std::vector<float> result;

  void rescale(float next) {
    const float factor = exp2Polynomial(maximum - next);
    for (float &sum : sums)
      sum *= factor;
    if (next != maximum)
      for (float &value : result)
        value *= factor;
    maximum = next;
  }
  void add(const Softmax &span) {
    const float next = std::max(maximum, span.maximum);
    const float kept = exp2Polynomial(maximum - next), added = exp2Polynomial(span.maximum - next);
    for (int64_t l = 0; l < lanes; ++l)
      sums[l] = std::fma(span.sums[l], added, sums[l] * kept);
    for (size_t d = 0; d < result.size(); ++d)
      result[d] = std::fma(span.result[d], added, result[d] * kept);
    maximum = next;
  }
};

float scaledScore(float score, const AttendShape &shape) {
  if (shape.softcap > 0)
    return std::tanh(score * (shape.scale / shape.softcap)) * static_cast<float>(shape.softcap * log2e);
  return score * static_cast<float>(shape.scale * log2e);
}

// Positions `first` .. `last` of the page that starts at `start`.
void addPage(Softmax &softmax, std::span<const float> query, const CacheView &cache, int64_t head, int64_t start,
             int64_t first, int64_t last, const AttendShape &shape) {
  const bool pairs = cache.pairs;
  std::vector<float> p(static_cast<size_t>(last + 1 - start));
  float next = softmax.maximum;
  for (int64_t j = first; j <= last; ++j) {
    float score = 0;
    addProducts(
        score, cache.headDim, pairs, [&](int64_t d) { return query[static_cast<size_t>(d)]; },
        [&](int64_t d) { return cache.load(/*value=*/false, head, j, d); });
    p[static_cast<size_t>(j - start)] = scaledScore(score * cache.scale(/*value=*/false, head, j), shape);
    next = std::max(next, p[static_cast<size_t>(j - start)]);
  }
  softmax.rescale(next);
  for (int64_t j = first; j <= last; ++j) {
    float &weight = p[static_cast<size_t>(j - start)];
    weight = exp2Polynomial(weight - next);
    if (pairs)
      weight = roundToBf16(weight);
    softmax.sums[(j - start) % lanes] += weight;
    weight *= cache.scale(/*value=*/true, head, j);
  }
  for (int64_t d = 0; d < cache.headDim; ++d)
    addProducts(
        softmax.result[static_cast<size_t>(d)], last + 1 - start, pairs,
        [&](int64_t j) { return p[static_cast<size_t>(j)]; },
        [&](int64_t j) { return start + j < first ? 0.0f : cache.load(/*value=*/true, head, start + j, d); });
}

} // namespace

void llmc::reference::attend(std::span<const float> query, const CacheView &cache, int64_t head, int64_t position,
                             const AttendShape &shape, std::span<float> result) {
  const int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
  const int64_t span = shape.span > 0 ? shape.span : position + 1;
  const size_t depth = static_cast<size_t>(cache.headDim);
  std::vector<float> rounded(query.begin(), query.end());
  if (cache.pairs)
    std::ranges::transform(rounded, rounded.begin(), roundToBf16);
  for (size_t q = 0; q < query.size(); q += depth) {
    Softmax total(cache.headDim);
    for (int64_t index = first / span; index <= position / span; ++index) {
      Softmax part(cache.headDim);
      const int64_t begin = std::max(first, index * span), end = std::min(position, (index + 1) * span - 1);
      for (int64_t start = begin / cache.page * cache.page; start <= end; start += cache.page)
        addPage(part, std::span(rounded).subspan(q, depth), cache, head, start, std::max(start, begin),
                std::min(start + cache.page - 1, end), shape);
      total.add(part);
    }
    const float sum = reduceAdd(total.sums);
    for (size_t d = 0; d < depth; ++d)
      result[q + d] = total.result[d] / sum;
  }
}
