#include "tools/llmc/StepWork.h"
#include <algorithm>
#include <cstdint>

namespace llmc {

int64_t StepShape::rows() const {
  int64_t rows = 0;
  for (const SequenceRows &sequence : sequences)
    rows += sequence.rows;
  return rows;
}

StepShape prefillShape(int64_t tokens) { return {{{0, tokens}}, 1}; }

StepShape decodeShape(int64_t streams, int64_t length) {
  return {std::vector<SequenceRows>(static_cast<size_t>(streams), {length, 1}), streams};
}

KernelWork workOf(const KernelCost &cost, const StepShape &shape) {
  auto rows = static_cast<double>(cost.logitRows ? shape.logitRows : shape.rows());
  int64_t window = cost.window > 0 ? cost.window : INT64_MAX;
  double seen = 0, read = 0; // positions, per row and per sequence
  for (const SequenceRows &sequence : shape.sequences) {
    int64_t end = sequence.first + sequence.rows;
    for (int64_t position = sequence.first; position < end; ++position)
      seen += static_cast<double>(std::min(position + 1, window));
    read += static_cast<double>(end - std::max<int64_t>(0, sequence.first + 1 - std::min(window, sequence.first + 1)));
  }
  KernelWork work;
  double rowProducts = rows * static_cast<double>(cost.products);
  work.products = rowProducts + seen * static_cast<double>(cost.positionProducts);
  work.instructionOps = work.products + rowProducts * static_cast<double>(cost.passes - 1);
  work.otherOperations = rows * static_cast<double>(cost.otherOperations);
  work.weightBytes = rows > 0 ? static_cast<double>(cost.weightBytes) : 0;
  work.cacheBytes = read * static_cast<double>(cost.positionBytes) +
                    static_cast<double>(shape.sequences.size()) * static_cast<double>(cost.sequenceBytes);
  work.rowBytes = rows * static_cast<double>(cost.rowBytes);
  return work;
}

double cacheBytesOf(const DispatchManifest &manifest, const StepShape &shape) {
  double bytes = 0;
  for (const KernelEntry &kernel : manifest.kernels)
    bytes += workOf(kernel.cost, shape).cacheBytes * static_cast<double>(kernel.layers.size());
  return bytes;
}

} // namespace llmc
