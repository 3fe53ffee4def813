// The shortest of several runs of the same work on several threads at once.
#pragma once
#include "runtime/engine/ThreadPool.h"
#include <cstdint>
#include <functional>

namespace llmc {

// Runs `work(pool, thread, repeat)` on all threads together, `repeats` times, and gives the least seconds from the
// start to the end of all; infinite when the threads cannot be started. `prepare(thread)` runs once on each thread
// before. On a busy machine many short runs find a quiet moment where a long one is always interrupted. Each thread,
// the calling one too, stays on a core of its own from then on: call it in a child process. (Two that the system starts
// on one core swap so fast that its balancer takes both for cache-hot, and may stay there to the end.)
using TimedWork = std::function<void(ThreadPool &pool, int32_t thread, int repeat)>;
double bestSeconds(int32_t threads, int repeats, const std::function<void(int32_t)> &prepare, const TimedWork &work);

} // namespace llmc
