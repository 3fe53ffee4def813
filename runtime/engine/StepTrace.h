// StepTrace: when each worker started and finished every task of a step, how long it waited for the others, and what
// was exchanged beside. Memory is taken when it is made; recording takes two looks at the clock a launch and worker,
// and allocates nothing.
#pragma once
#include "runtime/collective/CollectiveQueue.h"
#include "runtime/engine/ThreadPool.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

// Nanoseconds of the steady clock.
struct LaunchSpan {
  int32_t task;   // its place in the dispatch manifest, or LLMC_TRACE_WAIT: the worker waits for an exchange
  int32_t block;  // of rows; -1: all of them
  int64_t start;  // the worker begins its share,
  int64_t finish; // has done it,
  int64_t joined; // and all others have, too
  int64_t waited; // at barriers inside the task, which some have: part of start .. finish
};

struct TracedStep {
  int32_t rows, promptRows;
  int64_t start, finish;
  size_t firstLaunch, numLaunches; // of every worker
  size_t firstExchange, numExchanges;
};

// For what one step does at most.
struct TraceRoom {
  size_t launches = 1; // waits among them
  size_t exchanges = 0;
  int32_t blocks = 0; // of rows, that are computed apart
};

class StepTrace {
public:
  // Room for `steps` steps on `workers` threads.
  StepTrace(int32_t workers, const TraceRoom &room, size_t steps);

  StepTrace(const StepTrace &) = delete;
  StepTrace &operator=(const StepTrace &) = delete;

  int32_t workers() const { return static_cast<int32_t>(lanes_.size()); }
  bool full() const { return steps_.size() == maxSteps_; }
  std::span<const TracedStep> steps() const { return steps_; }
  std::span<const LaunchSpan> launches(const TracedStep &step, int32_t worker) const;
  std::span<const ExchangeSpan> exchanges(const TracedStep &step) const;

  // For the engine: around a step, on one thread. False: there is no room for another one.
  bool begin(ThreadPool &pool, int32_t rows, int32_t promptRows);
  void end();
  // Where the exchanges of the step go.
  ExchangeRecord *exchangeRecord() { return &exchanges_; }
  // `trace` as llmc_step_context wants it, with the state of a block of rows; -1: of all.
  static void launchOfTrace(void *block, int32_t worker, int32_t task);
  void *stateOfBlock(int32_t block) { return &blocks_[static_cast<size_t>(block + 1)]; }
  // `barrier` as llmc_step_context wants it; the state is the trace.
  static void barrierOfTrace(void *trace, int32_t worker);

private:
  // What one worker writes; never in a cache line of another's.
  struct alignas(64) Lane {
    std::vector<LaunchSpan> spans; // all of them, from the start
    size_t used = 0;
    bool open = false; // the last one is being recorded: there was room
  };

  struct Block {
    StepTrace *trace;
    int32_t block;
  };

  size_t maxLaunches_, maxSteps_;
  std::vector<Block> blocks_; // that of all rows first
  std::vector<Lane> lanes_;
  ExchangeRecord exchanges_;
  std::vector<TracedStep> steps_;
  ThreadPool *pool_ = nullptr; // of the step that runs
};

} // namespace llmc
