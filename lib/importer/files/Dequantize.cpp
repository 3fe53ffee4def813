// One function per block format. Layouts and formulas are ggml's (ggml-common.h, ggml-quants.c); the names of the
// fields too, so that they can be laid beside them. Scales of 16-bit floats have 11 bits, their sub-scales at most 8
// and codes at most 8: every product below is exact in float32, only a final sum rounds, and so a compiler that fuses
// a*b+c changes nothing.
#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/CodeBooks.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace llmc {
namespace {

// A float of `exponentBits` and `mantissaBits` below a sign, with subnormals; infinity and NaN are the caller's.
float smallFloat(uint32_t bits, int exponentBits, int mantissaBits) {
  int bias = (1 << (exponentBits - 1)) - 1;
  uint32_t magnitude = bits & ((1u << (exponentBits + mantissaBits)) - 1);
  uint32_t sign = (bits >> (exponentBits + mantissaBits) & 1) << 31;
  uint32_t wide = (magnitude << (23 - mantissaBits)) + (static_cast<uint32_t>(127 - bias) << 23);
  if (magnitude >> mantissaBits == 0) { // subnormal: a small integer times a power of two
    float unit = std::bit_cast<float>(static_cast<uint32_t>(128 - bias - mantissaBits) << 23);
    wide = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * unit);
  }
  return std::bit_cast<float>(sign | wide);
}

template <typename T> T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
float f16At(const uint8_t *from) { return fromF16(load<uint16_t>(from)); }

int low(uint8_t byte) { return byte & 15; }
int high(uint8_t byte) { return byte >> 4; }

// 32 codes of 4 bits: byte j holds values j (low) and j + 16 (high).
void dequantizeQ4_0(const uint8_t *block, float *out) {
  float d = f16At(block);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(low(block[2 + j]) - 8);
    out[j + 16] = d * static_cast<float>(high(block[2 + j]) - 8);
  }
}

void dequantizeQ4_1(const uint8_t *block, float *out) {
  float d = f16At(block), m = f16At(block + 2);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(low(block[4 + j])) + m;
    out[j + 16] = d * static_cast<float>(high(block[4 + j])) + m;
  }
}

// The fifth bits of the 32 codes come first, as one word.
int fifthBit(uint32_t qh, int value) { return static_cast<int>((qh >> value) & 1) << 4; }

void dequantizeQ5_0(const uint8_t *block, float *out) {
  float d = f16At(block);
  auto qh = load<uint32_t>(block + 2);
  const uint8_t *qs = block + 6;
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>((low(qs[j]) | fifthBit(qh, j)) - 16);
    out[j + 16] = d * static_cast<float>((high(qs[j]) | fifthBit(qh, j + 16)) - 16);
  }
}

void dequantizeQ5_1(const uint8_t *block, float *out) {
  float d = f16At(block), m = f16At(block + 2);
  auto qh = load<uint32_t>(block + 4);
  const uint8_t *qs = block + 8;
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(low(qs[j]) | fifthBit(qh, j)) + m;
    out[j + 16] = d * static_cast<float>(high(qs[j]) | fifthBit(qh, j + 16)) + m;
  }
}

void dequantizeQ8_0(const uint8_t *block, float *out) {
  float d = f16At(block);
  for (int j = 0; j < 32; ++j)
    out[j] = d * static_cast<float>(static_cast<int8_t>(block[2 + j]));
}

// As Q8_0, with the sum of the values beside the scale; only activations are kept so.
void dequantizeQ8_1(const uint8_t *block, float *out) {
  float d = f16At(block);
  for (int j = 0; j < 32; ++j)
    out[j] = d * static_cast<float>(static_cast<int8_t>(block[4 + j]));
}

// 256 codes of 2 bits in two halves; in each, bits 2k and 2k+1 of byte j are value 32k + j. Groups of 16 have a 4-bit
// scale and a 4-bit minimum in one byte.
void dequantizeQ2_K(const uint8_t *block, float *out) {
  const uint8_t *scales = block, *qs = block + 16;
  float d = f16At(block + 80), dmin = f16At(block + 82);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, k = (i % 128) / 32, j = i % 32;
    int q = (qs[32 * half + j] >> (2 * k)) & 3;
    uint8_t scale = scales[i / 16];
    out[i] = d * static_cast<float>(low(scale)) * static_cast<float>(q) - dmin * static_cast<float>(high(scale));
  }
}

// The 6-bit scale of group g of Q3_K: four low bits of all sixteen first, then the two high bits of g, g+4, g+8, g+12
// per byte; stored with 32 added.
int scaleOfQ3_K(const uint8_t *scales, int group) {
  int lowBits = group < 8 ? low(scales[group]) : high(scales[group - 8]);
  int highBits = (scales[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (lowBits | highBits << 4) - 32;
}

// Codes of 3 bits: two as in Q2_K, the third in hmask, where bit b of byte j is value 32b + j and 0 means minus 4.
void dequantizeQ3_K(const uint8_t *block, float *out) {
  const uint8_t *hmask = block, *qs = block + 32, *scales = block + 96;
  float d = f16At(block + 108);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, k = (i % 128) / 32, j = i % 32;
    int q = (qs[32 * half + j] >> (2 * k)) & 3;
    q -= (hmask[j] >> (i / 32)) & 1 ? 0 : 4;
    out[i] = d * static_cast<float>(scaleOfQ3_K(scales, i / 16)) * static_cast<float>(q);
  }
}

struct ScaleAndMin {
  float scale;
  float min;
};

// The 6-bit scale and minimum of group g of Q4_K and Q5_K, eight of each in 12 bytes: groups 0 to 3 in the low six bits
// of bytes g and g+4; groups 4 to 7 have four bits in byte g+4 and the two others on top of those bytes.
ScaleAndMin scaleAndMin(const uint8_t *scales, int group) {
  if (group < 4)
    return {static_cast<float>(scales[group] & 63), static_cast<float>(scales[group + 4] & 63)};
  return {static_cast<float>(low(scales[group + 4]) | (scales[group - 4] >> 6) << 4),
          static_cast<float>(high(scales[group + 4]) | (scales[group] >> 6) << 4)};
}

// Groups of 32; groups 2k and 2k+1 share 32 bytes, low and high nibbles.
void dequantizeQ4_K(const uint8_t *block, float *out) {
  float d = f16At(block), dmin = f16At(block + 2);
  const uint8_t *scales = block + 4, *qs = block + 16;
  for (int group = 0; group < 8; ++group) {
    ScaleAndMin s = scaleAndMin(scales, group);
    float scale = d * s.scale, min = dmin * s.min;
    for (int j = 0; j < 32; ++j) {
      uint8_t byte = qs[32 * (group / 2) + j];
      out[32 * group + j] = scale * static_cast<float>(group % 2 ? high(byte) : low(byte)) - min;
    }
  }
}

// As Q4_K; the fifth bit of value j of group g is bit g of qh[j].
void dequantizeQ5_K(const uint8_t *block, float *out) {
  float d = f16At(block), dmin = f16At(block + 2);
  const uint8_t *scales = block + 4, *qh = block + 16, *qs = block + 48;
  for (int group = 0; group < 8; ++group) {
    ScaleAndMin s = scaleAndMin(scales, group);
    float scale = d * s.scale, min = dmin * s.min;
    for (int j = 0; j < 32; ++j) {
      uint8_t byte = qs[32 * (group / 2) + j];
      int q = (group % 2 ? high(byte) : low(byte)) | ((qh[j] >> group) & 1) << 4;
      out[32 * group + j] = scale * static_cast<float>(q) - min;
    }
  }
}

// Two halves of 128. In each, quarter k of 32 values takes nibbles from ql (quarters 0, 1 low; 2, 3 high) and bits 2k,
// 2k+1 of qh[j]. Groups of 16 have signed 8-bit scales.
void dequantizeQ6_K(const uint8_t *block, float *out) {
  const uint8_t *ql = block, *qh = block + 128, *scales = block + 192;
  float d = f16At(block + 208);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, k = (i % 128) / 32, j = i % 32;
    uint8_t byte = ql[64 * half + 32 * (k % 2) + j];
    int q = (k < 2 ? low(byte) : high(byte)) | ((qh[32 * half + j] >> (2 * k)) & 3) << 4;
    float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = scale * static_cast<float>(q - 32);
  }
}

// The scale is a float32 here; the sums behind the codes are for dot products.
void dequantizeQ8_K(const uint8_t *block, float *out) {
  auto d = load<float>(block);
  for (int j = 0; j < 256; ++j)
    out[j] = d * static_cast<float>(static_cast<int8_t>(block[4 + j]));
}

void dequantizeIQ4_NL(const uint8_t *block, float *out) {
  float d = f16At(block);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * iq4Levels[low(block[2 + j])];
    out[j + 16] = d * iq4Levels[high(block[2 + j])];
  }
}

// Eight groups of 32 with 6-bit scales: four low bits in a nibble, two high bits in a 16-bit word, 32 added.
void dequantizeIQ4_XS(const uint8_t *block, float *out) {
  float d = f16At(block);
  auto highScales = load<uint16_t>(block + 2);
  const uint8_t *lowScales = block + 4, *qs = block + 8;
  for (int group = 0; group < 8; ++group) {
    int lowBits = group % 2 ? high(lowScales[group / 2]) : low(lowScales[group / 2]);
    float scale = d * static_cast<float>((lowBits | ((highScales >> (2 * group)) & 3) << 4) - 32);
    for (int j = 0; j < 16; ++j) {
      out[32 * group + j] = scale * iq4Levels[low(qs[16 * group + j])];
      out[32 * group + 16 + j] = scale * iq4Levels[high(qs[16 * group + j])];
    }
  }
}

// The scale byte comes first; half of it, since the levels are doubled. ggml reads 0xFF as 2^128, not as NaN.
void dequantizeMXFP4(const uint8_t *block, float *out) {
  float half = std::ldexp(1.0f, static_cast<int>(block[0]) - 128);
  for (int j = 0; j < 16; ++j) {
    out[j] = half * twiceE2M1[low(block[1 + j])];
    out[j + 16] = half * twiceE2M1[high(block[1 + j])];
  }
}

// Four groups of 16 with e4m3 scales without a sign, 0x7F counts as zero; byte j of a group holds values j and j + 8. A
// scale of the whole tensor, if there is one, is another tensor ("<name>.scale").
void dequantizeNVFP4(const uint8_t *block, float *out) {
  for (int group = 0; group < 4; ++group) {
    uint8_t code = block[group] & 0x7F;
    float half = code == 0x7F ? 0.0f : 0.5f * smallFloat(code, 4, 3);
    const uint8_t *qs = block + 4 + 8 * group;
    for (int j = 0; j < 8; ++j) {
      out[16 * group + j] = half * twiceE2M1[low(qs[j])];
      out[16 * group + 8 + j] = half * twiceE2M1[high(qs[j])];
    }
  }
}

// Codes 0, 1, 2 for -1, 0, 1. Five of them lie in a byte as its first digits to the base 3, of a fraction of 256: 160
// values in 32 bytes, digit after digit, 80 in 16 bytes, and 16 in four bytes of four digits.
void dequantizeTQ1_0(const uint8_t *block, float *out) {
  constexpr uint8_t powers[] = {1, 3, 9, 27, 81};
  float d = f16At(block + 52);
  for (int i = 0; i < 256; ++i) {
    int digit = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
    int byte = i < 160 ? i % 32 : i < 240 ? 32 + (i - 160) % 16 : 48 + (i - 240) % 4;
    auto rest = static_cast<uint8_t>(block[byte] * powers[digit]);
    out[i] = d * static_cast<float>((rest * 3 >> 8) - 1);
  }
}

// The same codes in two bits: 32 bytes hold four groups of 32.
void dequantizeTQ2_0(const uint8_t *block, float *out) {
  float d = f16At(block + 64);
  for (int i = 0; i < 256; ++i)
    out[i] = d * static_cast<float>(((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3) - 1);
}

// Signs alone.
void dequantizeQ1_0(const uint8_t *block, float *out) {
  float d = f16At(block);
  for (int i = 0; i < 128; ++i)
    out[i] = (block[2 + i / 8] >> (i % 8)) & 1 ? d : -d;
}

// -1 .. 2
void dequantizeQ2_0(const uint8_t *block, float *out) {
  float d = f16At(block);
  for (int i = 0; i < 64; ++i)
    out[i] = d * static_cast<float>(((block[2 + i / 4] >> (i % 4 * 2)) & 3) - 1);
}

template <typename T> void dequantizeNumber(const uint8_t *from, float *out) {
  *out = static_cast<float>(load<T>(from));
}
void dequantizeF16(const uint8_t *from, float *out) { *out = f16At(from); }
void dequantizeBF16(const uint8_t *from, float *out) { *out = fromBf16(load<uint16_t>(from)); }
void dequantizeF8E4M3(const uint8_t *from, float *out) { *out = fromF8E4M3(*from); }
void dequantizeF8E5M2(const uint8_t *from, float *out) { *out = fromF8E5M2(*from); }
void dequantizeF8E8M0(const uint8_t *from, float *out) { *out = fromF8E8M0(*from); }

using BlocksFunction = void (*)(const TensorTypeInfo &info, const uint8_t *bytes, uint64_t blocks, float *out);

// The loop around one of the above, which is inlined: for plain numbers a call per value would cost more than the
// value.
template <void (*dequantizeBlock)(const uint8_t *, float *)>
void overBlocks(const TensorTypeInfo &info, const uint8_t *bytes, uint64_t blocks, float *out) {
  for (uint64_t i = 0; i < blocks; ++i)
    dequantizeBlock(bytes + i * info.blockBytes, out + i * info.blockValues);
}

BlocksFunction blocksFunction(TensorType type) {
  switch (type) {
    // clang-format off
  case TensorType::F64: return overBlocks<dequantizeNumber<double>>;
  case TensorType::F32: return overBlocks<dequantizeNumber<float>>;
  case TensorType::F16: return overBlocks<dequantizeF16>;
  case TensorType::BF16: return overBlocks<dequantizeBF16>;
  case TensorType::I64: return overBlocks<dequantizeNumber<int64_t>>;
  case TensorType::I32: return overBlocks<dequantizeNumber<int32_t>>;
  case TensorType::I16: return overBlocks<dequantizeNumber<int16_t>>;
  case TensorType::I8: return overBlocks<dequantizeNumber<int8_t>>;
  case TensorType::U16: return overBlocks<dequantizeNumber<uint16_t>>;
  case TensorType::U8: return overBlocks<dequantizeNumber<uint8_t>>;
  case TensorType::F8E4M3: return overBlocks<dequantizeF8E4M3>;
  case TensorType::F8E5M2: return overBlocks<dequantizeF8E5M2>;
  case TensorType::F8E8M0: return overBlocks<dequantizeF8E8M0>;
  case TensorType::Q4_0: return overBlocks<dequantizeQ4_0>;
  case TensorType::Q4_1: return overBlocks<dequantizeQ4_1>;
  case TensorType::Q5_0: return overBlocks<dequantizeQ5_0>;
  case TensorType::Q5_1: return overBlocks<dequantizeQ5_1>;
  case TensorType::Q8_0: return overBlocks<dequantizeQ8_0>;
  case TensorType::Q8_1: return overBlocks<dequantizeQ8_1>;
  case TensorType::Q2_K: return overBlocks<dequantizeQ2_K>;
  case TensorType::Q3_K: return overBlocks<dequantizeQ3_K>;
  case TensorType::Q4_K: return overBlocks<dequantizeQ4_K>;
  case TensorType::Q5_K: return overBlocks<dequantizeQ5_K>;
  case TensorType::Q6_K: return overBlocks<dequantizeQ6_K>;
  case TensorType::Q8_K: return overBlocks<dequantizeQ8_K>;
  case TensorType::IQ4_NL: return overBlocks<dequantizeIQ4_NL>;
  case TensorType::IQ4_XS: return overBlocks<dequantizeIQ4_XS>;
  case TensorType::MXFP4: return overBlocks<dequantizeMXFP4>;
  case TensorType::NVFP4: return overBlocks<dequantizeNVFP4>;
  case TensorType::IQ1_S: return overBlocks<dequantizeIQ1_S>;
  case TensorType::IQ1_M: return overBlocks<dequantizeIQ1_M>;
  case TensorType::IQ2_XXS: return overBlocks<dequantizeIQ2_XXS>;
  case TensorType::IQ2_XS: return overBlocks<dequantizeIQ2_XS>;
  case TensorType::IQ2_S: return overBlocks<dequantizeIQ2_S>;
  case TensorType::IQ3_XXS: return overBlocks<dequantizeIQ3_XXS>;
  case TensorType::IQ3_S: return overBlocks<dequantizeIQ3_S>;
  case TensorType::TQ1_0: return overBlocks<dequantizeTQ1_0>;
  case TensorType::TQ2_0: return overBlocks<dequantizeTQ2_0>;
  case TensorType::Q1_0: return overBlocks<dequantizeQ1_0>;
  case TensorType::Q2_0: return overBlocks<dequantizeQ2_0>;
  default: return nullptr;
    // clang-format on
  }
}

} // namespace

float fromF16(uint16_t bits) {
  if ((bits & 0x7C00) != 0x7C00)
    return smallFloat(bits, 5, 10);
  uint32_t wide = static_cast<uint32_t>(bits & 0x8000) << 16 | 0x7F800000u | static_cast<uint32_t>(bits & 0x3FF) << 13;
  return std::bit_cast<float>(wide);
}

float fromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float fromF8E4M3(uint8_t bits) {
  return (bits & 0x7F) == 0x7F ? std::numeric_limits<float>::quiet_NaN() : smallFloat(bits, 4, 3);
}

// The upper half of a 16-bit float.
float fromF8E5M2(uint8_t bits) { return fromF16(static_cast<uint16_t>(bits << 8)); }

float fromF8E8M0(uint8_t bits) {
  return bits == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

bool isDequantizable(TensorType type) { return blocksFunction(type) != nullptr; }

Status dequantize(TensorType type, std::span<const uint8_t> bytes, uint64_t firstValue, std::span<float> out) {
  const TensorTypeInfo &info = infoOf(type);
  BlocksFunction dequantizeBlocks = blocksFunction(type);
  if (!dequantizeBlocks)
    return Status::error("no float values for type " + std::string(info.name));
  if (firstValue % info.blockValues != 0 || out.size() % info.blockValues != 0)
    return Status::error("values " + std::to_string(firstValue) + " to " + std::to_string(firstValue + out.size()) +
                         " do not begin and end at " + std::string(info.name) + " blocks of " +
                         std::to_string(info.blockValues));
  uint64_t firstBlock = firstValue / info.blockValues, blocks = out.size() / info.blockValues;
  uint64_t stored = bytes.size() / info.blockBytes;
  if (firstBlock > stored || blocks > stored - firstBlock)
    return Status::error("blocks " + std::to_string(firstBlock) + " to " + std::to_string(firstBlock + blocks) +
                         " asked for, " + std::to_string(stored) + " are stored");
  if (blocks > 0)
    dequantizeBlocks(info, bytes.data() + firstBlock * info.blockBytes, blocks, out.data());
  return {};
}

std::optional<size_t> findNonFinite(std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return i;
  return std::nullopt;
}

Status checkFinite(const std::string &tensor, std::span<const uint64_t> shape, uint64_t firstValue,
                   std::span<const float> values) {
  std::optional<size_t> bad = findNonFinite(values);
  if (!bad)
    return {};
  uint64_t flat = firstValue + *bad;
  std::vector<uint64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = shape[i] ? flat % shape[i] : 0;
    flat = shape[i] ? flat / shape[i] : 0;
  }
  const char *what = std::isnan(values[*bad]) ? "NaN" : values[*bad] > 0 ? "Infinity" : "-Infinity";
  return Status::error("tensor '" + tensor + "' holds " + what + " at " + printShape(index) +
                       "; weights must be finite, so the file is damaged or was saved from a diverged model");
}

} // namespace llmc
