#include "lib/reference/TileKernels.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/reference/Formulas.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <bit>
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
  return form == WeightForm::I4 ? nibble - 8 : form == WeightForm::F4 ? twiceE2M1[nibble] : nibble;
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

void llmc::reference::dotF8(std::span<const float> x, const uint8_t *tile, const PackedLayout &layout,
                            std::span<float> result) {
  const int64_t blocks = layout.paddedTile() / lanes;
  std::ranges::fill(result, 0.0f);
  for (size_t first = 0; first < x.size(); first += valuesPerGroup) {
    const int64_t group = static_cast<int64_t>(first) / valuesPerGroup;
    for (size_t n = 0; n < result.size(); ++n) {
      const int64_t l = static_cast<int64_t>(n) % lanes;
      const uint8_t *block = tile + (group / 2 * blocks + static_cast<int64_t>(n) / lanes) * layout.blockBytes() + l;
      float sum = 0;
      for (size_t k = first; k < std::min<size_t>(first + valuesPerGroup, x.size()); ++k)
        sum = std::fma(fromF8E4M3(block[16 * (static_cast<int64_t>(k) % 64)]), x[k], sum);
      result[n] = std::fma(sum, read<float>(block + 1024 + 64 * (group % 2) + 3 * l), result[n]);
    }
  }
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
      const int64_t values = valuesPerGroup / layout.numParts();
      for (int64_t part = 0; part < layout.numParts(); ++part) {
        int32_t sum = 0;
        for (int64_t k = part * values; k < (part + 1) * values; ++k)
          sum += x[k] * codeAt(block, layout.form, g, l, k);
        const float scale = fromF16(read<uint16_t>(block + scaleAt + 64 * part + 32 * g + 2 * l)) * scales[group];
        result[n] = std::fma(static_cast<float>(sum), scale, result[n]);
      }
      if (layout.form != WeightForm::I4M)
        continue;
      const float minimum = fromF16(read<uint16_t>(block + 576 + 32 * g + 2 * l)) * scales[group];
      result[n] = std::fma(static_cast<float>(codeSum), minimum, result[n]);
    }
  }
}

void llmc::reference::quantize(std::span<const float> x, float largestCode, std::span<int16_t> codes,
                               std::span<float> scales) {
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

float llmc::reference::exp2Polynomial(float x) {
  x = std::max(x, -126.0f);
  const float whole = std::nearbyint(x), rest = x - whole;
  float result = 0.00132647271f;
  for (float coefficient : {0.00967151265f, 0.0555073374f, 0.240222421f, 0.693146978f, 1.0f})
    result = std::fma(result, rest, coefficient);
  return std::bit_cast<float>(std::bit_cast<int32_t>(result) + (static_cast<int32_t>(whole) << 23));
}

void llmc::reference::sinkhorn(std::span<float> matrix, int64_t size, int64_t iterations, float eps) {
  const auto n = static_cast<size_t>(size);
  auto normalizeColumns = [&] {
    for (size_t j = 0; j < n; ++j) {
      float sum = matrix[j];
      for (size_t i = 1; i < n; ++i)
        sum += matrix[i * n + j];
      for (size_t i = 0; i < n; ++i)
        matrix[i * n + j] /= sum + eps;
    }
  };
  normalizeColumns();
  for (int64_t iteration = 1; iteration < iterations; ++iteration) {
    for (size_t i = 0; i < n; ++i) {
      const float sum = reduceAdd(matrix.subspan(i * n, n)) + eps;
      for (size_t j = 0; j < n; ++j)
        matrix[i * n + j] /= sum;
    }
    normalizeColumns();
  }
}
