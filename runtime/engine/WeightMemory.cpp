#include "runtime/engine/WeightMemory.h"
#include "runtime/support/MachineMemory.h"
#include <algorithm>
#include <cstring>
#include <fstream>

namespace llmc {
namespace {

constexpr uint64_t leastBytes = 8u << 20;   // what fits a cache or two gains nothing
constexpr uint64_t spareBytes = 512u << 20; // left to everybody else
constexpr size_t sliceBytes = 4u << 20;

bool hugePagesAreOff() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  return !std::getline(file, modes) || modes.find("[never]") != std::string::npos;
}

bool shouldCopy(WeightPlacement placement, uint64_t bytes, uint64_t otherBytes) {
  if (placement == WeightPlacement::Choose)
    return !hugePagesAreOff() && weightsAreCopied(bytes, otherBytes, machineMemory().availableBytes);
  return bytes > 0 && placement == WeightPlacement::Copied;
}

struct Copy {
  const LoadedArtifact &artifact;
  uint8_t *to;
  size_t workers;
};

// Every worker takes every n-th slice.
void copySlices(void *state, int32_t worker) {
  const auto &copy = *static_cast<const Copy *>(state);
  std::span<const uint8_t> from = copy.artifact.weights();
  for (size_t at = static_cast<size_t>(worker) * sliceBytes; at < from.size(); at += copy.workers * sliceBytes) {
    size_t size = std::min(sliceBytes, from.size() - at);
    copy.artifact.populateWeightPages(at, size);
    std::memcpy(copy.to + at, from.data() + at, size);
    copy.artifact.dropWeightPages(at, size);
  }
}

} // namespace

bool weightsAreCopied(uint64_t weightBytes, uint64_t otherBytes, uint64_t availableBytes) {
  return weightBytes >= leastBytes && availableBytes >= spareBytes && weightBytes <= availableBytes - spareBytes &&
         otherBytes <= availableBytes - spareBytes - weightBytes;
}

StatusOr<WeightMemory> WeightMemory::place(const LoadedArtifact &artifact, WeightPlacement placement,
                                           uint64_t otherBytes, ThreadPool &pool) {
  WeightMemory memory;
  std::span<const uint8_t> weights = artifact.weights();
  memory.data_ = weights.data();
  if (!shouldCopy(placement, weights.size(), otherBytes)) {
    LLMC_RETURN_IF_ERROR(artifact.checkWeights(weights));
    return memory;
  }
  LLMC_ASSIGN_OR_RETURN(memory.copy_, MemoryRegion::map(weights.size(), "the weights"));
  memory.data_ = memory.copy_.data();
  Copy copy{artifact, memory.copy_.data(), static_cast<size_t>(pool.workers())};
  pool.run(copySlices, &copy);
  // What is used is what is checked: the file may change meanwhile.
  LLMC_RETURN_IF_ERROR(artifact.checkWeights({memory.data_, weights.size()}));
  return memory;
}

} // namespace llmc
