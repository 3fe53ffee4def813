// Absolute-maximum 8-bit and searched 4-bit quantisation, around zero, over a minimum and to floats.
#include "lib/weights/Quantize.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/weights/BlockCodecs.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

namespace llmc {
namespace {

constexpr int lanes = lanesPerBlock;
using LaneFloats = float[lanes];

// To the nearest integer, ties to even, for |x| < 2^22: the addition leaves no bits for a fraction.
inline float roundToInteger(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

// The element of largest magnitude with its sign. False when some element is not finite.
bool extremes(const LaneGroup &values, LaneFloats &extreme) {
  LaneFloats poison = {};
  std::fill_n(extreme, lanes, 0.0f);
  for (const LaneFloats &row : values.w)
    for (int l = 0; l < lanes; ++l) {
      poison[l] += row[l] * 0.0f; // NaN from then on
      extreme[l] = std::fabs(row[l]) > std::fabs(extreme[l]) ? row[l] : extreme[l];
    }
  return std::all_of(poison, poison + lanes, [](float p) { return p == 0.0f; });
}

// Rounds scales to f16 and stores them; afterwards `scale` is what was stored and `inverse` 1 / scale, or 0 for scale
// 0.
bool storeScales(LaneFloats &scale, LaneFloats &inverse, uint8_t *block, WeightForm form, int64_t group) {
  bool finite = true;
  for (int l = 0; l < lanes; ++l) {
    uint16_t half = f16FromF32(scale[l]);
    finite &= f16IsFinite(half);
    scale[l] = fromF16(half);
    inverse[l] = scale[l] != 0.0f ? 1.0f / scale[l] : 0.0f;
    uint8_t *bytes = groupTarget(block, form, group, l).scale;
    bytes[0] = static_cast<uint8_t>(half);
    bytes[1] = static_cast<uint8_t>(half >> 8);
  }
  return finite;
}

inline float clampedCode(float value, float inverse, float low, float high) {
  return roundToInteger(std::min(std::max(value * inverse, low), high));
}

// Codes of the whole group plus `offset`, as bytes.
void codesOf(const LaneGroup &values, const LaneFloats &inverse, float low, float high, int offset,
             uint8_t (&codes)[valuesPerGroup][lanes]) {
  for (int k = 0; k < valuesPerGroup; ++k)
    for (int l = 0; l < lanes; ++l)
      codes[k][l] = static_cast<uint8_t>(static_cast<int>(clampedCode(values.w[k][l], inverse[l], low, high)) + offset);
}

// Codes of k and k + 16 share a byte, four bytes of a lane a word.
void storeNibbles(const uint8_t (&codes)[valuesPerGroup][lanes], uint8_t *out) {
  for (int word = 0; word < 4; ++word)
    for (int l = 0; l < lanes; ++l)
      for (int k = 0; k < 4; ++k)
        out[laneStride * word + 4 * l + k] =
            static_cast<uint8_t>(codes[4 * word + k][l] | codes[16 + 4 * word + k][l] << 4);
}

struct Search {
  LaneFloats limit;      // scales beyond it do not fit f16
  LaneFloats scale = {}; // best so far
  LaneFloats gain = {};  // the part of sum w^4 that it explains: sum w^2 error^2 = sum w^4 - gain
};

// Codes for 1 / scale = steps / extreme; the scale that fits these codes best, with weights w^2; kept if better.
void tryScale(const LaneGroup &values, const LaneFloats &extreme, float steps, Search &search) {
  LaneFloats inverse, cross = {}, square = {};
  for (int l = 0; l < lanes; ++l)
    inverse[l] = extreme[l] != 0.0f ? steps / extreme[l] : 0.0f;
  for (const LaneFloats &row : values.w)
    for (int l = 0; l < lanes; ++l) {
      float w = row[l], code = clampedCode(w, inverse[l], -8.0f, 7.0f);
      float weighted = w * w * code;
      cross[l] += weighted * w;
      square[l] += weighted * code;
    }
  for (int l = 0; l < lanes; ++l) {
    float scale = square[l] > 0.0f ? cross[l] / square[l] : 0.0f;
    float gain = scale * cross[l];
    bool better = gain > search.gain[l] && std::fabs(scale) <= search.limit[l];
    search.scale[l] = better ? scale : search.scale[l];
    search.gain[l] = better ? gain : search.gain[l];
  }
}

// Each lane times a power of two that brings its largest element to [1, 2), so that no fourth power under- or
// overflows.
void normalize(const LaneGroup &values, LaneFloats &extreme, LaneGroup &normal, LaneFloats &unit) {
  LaneFloats factor;
  for (int l = 0; l < lanes; ++l) {
    int exponent = extreme[l] != 0.0f ? std::clamp(std::ilogb(extreme[l]), -126, 126) : 0;
    unit[l] = std::ldexp(1.0f, exponent);
    factor[l] = std::ldexp(1.0f, -exponent);
    extreme[l] *= factor[l];
  }
  for (int k = 0; k < valuesPerGroup; ++k)
    for (int l = 0; l < lanes; ++l)
      normal.w[k][l] = values.w[k][l] * factor[l];
}

// A scale and a minimum per lane.
struct Line {
  LaneFloats scale = {}, minimum = {};
};

float roundedToHalf(float value) { return fromF16(f16FromF32(value)); }

// The line that fits the codes best that `line` gives, in its place; where all codes are equal it stays.
void refine(const LaneGroup &values, Line &line) {
  LaneFloats inverse, codeSum = {}, squareSum = {}, valueSum = {}, crossSum = {};
  for (int l = 0; l < lanes; ++l)
    inverse[l] = line.scale[l] != 0.0f ? 1.0f / line.scale[l] : 0.0f;
  for (const LaneFloats &row : values.w)
    for (int l = 0; l < lanes; ++l) {
      float code = clampedCode(row[l] - line.minimum[l], inverse[l], 0.0f, 15.0f);
      codeSum[l] += code;
      squareSum[l] += code * code;
      valueSum[l] += row[l];
      crossSum[l] += code * row[l];
    }
  constexpr float count = valuesPerGroup;
  for (int l = 0; l < lanes; ++l) {
    float spread = count * squareSum[l] - codeSum[l] * codeSum[l];
    if (spread <= 0.0f)
      continue;
    line.scale[l] = (count * crossSum[l] - codeSum[l] * valueSum[l]) / spread;
    line.minimum[l] = (valueSum[l] - line.scale[l] * codeSum[l]) / count;
  }
}

// As they are stored, in `unit`s: what a refined line loses by rounding is part of its error.
void roundToStored(Line &line, const LaneFloats &unit) {
  for (int l = 0; l < lanes; ++l) {
    line.scale[l] = roundedToHalf(line.scale[l] * unit[l]) / unit[l];
    line.minimum[l] = roundedToHalf(line.minimum[l] * unit[l]) / unit[l];
  }
}

void errorOf(const LaneGroup &values, const Line &line, LaneFloats &error) {
  LaneFloats inverse;
  for (int l = 0; l < lanes; ++l) {
    inverse[l] = line.scale[l] != 0.0f ? 1.0f / line.scale[l] : 0.0f;
    error[l] = 0.0f;
  }
  for (const LaneFloats &row : values.w)
    for (int l = 0; l < lanes; ++l) {
      float code = clampedCode(row[l] - line.minimum[l], inverse[l], 0.0f, 15.0f);
      float miss = row[l] - (code * line.scale[l] + line.minimum[l]);
      error[l] += miss * miss;
    }
}

// The best of the lines around the one from the smallest to the largest value. False when none fits f16.
bool searchLine(const LaneGroup &values, const LaneFloats &unit, Line &best) {
  LaneFloats low, high, error, least;
  for (int l = 0; l < lanes; ++l)
    low[l] = high[l] = values.w[0][l];
  for (const LaneFloats &row : values.w)
    for (int l = 0; l < lanes; ++l) {
      low[l] = std::min(low[l], row[l]);
      high[l] = std::max(high[l], row[l]);
    }
  std::fill_n(least, lanes, std::numeric_limits<float>::infinity());
  auto keepBetter = [&](Line line) {
    roundToStored(line, unit);
    errorOf(values, line, error);
    for (int l = 0; l < lanes; ++l)
      if (error[l] < least[l]) { // a scale beyond f16 has an infinite or undefined error
        least[l] = error[l];
        best.scale[l] = line.scale[l];
        best.minimum[l] = line.minimum[l];
      }
  };
  for (float cut = 0.0f; cut < 2.5f; cut += 0.25f) {
    Line line;
    for (int l = 0; l < lanes; ++l) {
      line.scale[l] = (high[l] - low[l]) / (15.0f + cut);
      line.minimum[l] = low[l] + cut / 2 * line.scale[l];
    }
    if (cut == 0.0f)
      keepBetter(line); // first, so that it wins where others are only as good
    refine(values, line);
    refine(values, line);
    keepBetter(line);
  }
  return std::all_of(least, least + lanes, [](float e) { return e < std::numeric_limits<float>::infinity(); });
}

} // namespace

bool quantizeI8(const LaneGroup &values, uint8_t *block, int64_t group) {
  LaneFloats scale, inverse;
  if (!extremes(values, scale))
    return false;
  for (float &s : scale)
    s = std::fabs(s) / 127.0f;
  if (!storeScales(scale, inverse, block, WeightForm::I8, group))
    return false;
  uint8_t codes[valuesPerGroup][lanes];
  codesOf(values, inverse, -127.0f, 127.0f, 128, codes);
  uint8_t *out = groupTarget(block, WeightForm::I8, group, 0).codes;
  for (int word = 0; word < 8; ++word)
    for (int l = 0; l < lanes; ++l)
      for (int k = 0; k < 4; ++k)
        out[laneStride * word + 4 * l + k] = codes[4 * word + k][l];
  return true;
}

bool quantizeI4(const LaneGroup &values, uint8_t *block, int64_t group) {
  LaneFloats extreme, unit, inverse;
  if (!extremes(values, extreme))
    return false;
  LaneGroup normal;
  normalize(values, extreme, normal, unit);
  Search search;
  for (int l = 0; l < lanes; ++l)
    search.limit[l] = 65504.0f / unit[l];
  tryScale(normal, extreme, -8.0f, search); // first, so that it wins where others are only as good
  for (int step = -6; step <= 6; ++step) // -6.8 .. -9.2; steps of 0.1 find no better ones (0.0427 of 0.0490 either way)
    tryScale(normal, extreme, -8.0f - 0.2f * static_cast<float>(step), search);
  for (int l = 0; l < lanes; ++l) {
    if (extreme[l] != 0.0f && search.gain[l] == 0.0f) // no scale fits
      return false;
    search.scale[l] *= unit[l];
  }
  if (!storeScales(search.scale, inverse, block, WeightForm::I4, group))
    return false;
  uint8_t codes[valuesPerGroup][lanes];
  codesOf(values, inverse, -8.0f, 7.0f, 8, codes);
  storeNibbles(codes, groupTarget(block, WeightForm::I4, group, 0).codes);
  return true;
}

bool quantizeI4M(const LaneGroup &values, uint8_t *block, int64_t group) {
  LaneFloats extreme, unit, inverse;
  if (!extremes(values, extreme))
    return false;
  LaneGroup normal;
  normalize(values, extreme, normal, unit);
  Line line;
  if (!searchLine(normal, unit, line))
    return false;
  LaneFloats scale;
  for (int l = 0; l < lanes; ++l)
    scale[l] = line.scale[l] * unit[l];
  bool fits = storeScales(scale, inverse, block, WeightForm::I4M, group);
  uint8_t codes[valuesPerGroup][lanes];
  for (int l = 0; l < lanes; ++l) {
    uint16_t minimum = f16FromF32(line.minimum[l] * unit[l]);
    fits &= f16IsFinite(minimum);
    uint8_t *bytes = groupTarget(block, WeightForm::I4M, group, l).minimum;
    bytes[0] = static_cast<uint8_t>(minimum);
    bytes[1] = static_cast<uint8_t>(minimum >> 8);
    for (int k = 0; k < valuesPerGroup; ++k)
      codes[k][l] = static_cast<uint8_t>(clampedCode(values.w[k][l] - fromF16(minimum), inverse[l], 0.0f, 15.0f));
  }
  storeNibbles(codes, groupTarget(block, WeightForm::I4M, group, 0).codes);
  return fits;
}

namespace {

// The code of the 4-bit float of which `value` is twice the value; ties to the smaller magnitude.
uint8_t nearestFloat4(float value) {
  uint8_t best = 0;
  for (uint8_t code = 1; code < 8; ++code)
    if (std::fabs(std::fabs(value) - twiceE2M1[code]) < std::fabs(std::fabs(value) - twiceE2M1[best]))
      best = code;
  return best != 0 && value < 0.0f ? best + 8 : best;
}

// The code of the 8-bit float nearest to `value`, ties to even; 448 and more are the largest.
uint8_t nearestFloat8(float value) {
  float magnitude = std::fabs(value);
  uint32_t bits = std::bit_cast<uint32_t>(magnitude), code;
  if (magnitude < 0x1p-6f) // subnormals are steps of 2^-9
    code = static_cast<uint32_t>(roundToInteger(magnitude * 0x1p9f));
  else
    code = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - ((127 - 7) << 3);
  return static_cast<uint8_t>(std::min(code, 0x7Eu) | (value < 0.0f ? 0x80 : 0));
}

// Values of one scale as codes of floats.
struct FloatCodes {
  float scale = std::numeric_limits<float>::infinity(); // where none is finite
  uint8_t codes[valuesPerGroup];
};

// With the one of `scales` that has the smallest sum of error^2, the first of equals. `valueOf` gives what a code says
// before it is scaled.
template <typename Nearest, typename ValueOf>
FloatCodes searchScale(std::span<const float> values, std::span<const float> scales, Nearest nearest, ValueOf valueOf) {
  FloatCodes best;
  double least = std::numeric_limits<double>::infinity();
  for (float scale : scales) {
    FloatCodes tried{scale, {}};
    double error = 0; // not a number where the scale is not finite
    for (size_t k = 0; k < values.size(); ++k) {
      tried.codes[k] = scale != 0.0f ? nearest(values[k] / scale) : 0;
      double difference = static_cast<double>(valueOf(tried.codes[k]) * scale) - values[k];
      error += difference * difference;
    }
    if (error < least) {
      least = error;
      best = tried;
    }
  }
  return best;
}

} // namespace

bool quantizeF4(const LaneGroup &values, uint8_t *block, int64_t group) {
  LaneFloats extreme;
  bool fits = extremes(values, extreme);
  uint8_t codes[valuesPerGroup][lanes] = {};
  for (int l = 0; l < lanes && fits; ++l)
    for (int half = 0; half < 2; ++half) {
      float column[16], largest = 0, scales[7];
      for (int k = 0; k < 16; ++k) {
        column[k] = values.w[16 * half + k][l];
        largest = std::max(largest, std::fabs(column[k]));
      }
      for (int i = 0; i < 7; ++i)
        scales[i] = roundedToHalf(largest / twiceE2M1[7 - i]);
      FloatCodes found = searchScale(column, scales, nearestFloat4, [](uint8_t code) { return twiceE2M1[code]; });
      for (int k = 0; k < 16; ++k)
        codes[16 * half + k][l] = found.codes[k];
      uint16_t scale = f16FromF32(found.scale);
      fits &= f16IsFinite(scale);
      GroupTarget target = groupTarget(block, WeightForm::F4, group, l);
      std::memcpy(half == 0 ? target.scale : target.minimum, &scale, 2);
    }
  storeNibbles(codes, groupTarget(block, WeightForm::F4, group, 0).codes);
  return fits;
}

bool quantizeF8(const LaneGroup &values, uint8_t *block, int64_t group) {
  LaneFloats extreme;
  if (!extremes(values, extreme))
    return false;
  for (int l = 0; l < lanes; ++l) {
    float column[valuesPerGroup], scales[8];
    for (int k = 0; k < valuesPerGroup; ++k)
      column[k] = values.w[k][l];
    for (int i = 0; i < 8; ++i)
      scales[i] = std::fabs(extreme[l]) / fromF8E4M3(static_cast<uint8_t>(0x7E - i));
    FloatCodes found = searchScale(column, scales, nearestFloat8, fromF8E4M3);
    GroupTarget target = groupTarget(block, WeightForm::F8, group, l);
    for (int k = 0; k < valuesPerGroup; ++k)
      target.codes[lanesPerBlock * k] = found.codes[k];
    std::memcpy(target.scale, &found.scale, 4);
  }
  return true;
}

} // namespace llmc
