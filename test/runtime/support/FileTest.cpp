#include "runtime/support/File.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <sys/stat.h>

using namespace llmc;
using test::TemporaryFolder;

TEST(File, LimitAtAndOneAbove) {
  TemporaryFolder folder;
  std::string path = folder.write("f", "12345");
  EXPECT_EQ(*readFile(path, 5), "12345");
  EXPECT_EQ(readFile(path, 4).status().message(), path + ": file has 5 bytes, limit 4");
}

TEST(File, WhatIsNoRegularFile) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(readFile(folder / "fifo", 5).status().message(), folder / "fifo" + ": not a regular file");
  EXPECT_EQ(readFile("/dev/zero", 5).status().message(), "/dev/zero: not a regular file");
  EXPECT_EQ(readFile(folder.path(), 5).status().message(), folder.path() + ": is a folder, expected a file");
  EXPECT_EQ(readFile(folder / "absent", 5).status().message(),
            folder / "absent" + ": cannot open: No such file or directory");
}

// The system would open "/etc/passwd" for "/etc/passwd\0.safetensors".
TEST(File, NulInThePath) {
  TemporaryFolder folder;
  std::string path = folder.write("f", "x");
  std::string withNul = path + std::string("\0.json", 6);
  EXPECT_EQ(readFile(withNul, 5).status().message(),
            path + ": the path holds a NUL byte at " + std::to_string(path.size()));
  EXPECT_FALSE(MappedFile::open(withNul).ok());
  EXPECT_FALSE(fileExists(withNul));
  EXPECT_FALSE(isFolder(folder.path() + std::string("\0x", 2)));
  EXPECT_TRUE(fileExists(path));
  EXPECT_TRUE(isFolder(folder.path()));
}

TEST(File, Parts) {
  TemporaryFolder folder;
  std::string path = folder.write("f", "0123456789");
  EXPECT_EQ(readFilePart(path, 3, 4)->bytes, "3456");
  EXPECT_EQ(readFilePart(path, 8, 4)->bytes, "89");
  EXPECT_EQ(readFilePart(path, 10, 4)->bytes, "");
  EXPECT_EQ(readFilePart(path, UINT64_MAX, UINT64_MAX)->bytes, "");
  EXPECT_EQ(readFilePart(path, 0, UINT64_MAX)->bytes, "0123456789");
  EXPECT_EQ(readFilePart(path, 3, 4)->file.bytes, 10u);
}

TEST(MappedFile, SeesCutGrownTouchedAndReplacedFiles) {
  TemporaryFolder folder;
  std::string path = folder.write("f", std::string(8192, 'a'));
  StatusOr<MappedFile> mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes().size(), 8192u);
  EXPECT_TRUE(mapped->checkUnchanged().ok());
  std::filesystem::resize_file(path, 4096);
  EXPECT_EQ(mapped->checkUnchanged().message(), path + ": changed while it was read: 8192 bytes at open, 4096 now");

  StatusOr<MappedFile> again = MappedFile::open(path);
  ASSERT_TRUE(again.ok());
  // Same size and time, another file.
  auto time = std::filesystem::last_write_time(path);
  std::string other = folder.write("g", std::string(4096, 'b'));
  std::filesystem::last_write_time(other, time);
  std::filesystem::rename(other, path);
  EXPECT_EQ(again->checkUnchanged().message(), path + ": was replaced while it was read");
  std::filesystem::remove(path);
  EXPECT_FALSE(again->checkUnchanged().ok());
  EXPECT_EQ(again->bytes()[4095], 'a') << "the map keeps the replaced file";
}

TEST(MappedFile, EmptyFileAndMoves) {
  TemporaryFolder folder;
  StatusOr<MappedFile> empty = MappedFile::open(folder.write("empty", ""));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->bytes().empty());
  EXPECT_TRUE(empty->checkUnchanged().ok());
  StatusOr<MappedFile> one = MappedFile::open(folder.write("one", "1"));
  ASSERT_TRUE(one.ok());
  MappedFile moved = std::move(*one);
  EXPECT_EQ(moved.bytes()[0], '1');
  moved = std::move(*empty);
  EXPECT_TRUE(moved.bytes().empty());
}
