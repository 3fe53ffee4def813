#include "runtime/support/AtomicOutput.h"
#include "runtime/support/File.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace llmc;
using test::TemporaryFolder;

namespace {

constexpr const char *marker = "manifest.json";

Status writeArtifact(const std::string &target, const std::string &content) {
  LLMC_ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::create(target, marker));
  LLMC_RETURN_IF_ERROR(folder.writeFile(marker, content));
  LLMC_RETURN_IF_ERROR(folder.writeFile("rank-0/weights.bin", content));
  return folder.commit();
}

std::string readArtifact(const std::string &target) {
  StatusOr<std::string> a = readFile(target + "/" + marker, 1000), b = readFile(target + "/rank-0/weights.bin", 1000);
  if (!a.ok() || !b.ok())
    return "broken";
  return *a == *b ? *a : "mixed " + *a + " and " + *b;
}

// Runs `body` in a child process, for what changes the whole process; returns its exit code.
template <typename Body> int inChild(Body body) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

TEST(AtomicFolder, AppearsOnlyWhenCommitted) {
  TemporaryFolder here;
  std::string target = here / "out.llmc";
  {
    StatusOr<AtomicFolder> folder = AtomicFolder::create(target + "/", marker);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    ASSERT_TRUE(folder->writeFile(marker, "{}").ok());
    EXPECT_FALSE(isFolder(target));
    ASSERT_TRUE(folder->commit().ok());
    EXPECT_EQ(*readFile(target + "/" + marker, 10), "{}");
    EXPECT_EQ(folder->commit().message(), "cannot write " + target + ": it was already committed");
  }
  EXPECT_TRUE(isFolder(target));
  EXPECT_EQ(here.entries(), 1u);
}

TEST(AtomicFolder, GivenUpLeavesNothing) {
  TemporaryFolder here;
  {
    StatusOr<AtomicFolder> folder = AtomicFolder::create(here / "out.llmc", marker);
    ASSERT_TRUE(folder.ok());
    ASSERT_TRUE(folder->writeFile("a", "x").ok());
    EXPECT_EQ(here.entries(), 1u);
  }
  EXPECT_EQ(here.entries(), 0u);
}

TEST(AtomicFolder, ReplacesAnArtifactWhole) {
  TemporaryFolder here;
  std::string target = here / "out.llmc";
  ASSERT_TRUE(writeArtifact(target, "old").ok());
  here.write("out.llmc/left-over", "x");
  ASSERT_TRUE(writeArtifact(target, "new").ok());
  EXPECT_EQ(readArtifact(target), "new");
  EXPECT_FALSE(fileExists(target + "/left-over"));
  EXPECT_EQ(here.entries(), 1u);
}

TEST(AtomicFolder, ReplacesNothingElse) {
  TemporaryFolder here;
  here.write("model/config.json", "{}");
  EXPECT_EQ(AtomicFolder::create(here / "model", marker).status().message(),
            "cannot write " + here / "model" +
                ": the folder exists and has no 'manifest.json', so it is not ours to replace; remove it or choose "
                "another output");
  here.write("file", "x");
  EXPECT_EQ(AtomicFolder::create(here / "file", marker).status().message(),
            "cannot write " + here / "file" + ": a file of that name exists; remove it or choose another output");
  EXPECT_EQ(AtomicFolder::create(here / "no/such/out", marker).status().message(),
            "cannot write " + here / "no/such/out" + ": there is no folder '" + here / "no/such" + "'");
  std::filesystem::create_directory(here / "empty");
  EXPECT_TRUE(writeArtifact(here / "empty", "x").ok());
  for (const char *name : {"", ".", "..", "/"})
    EXPECT_FALSE(AtomicFolder::create(name, marker).ok()) << name;
}

TEST(AtomicFolder, NamesStayInside) {
  TemporaryFolder here;
  StatusOr<AtomicFolder> folder = AtomicFolder::create(here / "out", marker);
  ASSERT_TRUE(folder.ok());
  for (const std::string &name : {std::string("../x"), std::string("/x"), std::string("a/../../x"), std::string(),
                                  std::string("a/"), std::string("a\0b", 3)})
    EXPECT_FALSE(folder->writeFile(name, "x").ok()) << name;
  EXPECT_TRUE(folder->writeFile("a", "x").ok());
  EXPECT_EQ(folder->writeFile("a", "x").message(), "cannot write " + here / "out" + ": 'a' is written twice");
}

TEST(AtomicFolder, OpenOrAbandonedFilesAreNotCommitted) {
  TemporaryFolder here;
  StatusOr<AtomicFolder> folder = AtomicFolder::create(here / "out", marker);
  ASSERT_TRUE(folder.ok());
  {
    StatusOr<OutputFile> file = folder->openFile("a");
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(folder->commit().message(), "cannot write " + here / "out" + ": 1 of its files are still open");
  }
  EXPECT_FALSE(folder->commit().ok());
  EXPECT_FALSE(isFolder(here / "out"));
}

TEST(AtomicFolder, ThreadsWriteTheirRanges) {
  TemporaryFolder here;
  StatusOr<AtomicFolder> folder = AtomicFolder::create(here / "out", marker);
  ASSERT_TRUE(folder.ok());
  StatusOr<OutputFile> file = folder->openFile("weights");
  ASSERT_TRUE(file.ok());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<uint8_t> bytes(1000, static_cast<uint8_t>('a' + t));
      EXPECT_TRUE(file->writeAt(t * 1000, bytes).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  ASSERT_TRUE(file->close().ok());
  ASSERT_TRUE(folder->commit().ok());
  EXPECT_EQ(*readFile(here / "out/weights", 4000),
            std::string(1000, 'a') + std::string(1000, 'b') + std::string(1000, 'c') + std::string(1000, 'd'));
}

// While four threads replace the artifact, a reader finds a whole one each time it opens the folder.
TEST(AtomicFolder, ConcurrentWritersLeaveOneWhole) {
  TemporaryFolder here;
  std::string target = here / "out";
  ASSERT_TRUE(writeArtifact(target, "first").ok());
  std::vector<std::thread> writers;
  std::atomic<int> running = 4;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        Status status = writeArtifact(target, std::to_string(t) + "/" + std::to_string(i));
        EXPECT_TRUE(status.ok()) << status.message();
      }
      --running;
    });
  while (running > 0)
    EXPECT_TRUE(isFolder(target));
  for (std::thread &writer : writers)
    writer.join();
  std::string content = readArtifact(target);
  EXPECT_EQ(content.substr(1), "/9") << content;
  EXPECT_EQ(here.entries(), 1u);
}

TEST(AtomicFolder, KilledWritersAreCleanedUpLivingOnesAreNot) {
  TemporaryFolder here;
  std::string target = here / "out";
  EXPECT_EQ(inChild([&] {
              StatusOr<AtomicFolder> folder = AtomicFolder::create(target, marker);
              if (!folder.ok() || !folder->writeFile(marker, "half").ok())
                return 1;
              ::raise(SIGKILL);
              return 2;
            }),
            128 + SIGKILL);
  EXPECT_EQ(here.entries(), 1u) << "the dead writer's temporary";
  StatusOr<AtomicFolder> living = AtomicFolder::create(target, marker);
  ASSERT_TRUE(living.ok());
  EXPECT_EQ(here.entries(), 1u) << "only the living writer's temporary";
  ASSERT_TRUE(living->writeFile(marker, "living").ok());
  ASSERT_TRUE(writeArtifact(target, "other").ok());
  ASSERT_TRUE(living->commit().ok());
  EXPECT_EQ(*readFile(target + "/" + marker, 10), "living");
  EXPECT_EQ(here.entries(), 1u);
}

TEST(AtomicFolder, ContinuesWhatAKilledWriterOfTheSameKeyLeft) {
  TemporaryFolder here;
  std::string target = here / "out";
  auto writeHalf = [&] {
    ASSERT_EQ(inChild([&] {
                StatusOr<AtomicFolder> folder = AtomicFolder::create(target, marker, 0, "these inputs");
                StatusOr<OutputFile> weights = folder->openFile("weights");
                if (!weights.ok() || !weights->append("0123456789").ok() || !folder->writeFile("forgotten", "x").ok() ||
                    !folder->writeFile("program", "a longer program").ok() || !folder->note("5 of weights").ok())
                  return 1;
                ::raise(SIGKILL);
                return 2;
              }),
              128 + SIGKILL);
  };
  writeHalf();
  // The end of a note that a power cut ate is not a note.
  for (const auto &entry : std::filesystem::directory_iterator(here.path()))
    std::ofstream(entry.path() / "unfinished", std::ios::app) << "6 of wei";
  {
    StatusOr<AtomicFolder> folder = AtomicFolder::create(target, marker, 0, "these inputs");
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    ASSERT_TRUE(folder->continued());
    EXPECT_EQ(folder->notes(), std::vector<std::string>{"5 of weights"});
    EXPECT_FALSE(AtomicFolder::create(target, marker, 0, "these inputs")->continued()) << "it is ours now";
    EXPECT_FALSE(folder->continueFile("../out", 0).ok());
    StatusOr<OutputFile> weights = folder->continueFile("weights", 5);
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    EXPECT_EQ(weights->size(), 5u);
    ASSERT_TRUE(weights->append("abc").ok());
    ASSERT_TRUE(weights->close().ok());
    EXPECT_FALSE(folder->openFile("weights").ok());
    ASSERT_TRUE(folder->writeFile("program", "short").ok());
    ASSERT_TRUE(folder->writeFile(marker, "x").ok());
    ASSERT_TRUE(folder->commit().ok());
  }
  EXPECT_EQ(*readFile(target + "/weights", 99), "01234abc");
  EXPECT_EQ(*readFile(target + "/program", 99), "short");
  EXPECT_FALSE(fileExists(target + "/forgotten"));
  EXPECT_FALSE(fileExists(target + "/unfinished"));
  EXPECT_EQ(here.entries(), 1u);

  writeHalf();
  StatusOr<AtomicFolder> other = AtomicFolder::create(target, marker, 0, "other inputs");
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->continued());
  EXPECT_TRUE(other->discardedOther());
  EXPECT_EQ(here.entries(), 2u) << "the target and one temporary";
}

// Whenever the writer dies, the target is a whole artifact: the first, or one of the writer's.
TEST(AtomicFolder, KilledAnywhere) {
  TemporaryFolder here;
  std::string target = here / "out";
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(writeArtifact(target, "first").ok());
  auto oneWrite = std::chrono::steady_clock::now() - start;
  int replaced = 0;
  for (int kill = 0; kill < 50; ++kill) {
    pid_t child = ::fork();
    if (child == 0)
      for (int i = 0;; ++i)
        if (!writeArtifact(target, std::to_string(i)).ok())
          ::_exit(1);
    std::this_thread::sleep_for(oneWrite * kill / 15); // 0 to 3 writes long
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a write failed";
    std::string content = readArtifact(target);
    ASSERT_TRUE(content == "first" || content.find_first_not_of("0123456789") == std::string::npos) << content;
    replaced += content != "first";
  }
  EXPECT_GT(replaced, 0) << "no child came as far as a commit";
  ASSERT_TRUE(writeArtifact(target, "last").ok());
  EXPECT_EQ(here.entries(), 1u);
}

TEST(AtomicFolder, FullDisk) {
  TemporaryFolder here;
  constexpr int cannotMount = 77;
  std::string output = here / "message";
  int code = inChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
      return cannotMount;
    std::string disk = here / "disk";
    std::filesystem::create_directory(disk);
    // Private first: the mount must not reach the rest of the machine.
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=16k") != 0)
      return cannotMount;
    StatusOr<AtomicFolder> folder = AtomicFolder::create(disk + "/out.llmc", marker, 81920);
    if (!folder.ok())
      return 1;
    Status status;
    for (int i = 0; i < 20 && status.ok(); ++i)
      status = folder->writeFile("part-" + std::to_string(i), std::string(4096, 'x'));
    if (status.ok())
      return 2;
    here.write("message", status.message());
    return std::filesystem::is_empty(disk) ? 0 : 3;
  });
  if (code == cannotMount)
    GTEST_SKIP() << "no permission to mount a small file system";
  ASSERT_EQ(code, 0);
  std::string message = *readFile(output, 1000);
  EXPECT_EQ(message,
            "cannot write " + here / "disk/out.llmc" + ": no space after 16384 of 81920 bytes; nothing left behind");
}

TEST(AtomicFolder, FileSizeLimit) {
  TemporaryFolder here;
  EXPECT_EQ(inChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              struct rlimit limit = {4096, 4096};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              StatusOr<AtomicFolder> folder = AtomicFolder::create(here / "out", marker);
              if (!folder.ok())
                return 1;
              std::string message = folder->writeFile("a", std::string(10'000, 'x')).message();
              if (message != "cannot write " + here / "out" + ": file too large after 4096 bytes; nothing left behind")
                return 2;
              return folder->commit().ok() ? 3 : 0;
            }),
            0);
  EXPECT_EQ(here.entries(), 0u);
}

TEST(AtomicFolder, ReadOnlyParent) {
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may write everywhere";
  TemporaryFolder here;
  std::filesystem::permissions(here.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(AtomicFolder::create(here / "out", marker).status().message(),
            "cannot write " + here / "out" + ": Permission denied");
}

TEST(AtomicOutput, RemoveUnfinished) {
  TemporaryFolder here;
  EXPECT_EQ(inChild([&] {
              StatusOr<AtomicFolder> folder = AtomicFolder::create(here / "out", marker);
              StatusOr<AtomicFile> file = AtomicFile::create(here / "report");
              if (!folder.ok() || !file.ok() || !folder->writeFile("a", "x").ok() || here.entries() != 2)
                return 1;
              removeUnfinishedOutputs();
              return here.entries() == 0 && !folder->writeFile("b", "x").ok() && !folder->commit().ok() ? 0 : 2;
            }),
            0);
}

TEST(AtomicFile, ReplacesAFile) {
  TemporaryFolder here;
  std::string target = here.write("report.json", "old");
  {
    StatusOr<AtomicFile> file = AtomicFile::create(target);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->file().append("half").ok());
  }
  EXPECT_EQ(*readFile(target, 10), "old");
  ASSERT_TRUE(writeFileAtomically(target, "new").ok());
  EXPECT_EQ(*readFile(target, 10), "new");
  EXPECT_EQ(here.entries(), 1u);
  EXPECT_EQ(writeFileAtomically(here.path(), "x").message(),
            "cannot write " + here.path() + ": it exists and is not a regular file");
  EXPECT_FALSE(writeFileAtomically("/dev/null", "x").ok());
}
