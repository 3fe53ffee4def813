// UsableCores: how many threads can run at once here: the smaller of the affinity mask and the cgroup's CPU quota.
#pragma once
#include <string>

namespace llmc {

// At least 1. Reads files; call it at load, not per step.
int usableCores();

// The quota of a cgroup v2 "cpu.max" text ("max 100000", "150000 100000") in whole cores, rounded up; 0 = no limit.
int coresOfQuota(const std::string &cpuMax);

} // namespace llmc
