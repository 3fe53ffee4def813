// The weights of all ranks that share a model, packed in one pass over its tensors.
#pragma once
#include "lib/artifact/ArtifactWriter.h"
#include "lib/weights/Pack.h"

namespace llmc {

struct PlacedWeight {
  WeightRecipe recipe;
  PackedLayout layout;
  uint64_t offset; // in the weights of its rank
};

struct RankWeights {
  std::span<const PlacedWeight> weights; // by offset; ranks have the same weights in the same order, but not each all
  uint64_t bytes;
  WeightSink &sink;
};

// Weight after weight for all ranks that have it, so that its tensors are read once, and of a model that is larger than
// memory no more than a weight's need be there. What the sinks hold already is left out. Bytes of the result do not
// depend on `threads`.
Status packRanks(std::span<const RankWeights> ranks, const TensorReader &tensors, int threads);

} // namespace llmc
