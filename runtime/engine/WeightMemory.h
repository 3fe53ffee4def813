// WeightMemory: where a step reads weights. Decoding is reading weights, and how fast memory is read depends on its
// pages: the page cache behind a mapped file is in small ones, in which we measured 10 GB/s a core where huge ones
// gave 17.
#pragma once
#include "runtime/artifact/Loader.h"
#include "runtime/engine/MemoryRegion.h"
#include "runtime/engine/ThreadPool.h"
#include "runtime/support/Progress.h"

namespace llmc {

enum class WeightPlacement {
  Choose, // copied when that gains something (weightsAreCopied) and the kernel gives huge pages
  Mapped, // the artifact's own file: shared between processes, ready at once
  Copied,
};

// Whether weights are worth a copy and it fits beside the `otherBytes` of the plan into what is available. Else they
// stay in their file: pages come when they are read and go when memory is short, so that weights that are more than
// memory, of which a step needs few (experts), run from the disk.
bool weightsAreCopied(uint64_t weightBytes, uint64_t otherBytes, uint64_t availableBytes);

class WeightMemory {
public:
  // Compares the hash of the weights, too. The artifact must live as long. While it copies, no more than the weights
  // and a slice per worker are resident.
  static StatusOr<WeightMemory> place(const LoadedArtifact &artifact, WeightPlacement placement, uint64_t otherBytes,
                                      ThreadPool &pool, Progress::When progress = Progress::When::OnTerminal);

  const uint8_t *data() const { return data_; }
  bool copied() const { return copy_.bytes() > 0; }

private:
  MemoryRegion copy_;
  const uint8_t *data_ = nullptr;
};

} // namespace llmc
