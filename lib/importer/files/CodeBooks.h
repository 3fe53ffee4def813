// ggml's types whose codes are indices of code books: vectors of eight (or four) levels at a time. 256 values to a block.
#pragma once
#include <cstdint>

namespace llmc {

void dequantizeIQ1_S(const uint8_t *block, float *out);
void dequantizeIQ1_M(const uint8_t *block, float *out);
void dequantizeIQ2_XXS(const uint8_t *block, float *out);
void dequantizeIQ2_XS(const uint8_t *block, float *out);
void dequantizeIQ2_S(const uint8_t *block, float *out);
void dequantizeIQ3_XXS(const uint8_t *block, float *out);
void dequantizeIQ3_S(const uint8_t *block, float *out);

} // namespace llmc
