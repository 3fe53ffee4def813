// What the memory of this machine gives at most, and what it costs its threads to meet: measured in the same run as
// what is compared with it.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>

namespace llmc {

enum class MemoryLevel { L1, L2, L3, Memory };
inline constexpr MemoryLevel memoryLevels[] = {MemoryLevel::L1, MemoryLevel::L2, MemoryLevel::L3, MemoryLevel::Memory};
std::string memoryLevelName(MemoryLevel level); // "L1", "memory"
// Of one cache of that level, as the system states it; 0 where it does not. Of memory: 0.
uint64_t cacheBytes(MemoryLevel level);

// Bytes per second that `threads` threads read together, each a part of its own that lies in that level; best of
// several passes. An error says why there is none. Measured in a child process.
StatusOr<double> measureReadBandwidth(MemoryLevel level, int32_t threads);

// The same for `bytes` bytes that are read again and again, as a step of decode reads its weights: from wherever they
// stay.
StatusOr<double> measureRereading(uint64_t bytes, int32_t threads);

// Seconds that `threads` threads of the engine's pool take to meet once when all arrive together.
StatusOr<double> measureBarrier(int32_t threads);

} // namespace llmc
