// Weights where they were put: the same bytes in every place, and the place that was asked for.
#include "runtime/engine/WeightMemory.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

namespace llmc {
namespace {

using namespace test;

class WeightMemoryTest : public ::testing::Test {
protected:
  void SetUp() override {
    writeFakeArtifact(folder, fakeManifest(), fakeFiles());
    StatusOr<LoadedArtifact> loaded = LoadedArtifact::open(folder);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    artifact.emplace(std::move(*loaded));
  }
  WeightMemory place(WeightPlacement placement, int32_t workers) {
    auto pool = ThreadPool::create(workers);
    EXPECT_TRUE(pool.ok());
    StatusOr<WeightMemory> memory = WeightMemory::place(*artifact, placement, 0, **pool);
    EXPECT_TRUE(memory.ok()) << (memory.ok() ? "" : memory.status().message());
    EXPECT_EQ(std::memcmp(memory->data(), artifact->weights().data(), artifact->weights().size()), 0);
    return std::move(*memory);
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/fake.llmc";
  std::optional<LoadedArtifact> artifact;
};

TEST_F(WeightMemoryTest, MappedIsTheFile) {
  WeightMemory memory = place(WeightPlacement::Mapped, 1);
  EXPECT_FALSE(memory.copied());
  EXPECT_EQ(memory.data(), artifact->weights().data());
}

TEST_F(WeightMemoryTest, CopiedIsAlignedAndTheSame) {
  for (int32_t workers : {1, 3}) {
    WeightMemory memory = place(WeightPlacement::Copied, workers);
    EXPECT_TRUE(memory.copied());
    EXPECT_NE(memory.data(), artifact->weights().data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u);
  }
}

TEST_F(WeightMemoryTest, OneFlippedByteIsRefusedWhereverTheyLie) {
  {
    std::fstream file(folder + "/" + weightsFile, std::ios::in | std::ios::out | std::ios::binary);
    char byte = 0;
    file.get(byte);
    file.seekp(0);
    file.put(static_cast<char>(byte ^ 1));
  }
  StatusOr<LoadedArtifact> changed = LoadedArtifact::open(folder, WeightsCheck::ByCaller);
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  auto pool = ThreadPool::create(2);
  for (WeightPlacement placement : {WeightPlacement::Mapped, WeightPlacement::Copied}) {
    StatusOr<WeightMemory> memory = WeightMemory::place(*changed, placement, 0, **pool);
    ASSERT_FALSE(memory.ok());
    EXPECT_TRUE(memory.status().message().starts_with("section 'weights.bin': checksum differs"))
        << memory.status().message();
  }
}

TEST(WeightsAreCopied, WhenTheyAreManyAndFitBesideTheRest) {
  const uint64_t mib = 1 << 20, spare = 512 * mib;
  EXPECT_FALSE(weightsAreCopied(8 * mib - 1, 0, 4096 * mib));
  EXPECT_TRUE(weightsAreCopied(8 * mib, 0, 8 * mib + spare));
  EXPECT_FALSE(weightsAreCopied(8 * mib, 0, 8 * mib + spare - 1));
  EXPECT_TRUE(weightsAreCopied(1024 * mib, 100 * mib, 1124 * mib + spare));
  EXPECT_FALSE(weightsAreCopied(1024 * mib, 100 * mib + 1, 1124 * mib + spare));
  EXPECT_FALSE(weightsAreCopied(UINT64_MAX, UINT64_MAX, 4096 * mib));
  EXPECT_FALSE(weightsAreCopied(16 * mib, 0, 0));
}

TEST_F(WeightMemoryTest, FewWeightsStayInTheFile) { EXPECT_FALSE(place(WeightPlacement::Choose, 1).copied()); }

} // namespace
} // namespace llmc
