// ThreadPool: every worker runs once, a barrier orders memory, and more workers than cores still finish soon.
#include "runtime/engine/ThreadPool.h"
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>

namespace llmc {
namespace {

struct Rounds {
  ThreadPool *pool;
  std::vector<int64_t> values; // plain memory: only the barrier orders it
  std::atomic<int> wrong{0};
  int barriers;
};

// Each worker reads its neighbour's value of the round before.
void passAround(void *state, int32_t worker) {
  auto *rounds = static_cast<Rounds *>(state);
  size_t n = rounds->values.size(), w = static_cast<size_t>(worker);
  for (int round = 0; round < rounds->barriers; ++round) {
    rounds->values[w] = round;
    rounds->pool->barrier();
    if (rounds->values[(w + 1) % n] != round)
      ++rounds->wrong;
    rounds->pool->barrier();
  }
}

class ThreadPoolOf : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolOf, BarriersOrderMemory) {
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(GetParam());
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  Rounds rounds{pool->get(), std::vector<int64_t>(static_cast<size_t>(GetParam())), {}, 300};
  for (int run = 0; run < 20; ++run)
    (*pool)->run(passAround, &rounds);
  EXPECT_EQ(rounds.wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolOf, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, SleepsBetweenRuns) {
  StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.ok());
  std::atomic<int> calls{0};
  for (int run = 0; run < 3; ++run) {
    timespec start = {}, end = {};
    timespec pause{0, 30'000'000};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    ::nanosleep(&pause, nullptr);
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    // Waiting 30 ms must not burn 30 ms of any worker: they spin some 50 us each.
    EXPECT_LT(static_cast<double>(end.tv_nsec - start.tv_nsec) + 1e9 * static_cast<double>(end.tv_sec - start.tv_sec),
              15e6);
    (*pool)->run([](void *counter, int32_t) { ++*static_cast<std::atomic<int> *>(counter); }, &calls);
  }
  EXPECT_EQ(calls, 9);
}

TEST(ThreadPool, DestructionWithoutARun) {
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(ThreadPool::create(4).ok());
}

} // namespace
} // namespace llmc
