#include "tools/llmc/InstructionPeaks.h"
#include "runtime/support/CpuFeatures.h"
#include "tools/llmc/BestTime.h"
#include "tools/llmc/ChildProbe.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llmc {
namespace {

constexpr int peakRepeats = 40;

struct Peak {
  MeasurableInstruction instruction;
  void (*run)(int64_t rounds);
  int64_t operationsPerRound;
  int64_t rounds; // about half a millisecond
};

#if defined(__x86_64__)
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

// Sixteen rows of 64 bytes in each of the eight tiles; Intel's manual, volume 1, 18.3.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytesPerRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Four sums: a tile product takes sixteen cycles and its result is ready after about fifty.
constexpr int64_t tileProducts = 4, byteTileOperations = 2 * 16 * 16 * 64, bf16TileOperations = 2 * 16 * 16 * 32;

__attribute__((target("amx-tile"))) void beginTiles() {
  const TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
}

__attribute__((target("amx-tile,amx-int8"))) void dotByteTiles(int64_t rounds) {
  beginTiles();
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("amx-tile,amx-bf16"))) void dotBf16Tiles(int64_t rounds) {
  beginTiles();
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

const std::vector<Peak> &peaks() {
  constexpr int64_t rounds = 1 << 17, tileRounds = 1 << 14;
  static const std::vector<Peak> all = {
      {{"fma", 256, {"avx2", "fma"}}, fma256, chains256 * 16, rounds},
      {{"fma", 512, {"avx512f"}}, fma512, chains512 * 32, rounds},
      {{"vdpbf16ps", 512, {"avx512f", "avx512_bf16"}}, dotBf16, chains512 * 64, rounds},
      {{"vpmaddubsw", 256, {"avx2"}}, maddBytes, chains256 * 64, rounds},
      {{"vpsignb+vpmaddubsw", 256, {"avx2"}}, maddBytes, chains256 * 64, rounds},
      {{"vpdpbusd", 512, {"avx512f", "avx512_vnni"}}, dotBytes, chains512 * 128, rounds},
      {{"tdpbssd", 8192, {"amx-tile", "amx-int8"}}, dotByteTiles, tileProducts * byteTileOperations, tileRounds},
      {{"tdpbf16ps", 8192, {"amx-tile", "amx-bf16"}}, dotBf16Tiles, tileProducts * bf16TileOperations, tileRounds},
  };
  return all;
}
#else
const std::vector<Peak> &peaks() {
  static const std::vector<Peak> none;
  return none;
}
#endif

StatusOr<double> measure(const Peak &peak, int32_t threads) {
  LLMC_RETURN_IF_ERROR(requestCpuState(peak.instruction.features));
  double seconds = bestSeconds(
      threads, peakRepeats, [&](int32_t) { peak.run(peak.rounds); },
      [&](ThreadPool &, int32_t, int) { peak.run(peak.rounds); });
  return static_cast<double>(peak.rounds * peak.operationsPerRound * threads) / seconds;
}

} // namespace

const std::vector<MeasurableInstruction> &measurableInstructions() {
  static const std::vector<MeasurableInstruction> all = [] {
    std::vector<MeasurableInstruction> list;
    for (const Peak &peak : peaks())
      list.push_back(peak.instruction);
    return list;
  }();
  return all;
}

StatusOr<double> measurePeak(const std::string &instruction, int vectorBits, int32_t threads) {
  const Peak *found = nullptr;
  std::string known;
  for (const Peak &peak : peaks()) {
    known += " " + peak.instruction.name;
    if (instruction == peak.instruction.name && (instruction != "fma" || vectorBits == peak.instruction.vectorBits))
      found = &peak;
  }
  if (!found)
    return Status::error("'" + instruction + "' of " + std::to_string(vectorBits) +
                         " bits is no instruction that can be measured (known =" + known + ")");
  for (const std::string &feature : found->instruction.features)
    if (!checkCpuFeatures({feature}, hostCpuFeatures()).ok())
      return Status::error("this machine lacks " + feature);
  return measureInChild([&] { return measure(*found, threads); });
}

} // namespace llmc
