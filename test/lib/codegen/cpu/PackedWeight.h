// Weights packed by the letter of docs/weight-layouts.md, and dots in the order of dialects/tile, as plain loops.
#pragma once
#include "lib/importer/files/Dequantize.h"
#include "test/lib/codegen/cpu/StepRunner.h"
#include <bit>
#include <cmath>
#include <cstring>

namespace llmc::test {

inline uint16_t bf16Bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct PackedWeight {
  std::string form;
  int64_t rows = 0, columns = 0, tile = 0, panel = 0; // N, K, TN, NP
  std::vector<uint8_t> bytes;
  // What the packed form stands for: values (f32 and bf16), or codes with a scale and a minimum per group of 32.
  std::vector<float> values;
  std::vector<int> codes;
  std::vector<float> scales, minima; // [N][groups]; f4: minima are the scales of second halves
  int64_t groups() const { return (columns + 63) / 64 * 2; }
};

inline bool plainForm(const std::string &form) { return form == "f32" || form == "bf16"; }

inline PackedWeight makePlain(PackedWeight w, uint64_t &state) {
  bool bf16 = w.form == "bf16";
  w.values.resize(static_cast<size_t>(w.rows * w.columns));
  for (float &value : w.values)
    value = bf16 ? fromBf16(bf16Bits(randomFloat(state))) : randomFloat(state);
  int64_t padded = (w.tile + 15) / 16 * 16, steps = bf16 ? (w.columns + 31) / 32 * 16 : w.columns;
  int64_t tiles = (w.rows + w.tile - 1) / w.tile;
  w.bytes.assign(static_cast<size_t>(tiles * padded * steps * 4), 0);
  for (int64_t n = 0; n < w.rows; ++n)
    for (int64_t k = 0; k < w.columns; ++k) {
      int64_t place = n % w.tile, panel = place / w.panel, lane = place % w.panel;
      float value = w.values[static_cast<size_t>(n * w.columns + k)];
      int64_t tile = n / w.tile * padded * steps * 4 + panel * steps * w.panel * 4;
      if (bf16) {
        uint16_t bits = bf16Bits(value);
        std::memcpy(&w.bytes[static_cast<size_t>(tile + (k / 2 * w.panel + lane) * 4 + k % 2 * 2)], &bits, 2);
      } else {
        std::memcpy(&w.bytes[static_cast<size_t>(tile + (k * w.panel + lane) * 4)], &value, 4);
      }
    }
  return w;
}

inline PackedWeight makeQuantized(PackedWeight w, uint64_t &state) {
  bool wide = w.form == "i8", floats = w.form == "f4", minima = w.form == "i4m" || floats;
  int64_t vectors = (w.tile + 15) / 16, blocks = (w.columns + 63) / 64, tiles = (w.rows + w.tile - 1) / w.tile;
  int64_t blockBytes = wide ? 1088 : minima ? 640 : 576, groupBytes = wide ? 512 : 256;
  int zero = wide ? 128 : minima ? 0 : 8;
  constexpr int twiceFloats[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  w.bytes.assign(static_cast<size_t>(tiles * blocks * vectors * blockBytes), 0);
  w.codes.assign(static_cast<size_t>(w.rows * blocks * 64), 0);
  w.scales.assign(static_cast<size_t>(w.rows * w.groups()), 0);
  w.minima = w.scales;
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t place = 0; place < vectors * 16; ++place) {
        uint8_t *at = &w.bytes[static_cast<size_t>(((tile * blocks + block) * vectors + place / 16) * blockBytes)];
        int64_t n = tile * w.tile + place, lane = place % 16;
        bool real = place < w.tile && n < w.rows;
        for (int64_t k = 0; k < 64; ++k) {
          int64_t column = block * 64 + k, g = k / 32, inner = k % 32;
          int code = 0;
          if (real && column < w.columns) {
            float r = randomFloat(state);
            code = wide ? static_cast<int>(std::lround(r * 128)) : static_cast<int>(std::floor(r * 8)) + 8 - zero;
            code = std::min(code, wide ? 127 : 15 - zero);
            w.codes[static_cast<size_t>(n * blocks * 64 + column)] = floats ? twiceFloats[code] : code;
          }
          int stored = code + zero;
          if (wide)
            at[groupBytes * g + 64 * (inner / 4) + 4 * lane + inner % 4] = static_cast<uint8_t>(stored);
          else
            at[groupBytes * g + 64 * (inner / 4 % 4) + 4 * lane + inner % 4] |=
                static_cast<uint8_t>(inner < 16 ? stored : stored << 4);
        }
        for (int64_t g = 0; g < 2 && real; ++g) {
          auto scale = static_cast<_Float16>(0.01f + std::fabs(randomFloat(state)) * 0.02f);
          auto minimum = static_cast<_Float16>(minima ? randomFloat(state) * 0.1f : 0.0f);
          std::memcpy(at + 2 * groupBytes + 32 * g + 2 * lane, &scale, 2);
          if (minima)
            std::memcpy(at + 2 * groupBytes + 64 + 32 * g + 2 * lane, &minimum, 2);
          w.scales[static_cast<size_t>(n * w.groups() + 2 * block + g)] = static_cast<float>(scale);
          w.minima[static_cast<size_t>(n * w.groups() + 2 * block + g)] = static_cast<float>(minimum);
        }
      }
  return w;
}

// 8-bit floats: codes are bytes of e4m3, `values` theirs.
inline PackedWeight makeFloat8(PackedWeight w, uint64_t &state) {
  int64_t vectors = (w.tile + 15) / 16, blocks = (w.columns + 63) / 64, tiles = (w.rows + w.tile - 1) / w.tile;
  w.bytes.assign(static_cast<size_t>(tiles * blocks * vectors * 1152), 0);
  w.codes.assign(static_cast<size_t>(w.rows * blocks * 64), 0);
  w.scales.assign(static_cast<size_t>(w.rows * w.groups()), 0);
  for (int64_t n = 0; n < w.rows; ++n)
    for (int64_t k = 0; k < w.columns; ++k) {
      int64_t place = n % w.tile, lane = place % 16, g = k % 64 / 32;
      uint8_t *at = &w.bytes[static_cast<size_t>(((n / w.tile * blocks + k / 64) * vectors + place / 16) * 1152)];
      auto code = static_cast<uint8_t>(std::lround(std::fabs(randomFloat(state)) * 254));
      code = (code & 0x7F) == 0x7F ? 0x01 : code;
      at[16 * (k % 64) + lane] = code;
      w.codes[static_cast<size_t>(n * blocks * 64 + k)] = code;
      float &scale = w.scales[static_cast<size_t>(n * w.groups() + k / 32)];
      if (k % 32 == 0)
        scale = 1e-4f * (1 + std::fabs(randomFloat(state)));
      std::memcpy(at + 1024 + 64 * g + 4 * lane, &scale, 4);
    }
  return w;
}

inline PackedWeight makeWeight(const std::string &form, int64_t rows, int64_t columns, int64_t tile, int64_t panel,
                               uint64_t &state) {
  PackedWeight w;
  w.form = form;
  w.rows = rows;
  w.columns = columns;
  w.tile = tile;
  w.panel = panel;
  if (form == "f8")
    return makeFloat8(std::move(w), state);
  return plainForm(form) ? makePlain(std::move(w), state) : makeQuantized(std::move(w), state);
}

// The sum of bf16 products that matrix tiles make: of every 32 k the even and the odd ones apart.
inline float sumOfPairTiles(const float *row, const std::vector<float> &x) {
  float sum = 0;
  for (size_t block = 0; block < x.size(); block += 32) {
    float parts[2] = {};
    for (size_t k = block; k < std::min(block + 32, x.size()); ++k)
      parts[k % 2] = std::fma(x[k], row[k], parts[k % 2]);
    sum += parts[0] + parts[1];
  }
  return sum;
}

// One row times the whole weight, in the order that tile.dot and tile.scaled_dot document, on this target.
inline std::vector<float> referenceDot(const PackedWeight &w, std::vector<float> x, const std::string &target,
                                       int codeBits = 16) {
  bool pairTiles = findCpuTarget(target)->hasBf16Tiles;
  std::vector<float> y(static_cast<size_t>(w.rows), 0.0f);
  if (plainForm(w.form)) {
    if (w.form == "bf16")
      for (float &value : x)
        value = fromBf16(bf16Bits(value));
    for (int64_t n = 0; n < w.rows; ++n) {
      const float *row = &w.values[static_cast<size_t>(n * w.columns)];
      float sum = 0;
      if (w.form == "f32")
        for (int64_t k = 0; k < w.columns; ++k)
          sum = std::fma(row[k], x[static_cast<size_t>(k)], sum);
      else if (pairTiles)
        sum = sumOfPairTiles(row, x);
      else
        for (int64_t k = 0; k < w.columns; k += 2) {
          if (k + 1 < w.columns)
            sum = std::fma(row[k + 1], x[static_cast<size_t>(k + 1)], sum);
          sum = std::fma(row[k], x[static_cast<size_t>(k)], sum);
        }
      y[static_cast<size_t>(n)] = sum;
    }
    return y;
  }
  int64_t padded = w.groups() * 32;
  if (w.form == "f8") {
    for (int64_t n = 0; n < w.rows; ++n)
      for (int64_t first = 0; first < w.columns; first += 32) {
        float sum = 0;
        for (int64_t k = first; k < std::min(first + 32, w.columns); ++k)
          sum = std::fma(fromF8E4M3(static_cast<uint8_t>(w.codes[static_cast<size_t>(n * padded + k)])),
                         x[static_cast<size_t>(k)], sum);
        float &result = y[static_cast<size_t>(n)];
        result = std::fma(sum, w.scales[static_cast<size_t>(n * w.groups() + first / 32)], result);
      }
    return y;
  }
  x.resize(static_cast<size_t>(padded), 0.0f);
  std::vector<int> codes(static_cast<size_t>(padded));
  std::vector<float> scales(static_cast<size_t>(w.groups()));
  for (int64_t g = 0; g < w.groups(); ++g) {
    float most = 0;
    for (int64_t i = 0; i < 32; ++i)
      most = std::max(most, std::fabs(x[static_cast<size_t>(32 * g + i)]));
    float scale = most / (codeBits == 8 ? 127.0f : 32512.0f), inverse = most > 0 ? 1.0f / scale : 0.0f;
    scales[static_cast<size_t>(g)] = scale;
    for (int64_t i = 0; i < 32; ++i)
      codes[static_cast<size_t>(32 * g + i)] =
          static_cast<int>(std::nearbyint(x[static_cast<size_t>(32 * g + i)] * inverse));
  }
  for (int64_t n = 0; n < w.rows; ++n) {
    float sum = 0;
    for (int64_t g = 0; g < w.groups(); ++g) {
      int q[2] = {}, s = 0;
      for (int64_t i = 0; i < 32; ++i) {
        int half = w.form == "f4" && i >= 16;
        q[half] += codes[static_cast<size_t>(32 * g + i)] * w.codes[static_cast<size_t>(n * padded + 32 * g + i)];
        s += codes[static_cast<size_t>(32 * g + i)];
      }
      size_t at = static_cast<size_t>(n * w.groups() + g);
      sum = std::fma(static_cast<float>(q[0]), w.scales[at] * scales[static_cast<size_t>(g)], sum);
      if (w.form == "f4")
        sum = std::fma(static_cast<float>(q[1]), w.minima[at] * scales[static_cast<size_t>(g)], sum);
      if (w.form == "i4m")
        sum = std::fma(static_cast<float>(s), w.minima[at] * scales[static_cast<size_t>(g)], sum);
    }
    y[static_cast<size_t>(n)] = sum;
  }
  return y;
}

} // namespace llmc::test
