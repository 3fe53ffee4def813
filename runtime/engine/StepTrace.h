// StepTrace: when each worker started and finished every task of a step, and how long it waited for the others. Memory
// is taken when it is made; recording takes two looks at the clock a launch and worker, and allocates nothing.
#pragma once
#include "runtime/engine/ThreadPool.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

// Nanoseconds of the steady clock.
struct LaunchSpan {
  int32_t task;   // its place in the dispatch manifest
  int64_t start;  // the worker begins its share,
  int64_t finish; // has done it,
  int64_t joined; // and all others have, too
  int64_t waited; // at barriers inside the task, which some have: part of start .. finish
};

struct TracedStep {
  int32_t rows, promptRows;
  int64_t start, finish;
  size_t firstLaunch, numLaunches; // of every worker
};

class StepTrace {
public:
  // Room for `steps` steps of at most `launches` launches on `workers` threads.
  StepTrace(int32_t workers, size_t launches, size_t steps);

  int32_t workers() const { return static_cast<int32_t>(lanes_.size()); }
  bool full() const { return steps_.size() == maxSteps_; }
  std::span<const TracedStep> steps() const { return steps_; }
  std::span<const LaunchSpan> launches(const TracedStep &step, int32_t worker) const;

  // For the engine: around a step, on one thread. False: there is no room for another one.
  bool begin(ThreadPool &pool, int32_t rows, int32_t promptRows);
  void end();
  // `trace` and `barrier` as llmc_step_context wants them; the state is the trace.
  static void launchOfTrace(void *trace, int32_t worker, int32_t task);
  static void barrierOfTrace(void *trace, int32_t worker);

private:
  // What one worker writes; never in a cache line of another's.
  struct alignas(64) Lane {
    std::vector<LaunchSpan> spans; // all of them, from the start
    size_t used = 0;
    bool open = false; // the last one is being recorded: there was room
  };

  size_t maxLaunches_, maxSteps_;
  std::vector<Lane> lanes_;
  std::vector<TracedStep> steps_;
  ThreadPool *pool_ = nullptr; // of the step that runs
};

} // namespace llmc
