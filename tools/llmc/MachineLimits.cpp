#include "tools/llmc/MachineLimits.h"
#include "runtime/support/CpuFeatures.h"
#include "runtime/support/MachineMemory.h"
#include "tools/llmc/BestTime.h"
#include "tools/llmc/ChildProbe.h"
#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llmc {
namespace {

constexpr uint64_t leastReadBytes = uint64_t(512) << 20, mostReadBytes = uint64_t(2) << 30;
constexpr int readSlices = 16, readPasses = 2;
constexpr uint64_t cacheReadBytes = uint64_t(64) << 20; // of a thread, per measurement of a cache
constexpr int cacheRepeats = 20;
constexpr int barriersPerRun = 2000, barrierRepeats = 20;

#if defined(__x86_64__)
// Sums must not be dropped, and a second pass must read again.
__attribute__((target("avx2"))) void readAll256(const uint8_t *bytes, size_t size) {
  __m256i any[4] = {};
  for (size_t at = 0; at + 128 <= size; at += 128)
    for (int i = 0; i < 4; ++i)
      any[i] = _mm256_or_si256(any[i], _mm256_load_si256(reinterpret_cast<const __m256i *>(bytes + at + 32 * i)));
  for (__m256i &part : any)
    __asm__ volatile("" : "+x"(part)::"memory");
}

__attribute__((target("avx512f"))) void readAll512(const uint8_t *bytes, size_t size) {
  __m512i any[8] = {};
  for (size_t at = 0; at + 512 <= size; at += 512)
    for (int i = 0; i < 8; ++i)
      any[i] = _mm512_or_si512(any[i], _mm512_load_si512(bytes + at + 64 * i));
  for (__m512i &part : any)
    __asm__ volatile("" : "+v"(part)::"memory");
}

using Read = void (*)(const uint8_t *bytes, size_t size);
Read widestRead() {
  auto has = [](const char *feature) { return checkCpuFeatures({feature}, hostCpuFeatures()).ok(); };
  return has("avx512f") ? readAll512 : has("avx2") ? readAll256 : nullptr;
}
#else
using Read = void (*)(const uint8_t *bytes, size_t size);
Read widestRead() { return nullptr; }
#endif

// Memory that is given back at the end, in huge pages where there are any.
class Pages {
public:
  explicit Pages(uint64_t bytes) : bytes_(bytes) {
    memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ != MAP_FAILED)
      ::madvise(memory_, bytes, MADV_HUGEPAGE);
  }
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;
  ~Pages() {
    if (memory_ != MAP_FAILED)
      ::munmap(memory_, bytes_);
  }
  uint8_t *data() const { return memory_ == MAP_FAILED ? nullptr : static_cast<uint8_t *>(memory_); }

private:
  void *memory_;
  uint64_t bytes_;
};

// Parts are whole huge pages, shared with nobody.
constexpr uint64_t hugePage = uint64_t(2) << 20;

StatusOr<double> readMemory(Read read, int32_t threads) {
  uint64_t wanted = std::clamp(10 * cacheBytes(MemoryLevel::L3), leastReadBytes, mostReadBytes);
  if (uint64_t available = machineMemory().availableBytes; available > 0 && wanted > available / 2)
    wanted = available / 2;
  // Each measurement reads a slice of every part, which is long out of the caches when its turn comes again.
  uint64_t slice = wanted / (static_cast<uint64_t>(threads) * readSlices) / hugePage * hugePage;
  uint64_t part = slice * readSlices;
  Pages memory(std::max(part * static_cast<uint64_t>(threads), hugePage));
  if (slice == 0 || !memory.data())
    return Status::error("there is not enough memory to measure: " + std::to_string(wanted) + " bytes wanted");
  auto partOf = [&](int32_t thread) { return memory.data() + static_cast<uint64_t>(thread) * part; };
  // Written first: pages that were never written are all the same zeros in the cache. By the thread that reads them, so
  // that they lie in its memory.
  double seconds = bestSeconds(
      threads, readSlices * readPasses, [&](int32_t thread) { std::fill_n(partOf(thread), part, uint8_t(1)); },
      [&](ThreadPool &, int32_t thread, int repeat) {
        read(partOf(thread) + static_cast<uint64_t>(repeat % readSlices) * slice, slice);
      });
  return static_cast<double>(slice * static_cast<uint64_t>(threads)) / seconds;
}

// Half of a core's own cache, so that it stays there; of the last level enough to be out of the second one.
StatusOr<uint64_t> partOfCache(MemoryLevel level, int32_t threads) {
  uint64_t bytes = cacheBytes(level), second = cacheBytes(MemoryLevel::L2);
  if (bytes == 0)
    return Status::error("the system does not say how large this cache is");
  if (level != MemoryLevel::L3)
    return bytes / 2;
  uint64_t part = std::min(bytes / (2 * static_cast<uint64_t>(threads)), std::max(4 * second, uint64_t(8) << 20));
  if (part < 2 * second)
    return Status::error("a thread's share of it is no larger than the level before");
  return part;
}

// Every thread reads its part several times over.
StatusOr<double> readAgain(Read read, uint64_t part, int32_t threads, int repeats) {
  part = std::max<uint64_t>(part / 512 * 512, 512);
  uint64_t stride = (part + hugePage - 1) / hugePage * hugePage;
  Pages memory(stride * static_cast<uint64_t>(threads));
  if (!memory.data())
    return Status::error("there is not enough memory to measure: " + std::to_string(stride) + " bytes a thread wanted");
  auto passes = static_cast<int>(std::max<uint64_t>(1, cacheReadBytes / part));
  auto readPart = [&](int32_t thread, int times) {
    for (int pass = 0; pass < times; ++pass)
      read(memory.data() + static_cast<uint64_t>(thread) * stride, part);
  };
  auto prepare = [&](int32_t thread) {
    std::fill_n(memory.data() + static_cast<uint64_t>(thread) * stride, part, uint8_t(1));
    readPart(thread, 2);
  };
  double seconds =
      bestSeconds(threads, repeats, prepare, [&](ThreadPool &, int32_t thread, int) { readPart(thread, passes); });
  return static_cast<double>(part) * passes * threads / seconds;
}

StatusOr<double> readCache(Read read, MemoryLevel level, int32_t threads) {
  LLMC_ASSIGN_OR_RETURN(uint64_t part, partOfCache(level, threads));
  return readAgain(read, part, threads, cacheRepeats);
}

} // namespace

std::string memoryLevelName(MemoryLevel level) {
  const char *names[] = {"L1", "L2", "L3", "memory"};
  return names[static_cast<int>(level)];
}

uint64_t cacheBytes(MemoryLevel level) {
  if (level == MemoryLevel::Memory)
    return 0;
  const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  long bytes = ::sysconf(names[static_cast<int>(level)]);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

StatusOr<double> measureReadBandwidth(MemoryLevel level, int32_t threads) {
  Read read = widestRead();
  if (!read)
    return Status::error("only machines with AVX2 are measured");
  return measureInChild(
      [&] { return level == MemoryLevel::Memory ? readMemory(read, threads) : readCache(read, level, threads); });
}

StatusOr<double> measureRereading(uint64_t bytes, int32_t threads) {
  Read read = widestRead();
  if (!read)
    return Status::error("only machines with AVX2 are measured");
  // More than this lies in no cache, so it need not be touched to know.
  bytes = std::clamp<uint64_t>(bytes, 4096, mostReadBytes);
  if (uint64_t available = machineMemory().availableBytes; available > 0)
    bytes = std::min(bytes, available / 2);
  auto repeats = static_cast<int>(std::clamp<uint64_t>(2 * mostReadBytes / bytes, 5, 40));
  return measureInChild([&] { return readAgain(read, bytes / static_cast<uint64_t>(threads), threads, repeats); });
}

StatusOr<double> measureBarrier(int32_t threads) {
  auto meet = [](ThreadPool &pool, int32_t, int) {
    for (int i = 0; i < barriersPerRun; ++i)
      pool.barrier();
  };
  return measureInChild([&]() -> StatusOr<double> {
    return bestSeconds(
               threads, barrierRepeats, [](int32_t) {}, meet) /
           barriersPerRun;
  });
}

} // namespace llmc
