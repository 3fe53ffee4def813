// What one step of an artifact reads and multiplies, from its manifest and its list of kernels.
#pragma once
#include "runtime/artifact/Loader.h"

namespace llmc {

struct WeightReport {
  std::string form;                   // of most bytes that are multiplied: "f32", "bf16", "int8", "int4"
  KernelEntry kernel;                 // the first that multiplies weights of that form
  int vectorBits = 0;                 // of the target
  uint64_t bytesPerStep = 0;          // read by a step, however few rows it has
  uint64_t operationsPerToken = 0;    // of matrix products; a multiply and an add are two
  uint64_t operationsPerLogitRow = 0; // of the head, which only rows whose logits are wanted pass
};

StatusOr<WeightReport> reportWeights(const LoadedArtifact &artifact, const DispatchManifest &dispatch);
// Vector bits of the artifact's target; 256 where this compiler does not know it.
int vectorBitsOf(const Manifest &manifest);

} // namespace llmc
