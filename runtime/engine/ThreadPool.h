// ThreadPool: the workers of a step. The calling thread is worker 0; the others wait between steps. Fork, barrier and
// join cost a fraction of a microsecond while every worker has a core: waiting spins first, then yields, then sleeps in
// the kernel. With more workers than usable cores nobody spins, because the one waited for needs the core.
#pragma once
#include "runtime/support/Status.h"
#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

namespace llmc {

class ThreadPool {
public:
  using Work = void (*)(void *state, int32_t worker);

  // Starts workers - 1 threads. `usableCores` is for tests; 0 = ask the system.
  static StatusOr<std::unique_ptr<ThreadPool>> create(int32_t workers, int usableCores = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int32_t workers() const { return workers_; }
  // Calls work(state, w) once on every worker and returns when all have returned. Allocates nothing. One caller at a
  // time.
  void run(Work work, void *state);
  // Within run: returns when every worker has called it; what they wrote before is visible after.
  void barrier();
  // `barrier` as llmc_step_context wants it; the state is the pool.
  static void barrierOfPool(void *pool, int32_t worker);

private:
  // A counter that others wait on until it moves.
  struct alignas(64) Turnstile {
    std::atomic<uint32_t> turn{0};
    std::atomic<uint32_t> sleepers{0};
    void advance();
    void waitWhile(uint32_t turnSeen, bool spin);
  };
  struct Thread {
    ThreadPool *pool;
    int32_t worker;
    pthread_t handle;
  };

  ThreadPool(int32_t workers, bool spin) : workers_(workers), spin_(spin) {}
  static void *threadMain(void *thread);

  int32_t workers_;
  bool spin_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Work work_ = nullptr;
  void *state_ = nullptr;
  bool stopping_ = false;
  Turnstile start_;
  Turnstile barrier_;
  alignas(64) std::atomic<int32_t> arrived_{0};
};

} // namespace llmc
