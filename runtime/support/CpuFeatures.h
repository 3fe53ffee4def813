// CpuFeatures: what the CPU and the operating system under us offer, under the names an artifact states its needs in
// (those of /proc/cpuinfo, except "amx-..." with a hyphen). Detection asks cpuid and xgetbv, never a file.
#pragma once
#include "runtime/support/Status.h"
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// All names this build can test for, in a fixed order (plainest first).
std::vector<std::string_view> knownCpuFeatures();
// The known features that the CPU has and whose registers the operating system saves, in the same order.
const std::vector<std::string_view> &hostCpuFeatures();

// Fails and names the first required feature that `host` lacks or that is unknown here.
Status checkCpuFeatures(const std::vector<std::string> &required, const std::vector<std::string_view> &host);
// Asks Linux for the tile registers of this process when `required` holds an "amx-" feature. Call it before threads use
// tiles; calling twice is fine.
Status requestCpuState(const std::vector<std::string> &required);

} // namespace llmc
