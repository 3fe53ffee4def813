// From published tensors to the bytes that kernels read, tile after tile.
#pragma once
#include "lib/weights/PackedLayout.h"
#include "lib/weights/WeightReader.h"
#include <functional>

namespace llmc {

// Takes the packed bytes in order; pieces are whole tiles.
using ByteSink = std::function<Status(std::span<const uint8_t>)>;

// One rank's part of a weight, and where its bytes go.
struct WeightPart {
  const WeightRecipe &recipe;
  const PackedLayout &layout;
  ByteSink sink;
};

// Streams layout.bytes() bytes of each part into its sink; sinks run on the caller's thread, in turn. The bytes do not
// depend on `threads`. Holds up to two pieces per thread, packed (a tile, or several that make 64 KiB), and a tile
// as f32. Stored blocks that the form can hold (BlockCodecs.h) are moved as they are unless the recipe adds something;
// everything else passes through f32.
Status packWeights(std::span<const WeightPart> parts, const TensorReader &tensors, int threads = 1);
// The same for one.
Status packWeight(const WeightRecipe &recipe, const PackedLayout &layout, const TensorReader &tensors,
                  const ByteSink &sink, int threads = 1);

} // namespace llmc
