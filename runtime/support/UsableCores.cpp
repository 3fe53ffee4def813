#include "runtime/support/UsableCores.h"
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sched.h>

namespace llmc {
namespace {

std::string readLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int coresOfAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more than CPU_SETSIZE cores only; then one thread is the careful answer.
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Version 2: "0::/a/b" in /proc/self/cgroup; every ancestor may hold a quota.
int coresOfGroups() {
  const std::string root = "/sys/fs/cgroup";
  int least = 0;
  auto narrow = [&](int cores) { least = cores > 0 && (least == 0 || cores < least) ? cores : least; };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0)
      continue;
    for (std::string at = line.substr(3); !at.empty(); at.resize(at.rfind('/')))
      narrow(coresOfQuota(readLine(root + at + "/cpu.max")));
  }
  narrow(coresOfQuota(readLine(root + "/cpu.max")));
  // Version 1, as a container sees it.
  std::string quota = readLine(root + "/cpu/cpu.cfs_quota_us");
  if (!quota.empty() && quota[0] != '-')
    narrow(coresOfQuota(quota + " " + readLine(root + "/cpu/cpu.cfs_period_us")));
  return least;
}

} // namespace

int coresOfQuota(const std::string &cpuMax) {
  char *end = nullptr;
  long long quota = std::strtoll(cpuMax.c_str(), &end, 10);
  long long period = std::strtoll(end, nullptr, 10);
  if (quota <= 0 || period <= 0)
    return 0;
  return static_cast<int>(std::clamp<long long>((quota - 1) / period + 1, 1, 1 << 16));
}

int usableCores() {
  int cores = std::max(1, coresOfAffinity());
  int quota = coresOfGroups();
  return quota > 0 ? std::min(cores, quota) : cores;
}

} // namespace llmc
