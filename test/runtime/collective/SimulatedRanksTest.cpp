// Ranks of one process that end, fail or hang: nobody waits for them forever.
#include "test/runtime/collective/Ranks.h"
#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

Status sum(Transport &transport) {
  float value = 1;
  return runCollective(transport, sumOf(transport.grid().ranks, 1, 1), 1, &value, &value);
}

TEST(SimulatedRanks, ManyExchangesInARow) {
  Status status = SimulatedRanks({1, 4}).run([](Transport &transport) -> Status {
    for (int round = 0; round < 1000; ++round) {
      float value = static_cast<float>(transport.rank() + round);
      LLMC_RETURN_IF_ERROR(runCollective(transport, sumOf(4, 1, 1), 1, &value, &value));
      if (value != static_cast<float>(6 + 4 * round))
        return Status::error("round " + std::to_string(round) + " gives " + std::to_string(value));
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SimulatedRanks, ARankThatEndsIsMissed) {
  Clock::time_point start = Clock::now();
  Status status = SimulatedRanks({1, 3}).run(
      [](Transport &transport) { return transport.rank() == 2 ? Status() : sum(transport); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message().substr(0, 31), "rank 2 has ended, but rank " + status.message().substr(27, 4));
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST(SimulatedRanks, ARankThatFailsWakesTheOthers) {
  Status status = SimulatedRanks({1, 3}).run(
      [](Transport &transport) { return transport.rank() == 1 ? Status::error("out of memory") : sum(transport); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "out of memory");
}

TEST(SimulatedRanks, PatienceEnds) {
  Status status = SimulatedRanks({1, 2}, 50ms).run([](Transport &transport) -> Status {
    if (transport.rank() == 0)
      return sum(transport);
    for (float value = 0;;) // hangs until the other gives up
      if (Status status = runCollective(transport, sumOf(2, 0, 0), 1, &value, &value); !status.ok())
        return status;
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "rank 0 has waited 50 ms for rank 1, which neither answers nor ends");
}

TEST(SimulatedRanks, AMessageOfAnotherSizeIsRefused) {
  Status status = SimulatedRanks({2, 1}).run([](Transport &transport) {
    uint8_t bytes[8] = {};
    OutgoingMessage out{1, std::span(bytes).first(8)};
    IncomingMessage in{0, std::span(bytes).first(4)};
    return transport.number() == 0 ? transport.exchange(0, {&out, 1}, {}) : transport.exchange(0, {}, {&in, 1});
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "rank 0 sent 8 bytes to rank 1, which expects 4; the ranks run different programs or batches");
}

TEST(SimulatedRanks, AMessageOfAnotherExchangeIsRefused) {
  Status status = SimulatedRanks({2, 1}).run([](Transport &transport) {
    uint8_t bytes[8] = {};
    OutgoingMessage out{1, bytes};
    IncomingMessage in{0, bytes};
    return transport.number() == 0 ? transport.exchange(1, {&out, 1}, {}) : transport.exchange(2, {}, {&in, 1});
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "rank 0 is at another exchange than rank 1, which waits for it; the ranks run different "
                              "programs or batches");
}

// Rank 0 sends `messages` of a megabyte each on channels of their own, all at once.
Clock::duration timeOf(int messages, const SimulatedLink &link) {
  Clock::duration took{};
  Status status = SimulatedRanks({2, 1}, defaultPatience, link).run([&](Transport &transport) -> Status {
    std::vector<std::unique_ptr<Transport>> channels;
    std::vector<std::thread> threads;
    std::vector<std::vector<uint8_t>> bytes(static_cast<size_t>(messages), std::vector<uint8_t>(1000000));
    for (int channel = 0; channel < messages; ++channel) {
      LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> opened, transport.openChannel());
      channels.push_back(std::move(opened));
    }
    const Clock::time_point start = Clock::now();
    for (size_t channel = 0; channel < channels.size(); ++channel)
      threads.emplace_back([&, channel] {
        OutgoingMessage out{1, bytes[channel]};
        IncomingMessage in{0, bytes[channel]};
        bool sends = transport.number() == 0;
        EXPECT_TRUE(
            (sends ? channels[channel]->exchange(0, {&out, 1}, {}) : channels[channel]->exchange(0, {}, {&in, 1}))
                .ok());
      });
    for (std::thread &thread : threads)
      thread.join();
    if (transport.number() == 1)
      took = Clock::now() - start;
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return took;
}

TEST(SimulatedRanks, ALinkHoldsMessagesBack) {
  EXPECT_GE(timeOf(1, {100ms, 0}), 90ms);
  EXPECT_GE(timeOf(1, {0ms, 1e7}), 90ms); // a megabyte at 10 MB/s
  // Latencies pass at the same time, bytes one after the other.
  EXPECT_LT(timeOf(4, {200ms, 0}), 700ms);
  EXPECT_GE(timeOf(4, {0ms, 1e7}), 360ms);
}

TEST(SimulatedRanks, AFailureDoesNotWaitForTheLink) {
  Clock::time_point start = Clock::now();
  Status status = SimulatedRanks({1, 2}, defaultPatience, {10min, 0}).run([](Transport &transport) -> Status {
    if (transport.rank() == 0)
      return sum(transport);
    std::this_thread::sleep_for(50ms);
    return Status::error("out of memory");
  });
  EXPECT_EQ(status.message(), "out of memory");
  EXPECT_LT(Clock::now() - start, 60s);
}

} // namespace
} // namespace llmc
