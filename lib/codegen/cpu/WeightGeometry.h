// Sizes of a packed weight as kernels address it; docs/weight-layouts.md is the specification.
#pragma once
#include "dialects/llm/LlmDialect.h"

namespace llmc::cpu {

struct WeightGeometry {
  explicit WeightGeometry(llm::WeightType weight)
      : form(weight.getForm()), rows(weight.getShape()[0]), depth(weight.getShape()[1]), tile(weight.getTile()),
        vectors((tile + 15) / 16), panelVectors(weight.getPanel() / 16), pairs((depth + 1) / 2),
        blocks((depth + 63) / 64), groups(2 * blocks) {}

  llm::WeightForm form;
  int64_t rows, depth;           // N, K
  int64_t tile;                  // TN
  int64_t vectors, panelVectors; // TN and NP in vectors of 16 output channels
  int64_t pairs, blocks, groups; // K2, K64, groups of 32 along K

  bool isQuantized() const { return form != llm::WeightForm::F32 && form != llm::WeightForm::BF16; }
  // Steps along K of the f32 and bf16 forms; each step holds 4 bytes of every output channel.
  int64_t steps() const { return form == llm::WeightForm::BF16 ? pairs : depth; }
  int64_t panelBytes() const { return steps() * panelVectors * 64; }
  int64_t groupBytes() const { return form == llm::WeightForm::I8 ? 512 : 256; }
  int64_t scalesAt() const { return 2 * groupBytes(); }
  int64_t minimaAt() const { return scalesAt() + 64; }
  int64_t blockBytes() const { return form == llm::WeightForm::I4M ? 640 : scalesAt() + 64; }
  int64_t tileBytes() const { return isQuantized() ? blocks * vectors * blockBytes() : steps() * vectors * 64; }
  // What a stored code holds beyond its value.
  int64_t zeroPoint() const { return form == llm::WeightForm::I8 ? 128 : form == llm::WeightForm::I4 ? 8 : 0; }
};

} // namespace llmc::cpu
