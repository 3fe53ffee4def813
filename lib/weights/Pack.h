// From published tensors to the bytes that kernels read, tile after tile.
#pragma once
#include "lib/weights/PackedLayout.h"
#include "lib/weights/WeightReader.h"
#include <functional>

namespace llmc {

// Takes the packed bytes in order; pieces are whole tiles.
using ByteSink = std::function<Status(std::span<const uint8_t>)>;

// Streams layout.bytes() bytes into `sink`, which runs on the caller's thread. The bytes do not depend on `threads`.
// Holds up to two tiles per thread, packed, and one as f32. Stored blocks that the form can hold (BlockCodecs.h) are
// moved as they are unless the recipe adds something; everything else passes through f32.
Status packWeight(const WeightRecipe &recipe, const PackedLayout &layout, const TensorReader &tensors,
                  const ByteSink &sink, int threads = 1);

} // namespace llmc
