// What the kernels of a step have to do for a given batch, from the costs in the dispatch manifest.
#pragma once
#include "runtime/artifact/Dispatch.h"

namespace llmc {

// New tokens of one sequence, at positions first .. first + rows - 1.
struct SequenceRows {
  int64_t first = 0, rows = 0;
};

struct StepShape {
  std::vector<SequenceRows> sequences;
  int64_t logitRows = 0;
  int64_t rows() const;
};
// A whole prompt in one step, and one more token for each of `streams` sequences of `length` tokens.
StepShape prefillShape(int64_t tokens);
StepShape decodeShape(int64_t streams, int64_t length);

struct KernelWork {
  double products = 0;        // of matrix products and attention; a multiply and an add are two
  double instructionOps = 0;  // of the instruction that multiplies: more than `products` where it makes several passes
  double otherOperations = 0; // elementwise
  double weightBytes = 0, cacheBytes = 0, rowBytes = 0;
};
// Of one launch.
KernelWork workOf(const KernelCost &cost, const StepShape &shape);

// Bytes of the key-value cache that a step reads, over all launches.
double cacheBytesOf(const DispatchManifest &manifest, const StepShape &shape);

} // namespace llmc
