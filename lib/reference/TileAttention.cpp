#include "lib/reference/TileAttention.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/reference/Formulas.h"
#include "lib/reference/TileKernels.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <vector>

using namespace llmc;
using namespace llmc::reference;

namespace {
template <typename T> T read(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
} // namespace

//===-- cache --===//

uint8_t *CacheView::at(bool value, int64_t head, int64_t position, int64_t channel) const {
  const int64_t page = kv.rowsPerPage(), panel = kv.getPanel(), depth = kv.getHeadDim();
  const int64_t inPage = rowInPage(position), unit = kv.hasPairs() ? 2 : 1;
  int64_t place;
  if (!value || kv.getLatent())
    place = head * page * depth + inPage / panel * panel * depth + (channel / unit * panel + inPage % panel) * unit +
            channel % unit;
  else if (kv.hasPairs())
    place = kv.getHeads() * page * depth + head * page * kv.getValueDim() + channel / panel * panel * page +
            (inPage / 2 * panel + channel % panel) * 2 + inPage % 2;
  else
    place = kv.getHeads() * page * depth + (head * page + inPage) * kv.getValueDim() + channel;
  return pageOf(position) + place * elementBytes();
}

uint8_t *CacheView::scaleAt(bool value, int64_t head, int64_t position) const {
  const int64_t page = kv.rowsPerPage(), heads = kv.getHeads(), rows = value && !kv.getLatent() ? heads + head : head;
  const int64_t place =
      heads * page * (kv.getHeadDim() + kv.storedValueDim()) + 4 * (rows * page + rowInPage(position));
  return pageOf(position) + place;
}

float CacheView::load(bool value, int64_t head, int64_t position, int64_t channel) const {
  const uint8_t *bytes = at(value, head, position, channel);
  switch (elementOf(kv)) {
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
  return elementOf(kv) == CacheElement::I8 ? read<float>(scaleAt(value, head, position)) : 1;
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
  const CacheElement element = elementOf(kv);
  std::vector<float> rounded(channels.begin(), channels.end());
  const float scale = roundToCache(rounded, element);
  if (element == CacheElement::I8)
    std::memcpy(scaleAt(value, head, position), &scale, 4);
  for (size_t channel = 0; channel < rounded.size(); ++channel) {
    const float x = rounded[channel];
    const uint16_t half = element == CacheElement::BF16 ? bf16FromF32(x) : f16FromF32(x);
    const auto code = static_cast<int8_t>(element == CacheElement::I8 ? x : 0);
    const void *bytes = element == CacheElement::F32  ? static_cast<const void *>(&x)
                        : element == CacheElement::I8 ? static_cast<const void *>(&code)
                                                      : &half;
    std::memcpy(at(value, head, position, static_cast<int64_t>(channel)), bytes, static_cast<size_t>(elementBytes()));
  }
}

//===-- attention --===//

namespace {

constexpr int64_t lanes = 16;        // sums of a row
constexpr float kNothing = -1.0e30f; // below every score
constexpr double log2e = 1.4426950408889634;

inline float flushSubnormal(float x) { return std::abs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }

// How products are added up: one after the other, pair after pair of bf16, or blocks of such pairs.
struct Sums {
  explicit Sums(llm::KvType kv) : pairs(kv.hasPairs()), block(kv.getBlock()) {}
  Sums() = default;
  bool pairs = false;
  int64_t block = 0;
};

// sum += x(i) * y(i) for i < count.
template <typename X, typename Y> void addProducts(float &sum, int64_t count, Sums how, X x, Y y) {
  if (!how.pairs) {
    for (int64_t i = 0; i < count; ++i)
      sum = std::fma(y(i), x(i), sum);
    return;
  }
  auto add = [&](int64_t i, float &to) {
    if (i < count)
      to = flushSubnormal(std::fma(flushSubnormal(y(i)), flushSubnormal(x(i)), to));
  };
  if (how.block == 0) {
    sum = flushSubnormal(sum);
    for (int64_t i = 0; i < count; i += 2) {
      add(i + 1, sum);
      add(i, sum);
    }
    return;
  }
  for (int64_t block = 0; block < count; block += how.block) {
    float halves[2] = {};
    for (int64_t i = block; i < std::min(block + how.block, count); ++i)
      add(i, halves[i % 2]);
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

// One query head against the cache.
struct HeadQuery {
  std::span<const float> channels;
  const CacheView &cache;
  int64_t head, position;
  const AttendShape &shape;
  float slope;
  Sums sums;
};

// The positions of one page, -1 for those that the row does not see.
void addPage(Softmax &softmax, const HeadQuery &query, std::span<const int64_t> positions) {
  const CacheView &cache = query.cache;
  std::vector<float> p(positions.size());
  float next = softmax.maximum;
  for (size_t i = 0; i < p.size(); ++i) {
    const int64_t j = positions[i];
    if (j < 0)
      continue;
    float score = 0;
    addProducts(
        score, cache.kv.getHeadDim(), query.sums, [&](int64_t d) { return query.channels[static_cast<size_t>(d)]; },
        [&](int64_t d) { return cache.load(/*value=*/false, query.head, j, d); });
    p[i] = scaledScore(score * cache.scale(/*value=*/false, query.head, j), query.shape);
    if (query.slope != 0)
      p[i] = std::fma(static_cast<float>(query.slope * log2e), static_cast<float>(j - query.position), p[i]);
    next = std::max(next, p[i]);
  }
  softmax.rescale(next);
  for (size_t i = 0; i < p.size(); ++i) {
    if (positions[i] < 0)
      continue;
    p[i] = exp2Polynomial(p[i] - next);
    if (query.sums.pairs)
      p[i] = roundToBf16(p[i]);
    softmax.sums[i % lanes] += p[i];
    p[i] *= cache.scale(/*value=*/true, query.head, positions[i]);
  }
  for (int64_t d = 0; d < cache.kv.getValueDim(); ++d)
    addProducts(
        softmax.result[static_cast<size_t>(d)], static_cast<int64_t>(p.size()), query.sums,
        [&](int64_t i) { return p[static_cast<size_t>(i)]; },
        [&](int64_t i) {
          const int64_t j = positions[static_cast<size_t>(i)];
          return j < 0 ? 0.0f : cache.load(/*value=*/true, query.head, j, d);
        });
}

// What a row sees as pages of positions: those of the cache, or of the list of selected ones.
class SeenPositions {
public:
  SeenPositions(int64_t position, int64_t page, const AttendShape &shape)
      : position(position), page(page), shape(shape),
        oldest(std::max({int64_t(0), shape.window > 0 ? position - shape.window + 1 : 0,
                         shape.chunk > 0 ? position / shape.chunk * shape.chunk : 0})) {}
  int64_t begin() const { return shape.selected ? 0 : oldest; }
  int64_t end() const { return shape.selected ? static_cast<int64_t>(shape.selected->size()) : position + 1; }
  // Of places first .. last - 1 of the page that starts at `start`.
  std::vector<int64_t> of(int64_t start, int64_t first, int64_t last) const {
    std::vector<int64_t> positions;
    if (!shape.selected) {
      positions.assign(static_cast<size_t>(last - start), -1);
      for (int64_t j = first; j < last; ++j)
        positions[static_cast<size_t>(j - start)] = j;
      return positions;
    }
    for (int64_t entry = first; entry < last; ++entry) {
      const float named = (*shape.selected)[static_cast<size_t>(entry)];
      if (named >= static_cast<float>(oldest) && named <= static_cast<float>(position))
        positions.push_back(static_cast<int64_t>(named));
    }
    return positions;
  }

  const int64_t position, page;
  const AttendShape &shape;
  const int64_t oldest;
};

Softmax attendHead(const HeadQuery &query) {
  const SeenPositions seen(query.position, query.cache.kv.getPage(), query.shape);
  const int64_t page = seen.page, span = query.shape.span > 0 ? query.shape.span : std::max<int64_t>(seen.end(), 1);
  Softmax total(query.cache.kv.getValueDim());
  for (int64_t index = seen.begin() / span; index * span < seen.end(); ++index) {
    Softmax part(query.cache.kv.getValueDim());
    const int64_t begin = std::max(seen.begin(), index * span), end = std::min(seen.end(), (index + 1) * span);
    for (int64_t start = begin / page * page; start < end; start += page)
      addPage(part, query, seen.of(start, std::max(start, begin), std::min(start + page, end)));
    total.add(part);
  }
  return total;
}

} // namespace

void llmc::reference::attend(std::span<const float> query, const CacheView &cache, int64_t head, int64_t position,
                             const AttendShape &shape, std::span<float> result, std::span<float> logsums) {
  const size_t depth = static_cast<size_t>(cache.kv.getHeadDim()), values = static_cast<size_t>(cache.kv.getValueDim());
  const Sums sums = shape.selected ? Sums() : Sums(cache.kv);
  std::vector<float> rounded(query.begin(), query.end());
  if (sums.pairs)
    std::ranges::transform(rounded, rounded.begin(), roundToBf16);
  for (size_t g = 0; g < query.size() / depth; ++g) {
    Softmax total = attendHead({std::span(rounded).subspan(g * depth, depth), cache, head, position, shape,
                                shape.slopes.empty() ? 0 : shape.slopes[g], sums});
    float sum = reduceAdd(total.sums), kept = 1, maximum = total.maximum;
    if (!shape.sinks.empty()) {
      const float sink = shape.sinks[g] * static_cast<float>(log2e), next = std::max(total.maximum, sink);
      kept = exp2Polynomial(total.maximum - next);
      sum = std::fma(sum, kept, exp2Polynomial(sink - next));
      maximum = next;
    }
    if (!logsums.empty())
      logsums[g] = sum == 0 ? kNothing : std::fma(maximum, static_cast<float>(1 / log2e), std::log(sum));
    for (size_t d = 0; d < values; ++d)
      result[g * values + d] = total.result[d] * kept / (sum == 0 ? 1 : sum);
  }
}

void llmc::reference::selectPositions(std::span<const float> query, std::span<const float> weights,
                                      const CacheView &cache, int64_t position, std::span<float> result) {
  const int64_t depth = cache.kv.getHeadDim();
  const Sums sums(cache.kv);
  std::vector<float> rounded(query.begin(), query.end()), scores(static_cast<size_t>(position + 1));
  if (sums.pairs)
    std::ranges::transform(rounded, rounded.begin(), roundToBf16);
  for (int64_t j = 0; j <= position; ++j) {
    float &score = scores[static_cast<size_t>(j)];
    for (size_t h = 0; h < weights.size(); ++h) {
      float product = 0;
      addProducts(
          product, depth, sums,
          [&](int64_t d) { return rounded[h * static_cast<size_t>(depth) + static_cast<size_t>(d)]; },
          [&](int64_t d) { return cache.load(/*value=*/false, 0, j, d); });
      product *= cache.scale(/*value=*/false, 0, j);
      score = std::fma(weights[h], std::max(0.0f, product), score);
    }
  }
  std::vector<int64_t> order(scores.size());
  for (size_t j = 0; j < order.size(); ++j)
    order[j] = static_cast<int64_t>(j);
  const size_t count = std::min(order.size(), result.size());
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    const float ofA = scores[static_cast<size_t>(a)], ofB = scores[static_cast<size_t>(b)];
    return ofA == ofB ? a < b : ofA > ofB;
  });
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  std::ranges::fill(result, -1.0f);
  std::copy_n(order.begin(), count, result.begin());
}
