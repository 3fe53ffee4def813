#include "runtime/engine/WeightMemory.h"
#include "runtime/support/Hash.h"
#include "runtime/support/MachineMemory.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

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
  std::vector<std::atomic<bool>> done; // by slice
};

// Every worker takes every n-th slice.
void copySlices(void *state, int32_t worker) {
  auto &copy = *static_cast<Copy *>(state);
  std::span<const uint8_t> from = copy.artifact.weights();
  for (auto slice = static_cast<size_t>(worker); slice < copy.done.size(); slice += copy.workers) {
    size_t at = slice * sliceBytes, size = std::min(sliceBytes, from.size() - at);
    copy.artifact.populateWeightPages(at, size);
    std::memcpy(copy.to + at, from.data() + at, size);
    copy.artifact.dropWeightPages(at, size);
    copy.done[slice] = true;
    copy.done[slice].notify_one();
  }
}

// Of slices in their order, each when `ready` returns.
std::string hashOf(std::span<const uint8_t> weights, Progress::When progressWhen,
                   const std::function<void(size_t slice)> &ready) {
  Progress progress("loading weights", "bytes", weights.size(), progressWhen);
  Hasher hash;
  for (size_t at = 0; at < weights.size(); at += sliceBytes) {
    ready(at / sliceBytes);
    hash.add(weights.subspan(at, std::min(sliceBytes, weights.size() - at)));
    progress.update(at);
  }
  return hash.hex();
}

} // namespace

bool weightsAreCopied(uint64_t weightBytes, uint64_t otherBytes, uint64_t availableBytes) {
  return weightBytes >= leastBytes && availableBytes >= spareBytes && weightBytes <= availableBytes - spareBytes &&
         otherBytes <= availableBytes - spareBytes - weightBytes;
}

StatusOr<WeightMemory> WeightMemory::place(const LoadedArtifact &artifact, WeightPlacement placement,
                                           uint64_t otherBytes, ThreadPool &pool, Progress::When progress) {
  WeightMemory memory;
  std::span<const uint8_t> weights = artifact.weights();
  memory.data_ = weights.data();
  if (!shouldCopy(placement, weights.size(), otherBytes)) {
    LLMC_RETURN_IF_ERROR(artifact.checkWeights(hashOf(weights, progress, [](size_t) {})));
    return memory;
  }
  LLMC_ASSIGN_OR_RETURN(memory.copy_, MemoryRegion::map(weights.size(), "the weights"));
  memory.data_ = memory.copy_.data();
  Copy copy{artifact, memory.copy_.data(), static_cast<size_t>(pool.workers()),
            std::vector<std::atomic<bool>>((weights.size() + sliceBytes - 1) / sliceBytes)};
  // What is used is what is checked, as it comes: the file may change meanwhile.
  std::string hash;
  std::thread hashing([&] {
    hash = hashOf({memory.data_, weights.size()}, progress, [&](size_t slice) { copy.done[slice].wait(false); });
  });
  pool.run(copySlices, &copy);
  hashing.join();
  LLMC_RETURN_IF_ERROR(artifact.checkWeights(hash));
  return memory;
}

} // namespace llmc
