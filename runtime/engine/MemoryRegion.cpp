#include "runtime/engine/MemoryRegion.h"
#include "runtime/support/CheckedSize.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace llmc {
namespace {

constexpr uint64_t alignment = 64;
constexpr uint64_t hugePage = 2u << 20;

} // namespace

StatusOr<MemoryRegion> MemoryRegion::map(uint64_t bytes, const std::string &what) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  CheckedSize padded = CheckedSize(bytes) + 3 * page;
  if (!padded.fits(INT64_MAX))
    return Status::error(what + ": " + std::to_string(bytes) + " bytes do not fit 63 bits");
  uint64_t inner = (bytes + page - 1) / page * page;
  MemoryRegion region;
  region.mappedBytes_ = inner + 2 * page;
  // Reserved first without access, then opened in the middle: what stays closed is the guard.
  void *mapping = ::mmap(nullptr, region.mappedBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return Status::error("cannot allocate " + std::to_string(bytes) + " bytes for " + what + ": " +
                         std::strerror(errno) + "; compile with a smaller --context or --max-sequences");
  region.mapping_ = mapping;
  auto *start = static_cast<uint8_t *>(mapping) + page;
  if (inner > 0 && ::mprotect(start, inner, PROT_READ | PROT_WRITE) != 0)
    return Status::error("cannot allocate " + std::to_string(bytes) + " bytes for " + what + ": " +
                         std::strerror(errno) + "; compile with a smaller --context or --max-sequences");
  // Advice only: without huge pages everything works, slower.
  if (inner >= 4 * hugePage && ::madvise(start, inner, MADV_HUGEPAGE) != 0)
    errno = 0;
  region.bytes_ = bytes;
  region.data_ = start + inner - (bytes + alignment - 1) / alignment * alignment;
  return region;
}

MemoryRegion::MemoryRegion(MemoryRegion &&other) noexcept { *this = std::move(other); }

MemoryRegion &MemoryRegion::operator=(MemoryRegion &&other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mappedBytes_, other.mappedBytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryRegion::~MemoryRegion() {
  if (mapping_)
    ::munmap(mapping_, mappedBytes_);
}

} // namespace llmc
