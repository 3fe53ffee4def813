// WeightMemory: where a step reads weights. Decoding is reading weights, and how fast memory is read depends on its
// pages: the page cache behind a mapped file is in small ones, in which we measured 10 GB/s a core where huge ones
// gave 17.
#pragma once
#include "runtime/artifact/Loader.h"
#include "runtime/engine/MemoryRegion.h"
#include "runtime/engine/ThreadPool.h"

namespace llmc {

enum class WeightPlacement {
  Choose, // copied when they are many, memory allows, and the kernel gives huge pages
  Mapped, // the artifact's own file: shared between processes, ready at once
  Copied,
};

class WeightMemory {
public:
  // Compares the hash of the weights, too. The artifact must live as long. While it copies, no more than the weights
  // and a slice per worker are resident.
  static StatusOr<WeightMemory> place(const LoadedArtifact &artifact, WeightPlacement placement, ThreadPool &pool);

  const uint8_t *data() const { return data_; }
  bool copied() const { return copy_.bytes() > 0; }

private:
  MemoryRegion copy_;
  const uint8_t *data_ = nullptr;
};

} // namespace llmc
