// Each kernel of a step against its own roofline: the time it took, beside the time that its bytes and its operations
// would take at the machine's limits.
#pragma once
#include "runtime/engine/StepTrace.h"
#include "runtime/support/Json.h"
#include "tools/llmc/StepWork.h"
#include <map>

namespace llmc {

// Of one task, over all its launches of a step.
struct KernelTime {
  size_t kernel; // its place in the manifest
  double seconds = 0;
  double waiting = 0; // of the workers' time, the part in which they waited for the slowest
};

// Medians over steps of one kind.
struct StepTimes {
  double seconds = 0;
  std::vector<KernelTime> kernels; // that were launched, in the manifest's order
};
StepTimes stepTimesOf(const StepTrace &trace, const DispatchManifest &manifest);

struct KernelLimits {
  double weightRead = 0;                           // bytes per second of all threads, of as many as a step reads
  std::vector<std::pair<uint64_t, double>> caches; // bytes that all threads have there, and how fast they are read
  std::map<std::string, double> instructions;      // operations per second
  double vectorOperations = 0;                     // elementwise: a vector per instruction
  double activationRead(double bytes) const;       // of the nearest level that holds so much
};
// Of what the kernels of these steps use; `weightRead` is known already. Notes on stderr say what could not be
// measured.
KernelLimits measureKernelLimits(const DispatchManifest &manifest, const std::vector<StepShape> &shapes,
                                 double weightRead, int vectorBits, int32_t threads);

// {"rows", "seconds", "kernels": [{"kernel", "shape", "instruction", "launches", "seconds", "share", "waiting",
// "operations", "bytes", "limit", "fraction"}]}: seconds of a step, operations and bytes of all launches, the limit
// that is nearest ("read", "activations", the name of an instruction, "vector") and the fraction of it that is reached.
Json kernelReport(const DispatchManifest &manifest, const StepTimes &times, const StepShape &shape,
                  const KernelLimits &limits);
std::string kernelReportText(const std::string &phase, const Json &report);

} // namespace llmc
