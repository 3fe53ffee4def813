#include "tools/llmc/BestTime.h"
#include <algorithm>
#include <chrono>
#include <limits>
#include <sched.h>

namespace llmc {
namespace {

// The thread-th of the cores that this process may use, in turn; where that fails the system places the thread.
void stayOnCore(int32_t thread) {
  cpu_set_t usable, own;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) == 0)
    return;
  int32_t left = thread % CPU_COUNT(&usable);
  CPU_ZERO(&own);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &usable) && left-- == 0)
      CPU_SET(core, &own);
  ::sched_setaffinity(0, sizeof own, &own);
}

} // namespace

double bestSeconds(int32_t threads, int repeats, const std::function<void(int32_t)> &prepare, const TimedWork &work) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity();
  // The engine's own pool: its workers spin between runs, so a start costs a fraction of a microsecond.
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  if (!pool.ok())
    return least;
  struct Run {
    const std::function<void(int32_t)> &prepare;
    const TimedWork &work;
    ThreadPool &pool;
    int repeat;
  } run = {prepare, work, **pool, -1};
  auto onWorker = [](void *state, int32_t worker) {
    const auto *run = static_cast<const Run *>(state);
    if (run->repeat >= 0)
      return run->work(run->pool, worker, run->repeat);
    stayOnCore(worker);
    run->prepare(worker);
  };
  (*pool)->run(onWorker, &run);
  for (run.repeat = 0; run.repeat < repeats; ++run.repeat) {
    Clock::time_point start = Clock::now();
    (*pool)->run(onWorker, &run);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

} // namespace llmc
