// Order, failures and the bound on buffers of runInOrder.
#include "lib/weights/OrderedWork.h"
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace llmc;

namespace {
Status makeItem(int64_t item, std::vector<uint8_t> &buffer) {
  if (item % 3 == 0) // late items overtake early ones
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  buffer.assign(1, static_cast<uint8_t>(item));
  return {};
}
} // namespace

TEST(OrderedWork, ConsumesInOrderForAnyThreads) {
  for (int threads : {0, 1, 2, 3, 7, 100}) {
    std::vector<uint8_t> seen;
    Status status = runInOrder(50, threads, makeItem, [&](std::span<const uint8_t> buffer) {
      seen.push_back(buffer[0]);
      return Status();
    });
    ASSERT_TRUE(status.ok());
    ASSERT_EQ(seen.size(), 50u) << threads;
    for (size_t i = 0; i < seen.size(); ++i)
      EXPECT_EQ(seen[i], i) << threads;
  }
}

TEST(OrderedWork, TheFirstFailureInOrderIsReturned) {
  for (int threads : {1, 4}) {
    int64_t consumed = 0;
    Status status = runInOrder(
        50, threads,
        [](int64_t item, std::vector<uint8_t> &buffer) {
          if (item == 21) // arrives after the failures behind it
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return item >= 21 ? Status::error("item " + std::to_string(item)) : makeItem(item, buffer);
        },
        [&](std::span<const uint8_t>) {
          ++consumed;
          return Status();
        });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "item 21");
    EXPECT_EQ(consumed, 21);
  }
}

TEST(OrderedWork, AFailingConsumerStopsTheWork) {
  std::atomic<int64_t> made = 0;
  Status status = runInOrder(
      1000, 2,
      [&](int64_t item, std::vector<uint8_t> &buffer) {
        ++made;
        return makeItem(item, buffer);
      },
      [](std::span<const uint8_t> buffer) { return buffer[0] == 5 ? Status::error("disk full") : Status(); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "disk full");
  EXPECT_LE(made.load(), 5 + 4); // items 0..4 were consumed, and 2 threads have 4 buffers
}

TEST(OrderedWork, NothingToDo) {
  EXPECT_TRUE(runInOrder(0, 4, makeItem, [](std::span<const uint8_t>) { return Status::error("called"); }).ok());
}
