#include "tools/llmc/KernelReport.h"
#include "tools/llmc/InstructionPeaks.h"
#include "tools/llmc/MachineLimits.h"
#include <algorithm>
#include <cstdio>

namespace llmc {
namespace {

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Sums over the launches of a task in one step, in seconds.
struct TaskSums {
  double wall = 0;                 // from the first worker's start to the last one's finish
  double waited = 0, occupied = 0; // of all workers, from their start until all are there
};

std::vector<TaskSums> sumsOf(const StepTrace &trace, const TracedStep &step, size_t tasks) {
  std::vector<TaskSums> sums(tasks);
  for (size_t launch = 0; launch < step.numLaunches; ++launch) {
    LaunchSpan all = trace.launches(step, 0)[launch];
    if (static_cast<size_t>(all.task) >= tasks)
      continue;
    TaskSums &sum = sums[static_cast<size_t>(all.task)];
    for (int32_t worker = 0; worker < trace.workers(); ++worker) {
      const LaunchSpan &span = trace.launches(step, worker)[launch];
      all.start = std::min(all.start, span.start);
      all.finish = std::max(all.finish, span.finish);
      sum.waited += 1e-9 * static_cast<double>(span.joined - span.finish + span.waited);
      sum.occupied += 1e-9 * static_cast<double>(span.joined - span.start);
    }
    sum.wall += 1e-9 * static_cast<double>(all.finish - all.start);
  }
  return sums;
}

// The limit that leaves the longest time, and that time.
struct Bound {
  std::string limit;
  double seconds = 0;
  void consider(const std::string &name, double amount, double perSecond) {
    if (perSecond > 0 && amount / perSecond > seconds) {
      seconds = amount / perSecond;
      limit = name;
    }
  }
};

Bound boundOf(const KernelWork &work, const std::string &instruction, const KernelLimits &limits) {
  Bound bound;
  bound.consider("read", work.weightBytes + work.cacheBytes, limits.weightRead);
  bound.consider("activations", work.rowBytes, limits.activationRead(work.rowBytes));
  if (auto peak = limits.instructions.find(instruction); peak != limits.instructions.end())
    bound.consider(instruction, work.instructionOps, peak->second);
  bound.consider("vector", work.otherOperations, limits.vectorOperations);
  return bound;
}

Json jsonOf(const KernelEntry &kernel, const KernelTime &time, double stepSeconds, const StepShape &shape,
            const KernelLimits &limits) {
  std::string instruction = kernel.instructionFor(kernel.cost.logitRows ? shape.logitRows : shape.rows());
  auto launches = static_cast<double>(kernel.layers.size());
  KernelWork work = workOf(kernel.cost, shape);
  Bound bound = boundOf(work, instruction, limits);
  return {{"kernel", kernel.name},
          {"shape", kernel.shape},
          {"instruction", instruction},
          {"launches", kernel.layers.size()},
          {"seconds", time.seconds},
          {"share", stepSeconds > 0 ? time.seconds / stepSeconds : 0},
          {"waiting", time.waiting},
          {"operations", launches * (work.products + work.otherOperations)},
          {"bytes", launches * (work.weightBytes + work.cacheBytes + work.rowBytes)},
          {"limit", bound.limit},
          {"fraction", time.seconds > 0 ? launches * bound.seconds / time.seconds : 0}};
}

} // namespace

StepTimes stepTimesOf(const StepTrace &trace, const DispatchManifest &manifest) {
  std::vector<double> seconds;
  std::vector<std::vector<double>> walls(manifest.kernels.size()), waits(manifest.kernels.size());
  for (const TracedStep &step : trace.steps()) {
    seconds.push_back(1e-9 * static_cast<double>(step.finish - step.start));
    std::vector<TaskSums> sums = sumsOf(trace, step, manifest.kernels.size());
    for (size_t task = 0; task < sums.size(); ++task)
      if (sums[task].occupied > 0) {
        walls[task].push_back(sums[task].wall);
        waits[task].push_back(sums[task].waited / sums[task].occupied);
      }
  }
  StepTimes times;
  times.seconds = medianOf(seconds);
  for (size_t task = 0; task < walls.size(); ++task)
    if (!walls[task].empty())
      times.kernels.push_back({task, medianOf(walls[task]), medianOf(waits[task])});
  return times;
}

double KernelLimits::activationRead(double bytes) const {
  for (const auto &[size, rate] : caches)
    if (bytes <= static_cast<double>(size))
      return rate;
  return weightRead;
}

KernelLimits measureKernelLimits(const DispatchManifest &manifest, const std::vector<StepShape> &shapes,
                                 double weightRead, int vectorBits, int32_t threads) {
  KernelLimits limits;
  limits.weightRead = weightRead;
  auto noted = [](const std::string &what, const StatusOr<double> &measured) {
    if (!measured.ok())
      std::fprintf(stderr, "note: the limit '%s' is not known: %s\n", what.c_str(),
                   measured.status().message().c_str());
    return measured.ok() ? *measured : 0;
  };
  for (MemoryLevel level : {MemoryLevel::L2, MemoryLevel::L3})
    if (StatusOr<double> read = measureReadBandwidth(level, threads); read.ok())
      limits.caches.push_back(
          {cacheBytes(level) * (level == MemoryLevel::L2 ? static_cast<uint64_t>(threads) : 1), *read});
  double fma = noted("fma", measurePeak("fma", vectorBits, threads));
  limits.instructions["fma"] = fma;
  limits.vectorOperations = fma / 2;
  for (const KernelEntry &kernel : manifest.kernels)
    for (const StepShape &shape : shapes) {
      if (kernel.cost.products == 0 && kernel.cost.positionProducts == 0)
        continue;
      std::string instruction = kernel.instructionFor(kernel.cost.logitRows ? shape.logitRows : shape.rows());
      if (!limits.instructions.contains(instruction))
        limits.instructions[instruction] = noted(instruction, measurePeak(instruction, vectorBits, threads));
    }
  return limits;
}

Json kernelReport(const DispatchManifest &manifest, const StepTimes &times, const StepShape &shape,
                  const KernelLimits &limits) {
  Json kernels = Json::array();
  for (const KernelTime &time : times.kernels)
    kernels.push_back(jsonOf(manifest.kernels[time.kernel], time, times.seconds, shape, limits));
  return {{"rows", shape.rows()}, {"seconds", times.seconds}, {"kernels", std::move(kernels)}};
}

std::string kernelReportText(const std::string &phase, const Json &report) {
  char line[256];
  std::snprintf(line, sizeof line, "%s, %s: %.3f ms a step\n", phase.c_str(),
                (report["rows"].dump() + (report["rows"] == 1 ? " row" : " rows")).c_str(),
                1e3 * report["seconds"].get<double>());
  std::string text = line;
  std::snprintf(line, sizeof line, "  %-22s %-32s %8s %10s %6s %6s %10s %9s  %s\n", "kernel", "with", "launches", "ms",
                "share", "wait", "Mop", "MB", "of its limit");
  text += line;
  double inKernels = 0;
  for (const Json &kernel : report["kernels"]) {
    inKernels += kernel["share"].get<double>();
    std::string with = kernel["shape"].get<std::string>() + " " + kernel["instruction"].get<std::string>();
    std::snprintf(line, sizeof line, "  %-22.80s %-32.60s %8d %10.3f %5.1f%% %5.1f%% %10.2f %9.3f  %3.0f%% of %s\n",
                  kernel["kernel"].get<std::string>().c_str(), with.c_str(), kernel["launches"].get<int>(),
                  1e3 * kernel["seconds"].get<double>(), 100 * kernel["share"].get<double>(),
                  100 * kernel["waiting"].get<double>(), kernel["operations"].get<double>() / 1e6,
                  kernel["bytes"].get<double>() / 1e6, 100 * kernel["fraction"].get<double>(),
                  kernel["limit"].get<std::string>().c_str());
    text += line;
  }
  std::snprintf(line, sizeof line, "  %-22s %-32s %8s %10.3f %5.1f%%\n", "between kernels", "barriers, start and end",
                "", 1e3 * std::max(0.0, 1 - inKernels) * report["seconds"].get<double>(),
                100 * std::max(0.0, 1 - inKernels));
  return text + line;
}

} // namespace llmc
