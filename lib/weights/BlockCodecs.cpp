// One function per stored type and form. Block layouts are ggml's; the packed side is docs/weight-layouts.md.
#include "lib/weights/BlockCodecs.h"
#include "lib/importer/files/Dequantize.h"
#include "lib/importer/files/quantized/QuantizedTensor.h"
#include "lib/weights/SmallFloats.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace llmc {
namespace {

uint16_t loadHalf(const uint8_t *bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }

void storeHalf(uint8_t *bytes, uint16_t half) {
  bytes[0] = static_cast<uint8_t>(half);
  bytes[1] = static_cast<uint8_t>(half >> 8);
}

float loadFloat(const uint8_t *bytes) {
  float value;
  std::memcpy(&value, bytes, 4);
  return value;
}

// False when the rounded value is infinite and was not so before.
bool storeRounded(uint8_t *bytes, float value, bool wasFinite) {
  uint16_t half = f16FromF32(value);
  storeHalf(bytes, half);
  return f16IsFinite(half) || !wasFinite;
}

// 32 codes as bytes, four of a lane to a word.
void storeByteCodes(const uint8_t *codes, GroupTarget target) {
  for (int64_t word = 0; word < 8; ++word)
    std::memcpy(target.codes + word * laneStride, codes + 4 * word, 4);
}

// 16 bytes with codes 0..15 in the low and 16..31 in the high nibbles: also how ggml stores groups of 32.
void storeNibblePairs(const uint8_t *pairs, GroupTarget target) {
  for (int64_t word = 0; word < 4; ++word)
    std::memcpy(target.codes + word * laneStride, pairs + 4 * word, 4);
}

// 32 signed codes.
void storeSignedCodes(const int8_t *codes, GroupTarget target) {
  uint8_t shifted[32];
  for (int k = 0; k < 32; ++k)
    shifted[k] = static_cast<uint8_t>(codes[k] + 128);
  storeByteCodes(shifted, target);
}

// 32 codes 0..15.
void storeNibbles(const int8_t *codes, int offset, GroupTarget target) {
  uint8_t pairs[16];
  for (int k = 0; k < 16; ++k)
    pairs[k] = static_cast<uint8_t>((codes[k] + offset) | (codes[k + 16] + offset) << 4);
  storeNibblePairs(pairs, target);
}

// Q8_0: f16 scale, 32 signed codes.
bool moveQ8_0(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 34;
  int8_t codes[32];
  std::memcpy(codes, block + 2, 32);
  storeSignedCodes(codes, target);
  std::memcpy(target.scale, block, 2);
  return true;
}

// Q4_0: f16 scale, 16 bytes of nibbles; value = (nibble - 8) * scale.
bool moveQ4_0(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 18;
  storeNibblePairs(block + 2, target);
  std::memcpy(target.scale, block, 2);
  return true;
}

bool moveQ4_0ToI8(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 18;
  uint8_t codes[32];
  for (int k = 0; k < 16; ++k) {
    codes[k] = static_cast<uint8_t>((block[2 + k] & 15) + 120); // - 8 + 128
    codes[k + 16] = static_cast<uint8_t>((block[2 + k] >> 4) + 120);
  }
  storeByteCodes(codes, target);
  std::memcpy(target.scale, block, 2);
  return true;
}

// value = nibble * scale - 8 * scale; the product by 8 is exact.
bool moveQ4_0ToI4M(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 18;
  storeNibblePairs(block + 2, target);
  std::memcpy(target.scale, block, 2);
  uint16_t scale = loadHalf(block);
  return storeRounded(target.minimum, -8.0f * fromF16(scale), f16IsFinite(scale));
}

// Q4_1: f16 scale, f16 minimum, 16 bytes of nibbles.
bool moveQ4_1(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 20;
  storeNibblePairs(block + 4, target);
  std::memcpy(target.scale, block, 2);
  std::memcpy(target.minimum, block + 2, 2);
  return true;
}

// Q5_0: f16 scale, 32 high bits, 16 bytes of nibbles; value = (code - 16) * scale.
bool moveQ5_0(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 22;
  uint32_t high = static_cast<uint32_t>(loadHalf(block + 2)) | static_cast<uint32_t>(loadHalf(block + 4)) << 16;
  uint8_t codes[32];
  for (int k = 0; k < 16; ++k) {
    codes[k] = static_cast<uint8_t>(((block[6 + k] & 15) | ((high >> k) & 1) << 4) + 112); // - 16 + 128
    codes[k + 16] = static_cast<uint8_t>(((block[6 + k] >> 4) | ((high >> (k + 16)) & 1) << 4) + 112);
  }
  storeByteCodes(codes, target);
  std::memcpy(target.scale, block, 2);
  return true;
}

// Q4_K: f16 d and dmin, eight 6-bit scales and minima in 12 bytes, 128 bytes of nibbles: 32 bytes hold one group of 32
// in their low nibbles and the next in the high ones. value = d * scale * nibble - dmin * minimum.
bool moveQ4_K(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group / 8 * 144;
  const uint8_t *packed = block + 4;
  int64_t sub = group % 8;
  int scale, minimum;
  if (sub < 4) {
    scale = packed[sub] & 63;
    minimum = packed[sub + 4] & 63;
  } else {
    scale = (packed[sub + 4] & 15) | (packed[sub - 4] >> 6) << 4;
    minimum = (packed[sub + 4] >> 4) | (packed[sub] >> 6) << 4;
  }
  const uint8_t *nibbles = block + 16 + sub / 2 * 32;
  int shift = sub % 2 * 4;
  uint8_t pairs[16];
  for (int k = 0; k < 16; ++k)
    pairs[k] = static_cast<uint8_t>(((nibbles[k] >> shift) & 15) | ((nibbles[k + 16] >> shift) & 15) << 4);
  storeNibblePairs(pairs, target);
  uint16_t d = loadHalf(block), dmin = loadHalf(block + 2);
  bool fits = storeRounded(target.scale, fromF16(d) * static_cast<float>(scale), f16IsFinite(d));
  return storeRounded(target.minimum, -fromF16(dmin) * static_cast<float>(minimum), f16IsFinite(dmin)) && fits;
}

// IQ4_NL: f16 scale, 16 bytes of nibbles that name one of sixteen levels.
bool moveIQ4_NL(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 18;
  int8_t codes[32];
  for (int k = 0; k < 16; ++k) {
    codes[k] = iq4Levels[block[2 + k] & 15];
    codes[k + 16] = iq4Levels[block[2 + k] >> 4];
  }
  storeSignedCodes(codes, target);
  std::memcpy(target.scale, block, 2);
  return true;
}

// Types of a few integers around zero and one f16 scale for a block, which begins or ends it.
struct FewCodes {
  int64_t blockValues, blockBytes, scaleAt;
  int (*codeOf)(const uint8_t *block, int64_t index);
};

constexpr FewCodes q1_0{128, 18, 0,
                        [](const uint8_t *block, int64_t i) { return (block[2 + i / 8] >> (i % 8)) & 1 ? 1 : -1; }};
constexpr FewCodes q2_0{64, 18, 0,
                        [](const uint8_t *block, int64_t i) { return ((block[2 + i / 4] >> (i % 4 * 2)) & 3) - 1; }};
constexpr FewCodes tq2_0{256, 66, 64, [](const uint8_t *block, int64_t i) {
                           return ((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3) - 1;
                         }};
// Digits to the base 3: 160 values in 32 bytes, digit after digit, 80 in 16 bytes, 16 in four.
constexpr FewCodes tq1_0{256, 54, 52, [](const uint8_t *block, int64_t i) {
                           constexpr uint8_t powers[] = {1, 3, 9, 27, 81};
                           int64_t digit = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
                           int64_t byte = i < 160 ? i % 32 : i < 240 ? 32 + i % 16 : 48 + i % 4;
                           return (static_cast<uint8_t>(block[byte] * powers[digit]) * 3 >> 8) - 1;
                         }};

template <const FewCodes &few, WeightForm form>
bool moveFewCodes(const uint8_t *row, int64_t group, GroupTarget target) {
  int64_t groups = few.blockValues / 32;
  const uint8_t *block = row + group / groups * few.blockBytes;
  int8_t codes[32];
  for (int64_t k = 0; k < 32; ++k)
    codes[k] = static_cast<int8_t>(few.codeOf(block, group % groups * 32 + k));
  if (form == WeightForm::I4)
    storeNibbles(codes, 8, target);
  else
    storeSignedCodes(codes, target);
  std::memcpy(target.scale, block + few.scaleAt, 2);
  return true;
}

// MXFP4: a power of two, 16 bytes of four-bit floats, which are halves of integers.
bool moveMXFP4(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 17;
  int8_t codes[32];
  for (int k = 0; k < 16; ++k) {
    codes[k] = twiceE2M1[block[1 + k] & 15];
    codes[k + 16] = twiceE2M1[block[1 + k] >> 4];
  }
  storeSignedCodes(codes, target);
  return storeRounded(target.scale, std::ldexp(1.0f, block[0] - 128), true);
}

CodedGroup codedGroup(const uint8_t *row, int64_t group) {
  CodedGroup coded;
  std::memcpy(&coded, row + group * static_cast<int64_t>(sizeof coded), sizeof coded);
  return coded;
}

bool storeScale(const CodedGroup &coded, GroupTarget target) {
  return storeRounded(target.scale, coded.scale[0], std::isfinite(coded.scale[0]));
}

// Twice the value of a 4-bit float back to its code. Zero has two, of which the positive one is as good.
uint8_t float4Of(int8_t twice) {
  auto at = std::find(std::begin(twiceE2M1), std::end(twiceE2M1), twice);
  return static_cast<uint8_t>(at - std::begin(twiceE2M1));
}

bool moveFloatsToF4(const uint8_t *row, int64_t group, GroupTarget target) {
  CodedGroup coded = codedGroup(row, group);
  for (int8_t &code : coded.codes)
    code = static_cast<int8_t>(float4Of(code));
  storeNibbles(coded.codes, 0, target);
  return storeRounded(target.minimum, coded.scale[1], std::isfinite(coded.scale[1])) && storeScale(coded, target);
}

bool moveMXFP4ToF4(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group * 17;
  storeNibblePairs(block + 1, target);
  float scale = std::ldexp(1.0f, block[0] - 128);
  return storeRounded(target.scale, scale, true) && storeRounded(target.minimum, scale, true);
}

// NVFP4: blocks of 64, four e4m3 scales without a sign, then for each eight bytes: byte j holds values j and j + 8.
bool moveNVFP4ToF4(const uint8_t *row, int64_t group, GroupTarget target) {
  const uint8_t *block = row + group / 2 * 36;
  int8_t codes[32];
  for (int half = 0; half < 2; ++half) {
    int64_t part = group % 2 * 2 + half;
    uint8_t code = block[part] & 0x7F; // 0x7F counts as zero
    uint16_t scale = f16FromF32(code == 0x7F ? 0.0f : 0.5f * fromF8E4M3(code));
    storeHalf(half == 0 ? target.scale : target.minimum, scale);
    for (int k = 0; k < 8; ++k) {
      codes[16 * half + k] = block[4 + 8 * part + k] & 15;
      codes[16 * half + 8 + k] = block[4 + 8 * part + k] >> 4;
    }
  }
  storeNibbles(codes, 0, target);
  return true;
}

// Bytes of values, each with its scale, of which a group has one; a part of a row that begins within a block of the
// published scales may have two.
bool movePartOfFloat8(const uint8_t *row, int64_t group, int64_t values, GroupTarget target) {
  bool fits = true;
  for (int64_t k = 0; k < values; ++k) {
    CodedFloat8 coded;
    std::memcpy(&coded, row + (32 * group + k) * static_cast<int64_t>(sizeof coded), sizeof coded);
    target.codes[lanesPerBlock * k] = coded.code;
    fits &= (coded.code & 0x7F) != 0x7F && std::isfinite(loadFloat(coded.scale));
    fits &= k == 0 || std::memcmp(target.scale, coded.scale, 4) == 0;
    std::memcpy(target.scale, coded.scale, 4);
  }
  return fits;
}

bool moveCodesToI8(const uint8_t *row, int64_t group, GroupTarget target) {
  CodedGroup coded = codedGroup(row, group);
  storeSignedCodes(coded.codes, target);
  return storeScale(coded, target);
}

bool moveCodesToI4(const uint8_t *row, int64_t group, GroupTarget target) {
  CodedGroup coded = codedGroup(row, group);
  storeNibbles(coded.codes, 8, target);
  return storeScale(coded, target);
}

// value = (code + 8) * scale - 8 * scale, from the rounded scale: then the product by 8 is exact.
bool moveCodesToI4M(const uint8_t *row, int64_t group, GroupTarget target) {
  CodedGroup coded = codedGroup(row, group);
  storeNibbles(coded.codes, 8, target);
  bool fits = storeScale(coded, target);
  uint16_t scale = loadHalf(target.scale);
  return storeRounded(target.minimum, -8.0f * fromF16(scale), f16IsFinite(scale)) && fits;
}

bool moveCodesFrom0ToI4M(const uint8_t *row, int64_t group, GroupTarget target) {
  CodedGroup coded = codedGroup(row, group);
  storeNibbles(coded.codes, 0, target);
  return storeRounded(target.minimum, coded.minimum, std::isfinite(coded.minimum)) && storeScale(coded, target);
}

// The minimum is a whole number of scales, which codes of eight bits hold.
bool moveCodesFrom0ToI8(const uint8_t *row, int64_t group, GroupTarget target) {
  CodedGroup coded = codedGroup(row, group);
  float steps = coded.minimum / coded.scale[0];
  int offset = std::isfinite(steps) ? static_cast<int>(std::lround(std::clamp(steps, -112.0f, 112.0f))) : 0;
  for (int8_t &code : coded.codes)
    code = static_cast<int8_t>(code + offset);
  storeSignedCodes(coded.codes, target);
  return storeScale(coded, target);
}

constexpr BlockCodec codecs[] = {
    {TensorType::Q8_0, WeightForm::I8, true, moveQ8_0},
    {TensorType::Q4_0, WeightForm::I4, true, moveQ4_0},
    {TensorType::Q4_0, WeightForm::I4M, true, moveQ4_0ToI4M},
    {TensorType::Q4_0, WeightForm::I8, true, moveQ4_0ToI8},
    {TensorType::Q4_1, WeightForm::I4M, true, moveQ4_1},
    {TensorType::Q5_0, WeightForm::I8, true, moveQ5_0},
    {TensorType::Q4_K, WeightForm::I4M, false, moveQ4_K},
    {TensorType::IQ4_NL, WeightForm::I8, true, moveIQ4_NL},
    {TensorType::Q1_0, WeightForm::I4, true, moveFewCodes<q1_0, WeightForm::I4>},
    {TensorType::Q1_0, WeightForm::I8, true, moveFewCodes<q1_0, WeightForm::I8>},
    {TensorType::Q2_0, WeightForm::I4, true, moveFewCodes<q2_0, WeightForm::I4>},
    {TensorType::Q2_0, WeightForm::I8, true, moveFewCodes<q2_0, WeightForm::I8>},
    {TensorType::TQ1_0, WeightForm::I4, true, moveFewCodes<tq1_0, WeightForm::I4>},
    {TensorType::TQ1_0, WeightForm::I8, true, moveFewCodes<tq1_0, WeightForm::I8>},
    {TensorType::TQ2_0, WeightForm::I4, true, moveFewCodes<tq2_0, WeightForm::I4>},
    {TensorType::TQ2_0, WeightForm::I8, true, moveFewCodes<tq2_0, WeightForm::I8>},
    {TensorType::CodesOf8Bits, WeightForm::I8, true, moveCodesToI8},
    {TensorType::CodesOf4Bits, WeightForm::I4, true, moveCodesToI4},
    {TensorType::CodesOf4Bits, WeightForm::I4M, true, moveCodesToI4M},
    {TensorType::CodesOf4Bits, WeightForm::I8, true, moveCodesToI8},
    {TensorType::CodesFrom0, WeightForm::I4M, false, moveCodesFrom0ToI4M},
    {TensorType::CodesFrom0, WeightForm::I8, true, moveCodesFrom0ToI8},
    {TensorType::CodesMxfp4, WeightForm::F4, true, moveFloatsToF4},
    {TensorType::CodesMxfp4, WeightForm::I8, true, moveCodesToI8},
    {TensorType::CodesNvfp4, WeightForm::F4, false, moveFloatsToF4},
    {TensorType::CodesFp8, WeightForm::F8, true, nullptr, movePartOfFloat8},
    {TensorType::MXFP4, WeightForm::F4, true, moveMXFP4ToF4},
    {TensorType::NVFP4, WeightForm::F4, true, moveNVFP4ToF4},
    {TensorType::MXFP4, WeightForm::I8, true, moveMXFP4},
};

} // namespace

GroupTarget groupTarget(uint8_t *block, WeightForm form, int64_t group, int64_t lane) {
  PackedLayout layout; // inside a block nothing depends on anything but the form
  layout.form = form;
  int64_t slot = 2 * (lanesPerBlock * group + lane);
  if (form == WeightForm::F8)
    return {block + layout.groupBytes() * group + lane, block + layout.scalesAt() + 2 * slot, nullptr};
  return {block + layout.groupBytes() * group + 4 * lane, block + layout.scalesAt() + slot,
          block + layout.minimaAt() + slot};
}

const BlockCodec *blockCodec(TensorType type, WeightForm form) {
  for (const BlockCodec &codec : codecs)
    if (codec.type == type && codec.form == form)
      return &codec;
  return nullptr;
}

} // namespace llmc
