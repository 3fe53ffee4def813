// Entries are found again, believed only whole, and bounded in their sum.
#include "lib/codegen/cpu/KernelCache.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace fs = std::filesystem;
using llmc::cpu::KernelCache;

namespace {

const std::string kKey(32, 'a'), kOther(32, 'b');

class KernelCacheTest : public ::testing::Test {
protected:
  fs::path entryOf(const std::string &key) const { return folder + "/" + key + ".kernel"; }
  static void overwrite(const fs::path &path, std::streamoff at, char byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put(byte);
  }
  static void makeOlder(const fs::path &path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  llmc::test::TemporaryFolder here;
  const std::string folder = here / "kernels";
};

TEST_F(KernelCacheTest, FindsWhatWasStored) {
  KernelCache cache(folder);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  std::string object("\0\1object\n", 9);
  ASSERT_TRUE(cache.store(kKey, object).ok());
  EXPECT_EQ(cache.find(kKey), object);
  EXPECT_EQ(cache.find(kOther), std::nullopt);
  ASSERT_TRUE(cache.store(kOther, "").ok());
  EXPECT_EQ(cache.find(kOther), "");
}

TEST_F(KernelCacheTest, EveryFlippedByteIsNoticed) {
  KernelCache cache(folder);
  ASSERT_TRUE(cache.store(kKey, "object").ok());
  auto bytes = static_cast<std::streamoff>(fs::file_size(entryOf(kKey)));
  for (std::streamoff at = 0; at < bytes; ++at) {
    overwrite(entryOf(kKey), at, '\x7f');
    EXPECT_EQ(cache.find(kKey), std::nullopt) << "byte " << at;
    ASSERT_TRUE(cache.store(kKey, "object").ok());
  }
  EXPECT_EQ(cache.find(kKey), "object");
}

TEST_F(KernelCacheTest, IgnoresWhatIsCutOrForeign) {
  KernelCache cache(folder);
  ASSERT_TRUE(cache.store(kKey, "object").ok());
  fs::copy_file(entryOf(kKey), entryOf(kOther));
  EXPECT_EQ(cache.find(kOther), std::nullopt) << "the entry of another key";
  fs::resize_file(entryOf(kKey), fs::file_size(entryOf(kKey)) - 1);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  fs::resize_file(entryOf(kKey), 0);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  fs::remove(entryOf(kKey));
  fs::create_directory(entryOf(kKey));
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  EXPECT_FALSE(cache.store(kKey, "object").ok());
}

TEST_F(KernelCacheTest, RemovesWhatWasUsedLongestAgo) {
  KernelCache cache(folder, /*maxBytes=*/2500);
  const std::string old(32, '1'), used(32, '2'), fresh(32, '3'), object(1000, 'x');
  for (const std::string &key : {old, used, fresh})
    ASSERT_TRUE(cache.store(key, object).ok());
  makeOlder(entryOf(old), 2);
  makeOlder(entryOf(used), 3);
  EXPECT_TRUE(cache.find(used)); // and is the latest from now on
  std::ofstream(folder + "/not-ours") << std::string(10000, 'x');
  cache.trim();
  EXPECT_FALSE(cache.find(old));
  EXPECT_TRUE(cache.find(used) && cache.find(fresh));
  EXPECT_TRUE(fs::exists(folder + "/not-ours"));
  cache.trim();
  EXPECT_TRUE(cache.find(used) && cache.find(fresh));
}

TEST_F(KernelCacheTest, SaysWhyNothingCanBeKept) {
  fs::path file = fs::path(folder).parent_path() / "file";
  std::ofstream(file) << "a file where the folder should be";
  KernelCache cache(file.string());
  EXPECT_EQ(cache.store(kKey, "object").message(),
            file.string() + ": cannot make the folder for kernels: Not a directory");
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  cache.trim();
}

TEST_F(KernelCacheTest, WithoutAFolderNothingIsKept) {
  KernelCache cache("");
  EXPECT_TRUE(cache.store(kKey, "object").ok());
  EXPECT_EQ(cache.find(kKey), std::nullopt);
}

TEST_F(KernelCacheTest, BuildIdIsOneOfThisProcess) {
  EXPECT_EQ(llmc::cpu::compilerBuildId().size(), 32u);
  EXPECT_EQ(llmc::cpu::compilerBuildId(), llmc::cpu::compilerBuildId());
}

} // namespace
