#include "tools/llmc/MachineLimits.h"
#include "runtime/support/CpuFeatures.h"
#include <algorithm>
#include <barrier>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t leastReadBytes = uint64_t(512) << 20, mostReadBytes = uint64_t(2) << 30;
// Many short measurements, best of them: on a busy machine a long one is always interrupted.
constexpr int readSlices = 16, readPasses = 2, peakRepeats = 20;

// Runs `work(thread, repeat)` on all threads at once and gives the seconds from the first start to the last end, least
// of all repeats. `prepare(thread)` runs once on each thread before.
double bestSeconds(int threads, int repeats, const std::function<void(int)> &prepare,
                   const std::function<void(int, int)> &work) {
  double least = std::numeric_limits<double>::infinity();
  Clock::time_point start;
  bool running = false;
  auto meet = [&]() noexcept {
    if (running)
      least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    running = !running;
    start = Clock::now();
  };
  std::barrier barrier(threads, meet);
  auto run = [&](int thread) {
    prepare(thread);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      barrier.arrive_and_wait();
      work(thread, repeat);
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back(run, thread);
  run(0);
  for (std::thread &other : others)
    other.join();
  return least;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void readAll(const uint8_t *bytes, size_t size) {
  __m256i any[4] = {};
  for (size_t at = 0; at + 128 <= size; at += 128)
    for (int i = 0; i < 4; ++i)
      any[i] = _mm256_or_si256(any[i], _mm256_load_si256(reinterpret_cast<const __m256i *>(bytes + at + 32 * i)));
  for (__m256i &part : any)
    __asm__ volatile("" : "+x"(part)); // must not be dropped
}

// Chains enough to hide the latency of any of the instructions, few enough for the registers. Operands and sums hide
// behind an asm: the compiler would see that all chains are one, and what comes out.
constexpr int chains512 = 24, chains256 = 12;

// step(sum) for each of `chains` sums in turn. Inlined into functions that name the instructions of the step, so it
// holds no vector operation itself.
template <int chains, typename Vector, typename Step>
[[gnu::always_inline]] inline void runChains(int64_t rounds, const Step &step) {
  Vector sums[chains] = {};
  for (int64_t round = 0; round < rounds; ++round) {
#pragma clang loop unroll(full)
    for (int i = 0; i < chains; ++i)
      step(sums[i]);
  }
}

__attribute__((target("avx2,fma"))) void fma256(int64_t rounds) {
  __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  __asm__ volatile("" : "+x"(x), "+x"(y));
  runChains<chains256, __m256>(
      rounds, [&](__m256 & sum) __attribute__((target("avx2,fma"))) {
        sum = _mm256_fmadd_ps(x, y, sum);
        __asm__ volatile("" : "+x"(sum));
      });
}

__attribute__((target("avx512f"))) void fma512(int64_t rounds) {
  __m512 x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  __asm__ volatile("" : "+v"(x), "+v"(y));
  runChains<chains512, __m512>(
      rounds, [&](__m512 & sum) __attribute__((target("avx512f"))) {
        sum = _mm512_fmadd_ps(x, y, sum);
        __asm__ volatile("" : "+v"(sum));
      });
}

__attribute__((target("avx512f,avx512bf16"))) void dotBf16(int64_t rounds) {
  __m512i x = _mm512_set1_epi16(0x3f00), y = _mm512_set1_epi16(0x3e80); // 0.5, 0.25
  __asm__ volatile("" : "+v"(x), "+v"(y));
  runChains<chains512, __m512>(
      rounds, [&](__m512 & sum) __attribute__((target("avx512f,avx512bf16"))) {
        sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
        __asm__ volatile("" : "+v"(sum));
      });
}

__attribute__((target("avx512f,avx512vnni"))) void dotBytes(int64_t rounds) {
  __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
  __asm__ volatile("" : "+v"(x), "+v"(y));
  runChains<chains512, __m512i>(
      rounds, [&](__m512i & sum) __attribute__((target("avx512f,avx512vnni"))) {
        sum = _mm512_dpbusd_epi32(sum, x, y);
        __asm__ volatile("" : "+v"(sum));
      });
}

// Without VNNI a byte dot is two instructions and an add.
__attribute__((target("avx2"))) void maddBytes(int64_t rounds) {
  __m256i x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  runChains<chains256, __m256i>(
      rounds, [&](__m256i & sum) __attribute__((target("avx2"))) {
        __asm__ volatile("" : "+x"(x)); // each chain multiplies anew
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), ones));
        __asm__ volatile("" : "+x"(sum));
      });
}

struct Peak {
  const char *instruction;
  int vectorBits; // 0: any
  std::vector<std::string> features;
  void (*run)(int64_t rounds);
  int64_t operationsPerRound;
};

const std::vector<Peak> &peaks() {
  static const std::vector<Peak> all = {
      {"fma", 512, {"avx512f"}, fma512, chains512 * 32},
      {"fma", 256, {"avx2", "fma"}, fma256, chains256 * 16},
      {"vdpbf16ps", 0, {"avx512f", "avx512_bf16"}, dotBf16, chains512 * 64},
      {"vpdpbusd", 0, {"avx512f", "avx512_vnni"}, dotBytes, chains512 * 128},
      {"vpmaddubsw", 0, {"avx2"}, maddBytes, chains256 * 64},
      {"vpsignb+vpmaddubsw", 0, {"avx2"}, maddBytes, chains256 * 64},
  };
  return all;
}
#endif

uint64_t readNumber(const std::string &path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : 0; // "max" is no number
}

uint64_t lastCacheBytes() {
  long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

} // namespace

MachineMemory machineMemory() {
  MachineMemory memory;
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    uint64_t kilobytes = 0;
    file >> kilobytes;
    std::getline(file, unit);
    if (name == "MemTotal:")
      memory.totalBytes = kilobytes << 10;
    if (name == "MemAvailable:")
      memory.availableBytes = kilobytes << 10;
  }
  if (uint64_t limit = readNumber("/sys/fs/cgroup/memory.max")) {
    uint64_t used = std::min(limit, readNumber("/sys/fs/cgroup/memory.current"));
    memory.totalBytes = std::min(memory.totalBytes, limit);
    memory.availableBytes = std::min(memory.availableBytes, limit - used);
  }
  return memory;
}

double measureReadBandwidth(int threads) {
#if defined(__x86_64__)
  uint64_t wanted = std::clamp(10 * lastCacheBytes(), leastReadBytes, mostReadBytes);
  if (uint64_t available = machineMemory().availableBytes; available > 0 && wanted > available / 2)
    wanted = available / 2;
  // Each thread has a part, each measurement a slice of every part: whole huge pages, shared with nobody, and long out
  // of the caches when its turn comes again.
  uint64_t slice = wanted / static_cast<uint64_t>(threads * readSlices) >> 21 << 21;
  uint64_t part = slice * readSlices, size = part * static_cast<uint64_t>(threads);
  if (size == 0)
    return 0;
  void *memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 0;
  ::madvise(memory, size, MADV_HUGEPAGE);
  auto partOf = [&](int thread) { return static_cast<uint8_t *>(memory) + static_cast<uint64_t>(thread) * part; };
  // Written first: pages that were never written are all the same zeros in the cache. By the thread that reads them, so
  // that they lie in its memory.
  double seconds = bestSeconds(
      threads, readSlices * readPasses, [&](int thread) { std::fill_n(partOf(thread), part, uint8_t(1)); },
      [&](int thread, int repeat) {
        readAll(partOf(thread) + static_cast<uint64_t>(repeat % readSlices) * slice, slice);
      });
  ::munmap(memory, size);
  return static_cast<double>(slice * static_cast<uint64_t>(threads)) / seconds;
#else
  return 0;
#endif
}

std::vector<std::string> measurableInstructions() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  for (const Peak &peak : peaks())
    if (names.empty() || names.back() != peak.instruction)
      names.push_back(peak.instruction);
#endif
  return names;
}

std::optional<double> measurePeak(const std::string &instruction, int vectorBits, int threads) {
#if defined(__x86_64__)
  constexpr int64_t rounds = 1 << 17; // about a millisecond
  for (const Peak &peak : peaks()) {
    if (instruction != peak.instruction || (peak.vectorBits != 0 && peak.vectorBits != vectorBits))
      continue;
    if (!checkCpuFeatures(peak.features, hostCpuFeatures()).ok())
      return std::nullopt;
    double seconds = bestSeconds(
        threads, peakRepeats, [&](int) { peak.run(rounds); }, [&](int, int) { peak.run(rounds); });
    return static_cast<double>(rounds * peak.operationsPerRound * threads) / seconds;
  }
#endif
  return std::nullopt;
}

} // namespace llmc
