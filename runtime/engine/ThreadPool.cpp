#include "runtime/engine/ThreadPool.h"
#include "runtime/support/UsableCores.h"
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llmc {
namespace {

// Pausing alone is the fastest to notice; yielding costs a system call but lets a worker that lost its core have ours.
constexpr auto pauseTime = std::chrono::microseconds(10);
constexpr auto spinTime = std::chrono::microseconds(50);
constexpr int pausesPerLook = 32;
constexpr int yieldsWithoutSpin = 4;

void pauseCpu() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

void futexWait(std::atomic<uint32_t> &word, uint32_t value) {
  // A spurious return is fine: the caller looks at the word again.
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Whether `word` moved away from `value` while it was cheap to watch.
bool movedWhileSpinning(const std::atomic<uint32_t> &word, uint32_t value) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (;;) {
    for (int i = 0; i < pausesPerLook; ++i) {
      if (word.load(std::memory_order_acquire) != value)
        return true;
      pauseCpu();
    }
    Clock::duration waited = Clock::now() - start;
    if (waited > spinTime)
      return false;
    if (waited > pauseTime)
      ::sched_yield();
  }
}

bool movedWhileYielding(const std::atomic<uint32_t> &word, uint32_t value) {
  for (int i = 0; i < yieldsWithoutSpin; ++i) {
    if (word.load(std::memory_order_acquire) != value)
      return true;
    ::sched_yield();
  }
  return word.load(std::memory_order_acquire) != value;
}

} // namespace

// Sequentially consistent on both sides: either the waiter sees the new turn or we see the sleeper.
void ThreadPool::Turnstile::advance() {
  turn.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) > 0)
    futexWakeAll(turn);
}

void ThreadPool::Turnstile::waitWhile(uint32_t turnSeen, bool spin) {
  if (spin ? movedWhileSpinning(turn, turnSeen) : movedWhileYielding(turn, turnSeen))
    return;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (turn.load(std::memory_order_seq_cst) == turnSeen)
    futexWait(turn, turnSeen);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::create(int32_t workers, int usableCores) {
  int cores = usableCores > 0 ? usableCores : llmc::usableCores();
  std::unique_ptr<ThreadPool> pool(new ThreadPool(workers, /*spin=*/workers <= cores));
  // Signals belong to the program's own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  for (int32_t worker = 1; worker < workers && error == 0; ++worker) {
    auto thread = std::make_unique<Thread>(Thread{pool.get(), worker, {}});
    error = ::pthread_create(&thread->handle, nullptr, threadMain, thread.get());
    if (error == 0)
      pool->threads_.push_back(std::move(thread));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return Status::error("cannot start thread " + std::to_string(pool->threads_.size() + 1) + " of " +
                         std::to_string(workers) + ": " + std::strerror(error) + "; lower --threads");
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  start_.advance();
  for (const std::unique_ptr<Thread> &thread : threads_)
    ::pthread_join(thread->handle, nullptr);
}

void *ThreadPool::threadMain(void *argument) {
  auto *thread = static_cast<Thread *>(argument);
  ThreadPool &pool = *thread->pool;
  ::pthread_setname_np(::pthread_self(), "llmc-worker");
  for (uint32_t turn = 0;; ++turn) {
    pool.start_.waitWhile(turn, pool.spin_);
    if (pool.stopping_)
      return nullptr;
    pool.work_(pool.state_, thread->worker);
    pool.barrier();
  }
}

void ThreadPool::run(Work work, void *state) {
  work_ = work;
  state_ = state;
  start_.advance();
  work(state, 0);
  barrier();
}

void ThreadPool::barrier() {
  if (workers_ == 1)
    return;
  uint32_t turn = barrier_.turn.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < workers_) {
    barrier_.waitWhile(turn, spin_);
    return;
  }
  arrived_.store(0, std::memory_order_relaxed);
  barrier_.advance();
}

void ThreadPool::barrierOfPool(void *pool, int32_t) { static_cast<ThreadPool *>(pool)->barrier(); }

} // namespace llmc
