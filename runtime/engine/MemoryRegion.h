// MemoryRegion: one buffer of the memory plan, mapped once at load, zeroed, with unmapped pages on both sides so that a
// kernel that leaves its buffer faults at once. It ends at the guard: one byte too far is enough.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>

namespace llmc {

class MemoryRegion {
public:
  MemoryRegion() = default;
  // `what` is for the message ("KV cache"). Zero bytes give a region whose data faults.
  static StatusOr<MemoryRegion> map(uint64_t bytes, const std::string &what);
  MemoryRegion(MemoryRegion &&other) noexcept;
  MemoryRegion &operator=(MemoryRegion &&other) noexcept;
  ~MemoryRegion();

  // 64-byte aligned.
  uint8_t *data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

private:
  void *mapping_ = nullptr;
  uint64_t mappedBytes_ = 0;
  uint8_t *data_ = nullptr;
  uint64_t bytes_ = 0;
};

} // namespace llmc
