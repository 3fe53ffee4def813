// Exchanges beside the thread that starts them: their order, what they leave, and how they end.
#include "runtime/collective/CollectiveQueue.h"
#include "test/runtime/collective/Ranks.h"
#include <gtest/gtest.h>
#include <thread>

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A queue of each rank.
Status onRanks(const RankGrid &grid, const std::function<Status(CollectiveQueue &)> &body,
               const SimulatedLink &link = {}) {
  return SimulatedRanks(grid, defaultPatience, link).run([&](Transport &transport) -> Status {
    LLMC_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveQueue> queue, CollectiveQueue::create(transport, 0, 4));
    return body(*queue);
  });
}

Status expectSum(const std::vector<float> &values, float expected) {
  for (float value : values)
    if (value != expected)
      return Status::error("a sum is " + std::to_string(value) + ", expected " + std::to_string(expected));
  return {};
}

// More are started than there is room for; each starts from what the one before left.
Status doubleSixTimes(CollectiveQueue &queue, bool beside) {
  const TestCollective sum = sumOf(2, 3, 3);
  std::vector<float> values(6, 1), scratch(64);
  queue.begin(beside, nullptr);
  for (int i = 0; i < 6; ++i)
    queue.start(*sum, 2, values.data(), values.data(), scratch);
  LLMC_RETURN_IF_ERROR(queue.wait(*sum));
  LLMC_RETURN_IF_ERROR(expectSum(values, 64));
  LLMC_RETURN_IF_ERROR(queue.wait(*sum)); // again: there is nothing to wait for
  return queue.waitForAll();
}

TEST(CollectiveQueue, RunsInTheOrderOfTheStarts) {
  for (bool beside : {true, false}) {
    Status status = onRanks({1, 2}, [&](CollectiveQueue &queue) { return doubleSixTimes(queue, beside); });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(CollectiveQueue, WaitsForOneAndThoseBefore) {
  Status status = onRanks({1, 2}, [](CollectiveQueue &queue) -> Status {
    const TestCollective first = sumOf(2, 1, 1), second = sumOf(2, 1, 1);
    std::vector<float> a{1}, b{2}, scratch(16);
    ExchangeRecord record;
    record.spans.reserve(2);
    queue.begin(/*beside=*/true, &record);
    queue.start(*first, 1, a.data(), a.data(), scratch);
    queue.start(*second, 1, b.data(), b.data(), scratch);
    LLMC_RETURN_IF_ERROR(queue.wait(*second));
    LLMC_RETURN_IF_ERROR(expectSum(a, 2));
    LLMC_RETURN_IF_ERROR(expectSum(b, 4));
    if (record.spans.size() != 2 || record.spans[0].finish > record.spans[1].start || record.spans[1].rows != 1)
      return Status::error("not recorded one after the other");
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// While the link holds the message back the thread that started it has its hands free.
TEST(CollectiveQueue, RunsBesideTheThreadThatStarts) {
  Status status = onRanks({1, 2},
                          [](CollectiveQueue &queue) -> Status {
                            const TestCollective sum = sumOf(2, 1, 1);
                            std::vector<float> value{1}, scratch(16);
                            queue.begin(/*beside=*/true, nullptr);
                            const Clock::time_point start = Clock::now();
                            queue.start(*sum, 1, value.data(), value.data(), scratch);
                            const Clock::duration started = Clock::now() - start;
                            LLMC_RETURN_IF_ERROR(queue.wait(*sum));
                            if (started > 200ms || Clock::now() - start < 400ms) // two exchanges
                              return Status::error("the start has not returned at once, or the wait has");
                            return expectSum(value, 2);
                          },
                          {200ms, 0});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(CollectiveQueue, AFailureIsWhatEveryWaitSays) {
  Status status = SimulatedRanks({1, 2}).run([](Transport &transport) -> Status {
    if (transport.rank() == 1)
      return Status::error("out of memory");
    LLMC_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveQueue> queue, CollectiveQueue::create(transport, 0, 4));
    const TestCollective sum = sumOf(2, 1, 1);
    std::vector<float> value{1}, scratch(16);
    queue->begin(/*beside=*/true, nullptr);
    for (int i = 0; i < 3; ++i)
      queue->start(*sum, 1, value.data(), value.data(), scratch);
    EXPECT_EQ(queue->wait(*sum).message(), "out of memory");
    queue->start(*sum, 1, value.data(), value.data(), scratch);
    EXPECT_EQ(queue->waitForAll().message(), "out of memory");
    return {};
  });
  EXPECT_EQ(status.message(), "out of memory");
}

} // namespace
} // namespace llmc
