#include "runtime/support/CpuFeatures.h"
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace llmc {
namespace {

enum class Register { Eax, Ebx, Ecx, Edx };
// Which registers the operating system must save before the instructions may be used.
enum class OsState { None, Avx, Avx512, Amx };

// Intel SDM volume 2, CPUID: leaf, subleaf, register and bit of each feature.
struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  OsState needs;
};

constexpr Feature features[] = {
    {"sse3", 1, 0, Register::Ecx, 0, OsState::None},
    {"ssse3", 1, 0, Register::Ecx, 9, OsState::None},
    {"sse4_1", 1, 0, Register::Ecx, 19, OsState::None},
    {"sse4_2", 1, 0, Register::Ecx, 20, OsState::None},
    {"cx16", 1, 0, Register::Ecx, 13, OsState::None},
    {"popcnt", 1, 0, Register::Ecx, 23, OsState::None},
    {"movbe", 1, 0, Register::Ecx, 22, OsState::None},
    {"lzcnt", 0x80000001, 0, Register::Ecx, 5, OsState::None},
    {"bmi1", 7, 0, Register::Ebx, 3, OsState::None},
    {"bmi2", 7, 0, Register::Ebx, 8, OsState::None},
    {"avx", 1, 0, Register::Ecx, 28, OsState::Avx},
    {"f16c", 1, 0, Register::Ecx, 29, OsState::Avx},
    {"fma", 1, 0, Register::Ecx, 12, OsState::Avx},
    {"avx2", 7, 0, Register::Ebx, 5, OsState::Avx},
    {"avx_vnni", 7, 1, Register::Eax, 4, OsState::Avx},
    {"avx512f", 7, 0, Register::Ebx, 16, OsState::Avx512},
    {"avx512bw", 7, 0, Register::Ebx, 30, OsState::Avx512},
    {"avx512cd", 7, 0, Register::Ebx, 28, OsState::Avx512},
    {"avx512dq", 7, 0, Register::Ebx, 17, OsState::Avx512},
    {"avx512vl", 7, 0, Register::Ebx, 31, OsState::Avx512},
    {"avx512ifma", 7, 0, Register::Ebx, 21, OsState::Avx512},
    {"avx512vbmi", 7, 0, Register::Ecx, 1, OsState::Avx512},
    {"avx512_vbmi2", 7, 0, Register::Ecx, 6, OsState::Avx512},
    {"avx512_vnni", 7, 0, Register::Ecx, 11, OsState::Avx512},
    {"avx512_bitalg", 7, 0, Register::Ecx, 12, OsState::Avx512},
    {"avx512_vpopcntdq", 7, 0, Register::Ecx, 14, OsState::Avx512},
    {"avx512_bf16", 7, 1, Register::Eax, 5, OsState::Avx512},
    {"avx512_fp16", 7, 0, Register::Edx, 23, OsState::Avx512},
    {"amx-tile", 7, 0, Register::Edx, 24, OsState::Amx},
    {"amx-int8", 7, 0, Register::Edx, 25, OsState::Amx},
    {"amx-bf16", 7, 0, Register::Edx, 22, OsState::Amx},
};

#if defined(__x86_64__)
uint32_t readCpuid(uint32_t leaf, uint32_t subleaf, Register reg) {
  uint32_t r[4] = {};
  if (!__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]))
    return 0;
  return r[static_cast<int>(reg)];
}

// XCR0, or 0 when the operating system did not turn XSAVE on.
uint64_t savedStates() {
  if (!(readCpuid(1, 0, Register::Ecx) & (1u << 27)))
    return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool osSaves(OsState needs, uint64_t states) {
  auto has = [&](uint64_t mask) { return (states & mask) == mask; };
  switch (needs) {
  case OsState::None:
    return true;
  case OsState::Avx:
    return has(0x6); // xmm, ymm
  case OsState::Avx512:
    return has(0xe6); // and mask registers, upper halves of zmm0-15, zmm16-31
  case OsState::Amx:
    return has(0x60000); // tile configuration, tile data
  }
  return false;
}

std::vector<std::string_view> detect() {
  std::vector<std::string_view> found;
  uint64_t states = savedStates();
  for (const Feature &feature : features)
    // Subleaf 1 of leaf 7 exists only when subleaf 0 says so in eax.
    if (!(feature.leaf == 7 && feature.subleaf > readCpuid(7, 0, Register::Eax)) &&
        (readCpuid(feature.leaf, feature.subleaf, feature.reg) >> feature.bit & 1) && osSaves(feature.needs, states))
      found.push_back(feature.name);
  return found;
}
#else
std::vector<std::string_view> detect() { return {}; }
#endif

bool contains(const std::vector<std::string_view> &list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string join(const std::vector<std::string_view> &list) {
  std::string out;
  for (std::string_view name : list)
    out += (out.empty() ? "" : " ") + std::string(name);
  return out.empty() ? "none of the known features" : out;
}

// The richest CPU target without tiles that `host` has.
std::string targetFor(const std::vector<std::string_view> &host) {
  auto all = [&](std::initializer_list<std::string_view> names) {
    return std::all_of(names.begin(), names.end(), [&](std::string_view name) { return contains(host, name); });
  };
  bool v3 = all({"avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe"});
  if (v3 && all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni"}))
    return contains(host, "avx512_bf16") ? "x86-64-v4" : "x86-64-v4-vnni";
  return v3 ? "x86-64-v3" : "host";
}

} // namespace

std::vector<std::string_view> knownCpuFeatures() {
  std::vector<std::string_view> names;
  for (const Feature &feature : features)
    names.push_back(feature.name);
  return names;
}

const std::vector<std::string_view> &hostCpuFeatures() {
  static const std::vector<std::string_view> host = detect();
  return host;
}

Status checkCpuFeatures(const std::vector<std::string> &required, const std::vector<std::string_view> &host) {
  std::vector<std::string_view> known = knownCpuFeatures();
  for (const std::string &name : required) {
    if (!contains(known, name))
      return Status::error("needs the CPU feature '" + name +
                           "', which this runtime does not know (known = " + join(known) + ")");
    if (!contains(host, name))
      return Status::error("needs " + name + ", this CPU has " + join(host) + "; compile with --target " +
                           targetFor(host));
  }
  return {};
}

Status requestCpuState(const std::vector<std::string> &required) {
  bool tiles =
      std::any_of(required.begin(), required.end(), [](const std::string &n) { return n.starts_with("amx-"); });
  if (!tiles)
    return {};
#if defined(__x86_64__)
  // From asm/prctl.h, which older kernel headers lack.
  constexpr int requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr int tileData = 18;
  if (::syscall(SYS_arch_prctl, requestPermission, tileData) != 0)
    return Status::error(std::string("needs AMX tiles, but the kernel refuses them: ") + std::strerror(errno) +
                         "; compile with --target x86-64-v4");
#endif
  return {};
}

} // namespace llmc
