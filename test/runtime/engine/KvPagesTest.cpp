// KvPages: pages are given once, come back, and the check sees what is wrong.
#include "runtime/engine/KvPages.h"
#include "runtime/engine/MemoryRegion.h"
#include <gtest/gtest.h>
#include <random>

namespace llmc {
namespace {

TEST(KvPages, AssignsLowestFirstAndTheSameAgain) {
  KvPages pages(5, 2, 4);
  ASSERT_TRUE(pages.assign(0, 3));
  EXPECT_EQ(std::vector<int32_t>(pages.table(0).begin(), pages.table(0).end()), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_FALSE(pages.assign(1, 3)); // 2 are free
  EXPECT_TRUE(pages.table(1).empty());
  ASSERT_TRUE(pages.assign(1, 2));
  EXPECT_EQ(pages.freePages(), 0);
  pages.release(0);
  ASSERT_TRUE(pages.assign(0, 3));
  EXPECT_EQ(pages.table(0)[0], 0);
  EXPECT_TRUE(pages.check().ok());
}

TEST(KvPages, RandomUseKeepsTheRules) {
  std::mt19937 random(1);
  KvPages pages(37, 6, 11);
  for (int i = 0; i < 20'000; ++i) {
    auto slot = static_cast<int32_t>(random() % 6);
    if (!pages.table(slot).empty())
      pages.release(slot);
    else
      pages.assign(slot, static_cast<int32_t>(random() % 12));
    if (i % 64 == 0) {
      Status status = pages.check();
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
}

TEST(MemoryRegion, EndsAtTheGuard) {
  StatusOr<MemoryRegion> region = MemoryRegion::map(1000, "test");
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(region->data()) % 64, 0u);
  region->data()[999] = 1;
  region->data()[1023] = 1;                    // 1000 rounded up to 1024
  EXPECT_DEATH(region->data()[1024] = 1, "");  // the guard behind
  EXPECT_DEATH(region->data()[-8192] = 1, ""); // the guard before
}

TEST(MemoryRegion, TooLarge) {
  StatusOr<MemoryRegion> region = MemoryRegion::map(uint64_t(1) << 62, "the KV cache");
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.status().message().find("cannot allocate 4611686018427387904 bytes for the KV cache: "), 0u);
  EXPECT_FALSE(MemoryRegion::map(UINT64_MAX, "x").ok());
}

} // namespace
} // namespace llmc
