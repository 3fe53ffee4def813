// ArtifactWriter: what it writes loads, byte for byte the same each time, and whatever interrupts it leaves the old
// artifact or none.
#include "lib/artifact/ArtifactWriter.h"
#include "lib/artifact/KeptBytes.h"
#include "runtime/artifact/Loader.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc {
namespace {

using namespace test;

std::span<const uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

ArtifactContents fakeContents() {
  ArtifactContents contents;
  contents.manifest = fakeManifest();
  contents.program = fakeProgram();
  contents.files = {{dispatchFile, "[]\n"}};
  contents.writeWeights = [](WeightSink &sink) {
    std::string bytes = fakeWeights();
    LLMC_RETURN_IF_ERROR(sink.append(bytesOf(bytes.substr(0, 60))));
    LLMC_RETURN_IF_ERROR(sink.padTo(64));
    LLMC_RETURN_IF_ERROR(sink.append(bytesOf(bytes.substr(64, 8))));
    return sink.padTo(128);
  };
  return contents;
}

// The same with `bytes` of weights, whose content names the writer.
ArtifactContents largeContents(uint64_t bytes, uint8_t fill) {
  ArtifactContents contents = fakeContents();
  contents.manifest.weightsBytes = bytes;
  contents.writeWeights = [bytes, fill](WeightSink &sink) {
    const std::vector<uint8_t> piece(7919, fill);
    while (sink.offset() < bytes)
      LLMC_RETURN_IF_ERROR(sink.append(std::span(piece).first(std::min<size_t>(piece.size(), bytes - sink.offset()))));
    return Status();
  };
  return contents;
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class ArtifactWriter : public ::testing::Test {
protected:
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/out.llmc";
};

TEST_F(ArtifactWriter, WhatIsWrittenLoads) {
  Status status = writeArtifact(fakeContents(), folder);
  ASSERT_TRUE(status.ok()) << status.message();
  StatusOr<LoadedArtifact> artifact = LoadedArtifact::open(folder);
  ASSERT_TRUE(artifact.ok()) << artifact.status().message();
  EXPECT_EQ(artifact->weights()[60], 0); // padding
  EXPECT_EQ(artifact->weights()[64], static_cast<uint8_t>(fakeWeights()[64]));
  EXPECT_EQ(namesIn(temporary.path()), std::vector<std::string>{"out.llmc"});
}

TEST_F(ArtifactWriter, SameContentsSameBytes) {
  std::string other = temporary.path() + "/elsewhere";
  ASSERT_TRUE(writeArtifact(fakeContents(), folder).ok());
  ASSERT_TRUE(writeArtifact(fakeContents(), other).ok());
  EXPECT_EQ(namesIn(folder), namesIn(other));
  for (const std::string &name : namesIn(folder))
    EXPECT_EQ(readAll(folder + "/" + name), readAll(other + "/" + name)) << name;
}

TEST_F(ArtifactWriter, ReplacesAnArtifactWhole) {
  ArtifactContents old = fakeContents();
  old.files.push_back({"only-in-the-old-one", "x"});
  ASSERT_TRUE(writeArtifact(old, folder).ok());
  ASSERT_TRUE(writeArtifact(fakeContents(), folder + "/").ok());
  EXPECT_EQ(namesIn(folder), (std::vector<std::string>{dispatchFile, manifestFile, programFile, weightsFile}));
  EXPECT_TRUE(LoadedArtifact::open(folder).ok());
  EXPECT_EQ(namesIn(temporary.path()).size(), 1u);
}

TEST_F(ArtifactWriter, RefusesToReplaceAnythingElse) {
  std::filesystem::create_directory(folder);
  writeAll(folder + "/thesis.tex", "years of work");
  EXPECT_FALSE(writeArtifact(fakeContents(), folder).ok());
  EXPECT_EQ(readAll(folder + "/thesis.tex"), "years of work");
  EXPECT_FALSE(writeArtifact(fakeContents(), folder + "/thesis.tex").ok());
  EXPECT_EQ(namesIn(temporary.path()).size(), 1u);
}

TEST_F(ArtifactWriter, FailureLeavesTheOldOne) {
  ASSERT_TRUE(writeArtifact(fakeContents(), folder).ok());
  std::string before = readAll(folder + "/" + manifestFile);
  ArtifactContents failing = fakeContents();
  failing.writeWeights = [](WeightSink &sink) {
    LLMC_RETURN_IF_ERROR(sink.append(bytesOf("abc")));
    return Status::error("shard 3 is gone");
  };
  EXPECT_EQ(writeArtifact(failing, folder).message(), "shard 3 is gone");
  failing.writeWeights = [](WeightSink &sink) { return sink.append(bytesOf("abc")); };
  EXPECT_EQ(writeArtifact(failing, folder).message(), "weights.bin: the plan says 128 bytes, 3 were written");
  failing.writeWeights = [](WeightSink &sink) {
    LLMC_RETURN_IF_ERROR(sink.append(bytesOf("abc")));
    return sink.padTo(2);
  };
  EXPECT_EQ(writeArtifact(failing, folder).message(),
            "weights.bin: the next weight belongs at byte 2, but 3 are written");
  failing = fakeContents();
  failing.files.push_back({"../escape", "x"});
  EXPECT_NE(writeArtifact(failing, folder).message().find("'../escape' is no plain file name"), std::string::npos);
  EXPECT_EQ(readAll(folder + "/" + manifestFile), before);
  EXPECT_EQ(namesIn(temporary.path()).size(), 1u);
}

// Weights of 16 MiB + 64 bytes each; the byte of each says which.
constexpr uint64_t weightBytes = bytesBetweenNotes + 64;

// Appends the weights of two ranks in turn; kills the process where weight `killAt` is half there. Counts what it
// appends.
ArtifactOptions killedWriter(int killAt, int *appended) {
  ArtifactOptions options;
  options.key = "the same inputs";
  options.writeWeights = [=](size_t, std::span<WeightSink *const> ranks) -> Status {
    for (int weight = 0; weight < 4; ++weight)
      for (WeightSink *sink : ranks) {
        uint64_t offset = static_cast<uint64_t>(weight) * weightBytes;
        if (offset < sink->offset())
          continue;
        ++*appended;
        LLMC_RETURN_IF_ERROR(sink->padTo(offset));
        const std::vector<uint8_t> half(weightBytes / 2, static_cast<uint8_t>(weight + 1));
        LLMC_RETURN_IF_ERROR(sink->append(half));
        if (weight == killAt && sink == ranks.back())
          ::raise(SIGKILL);
        LLMC_RETURN_IF_ERROR(sink->append(half));
      }
    return {};
  };
  return options;
}

std::vector<ArtifactContents> twoRanks() {
  std::vector<ArtifactContents> ranks(2, fakeContents());
  for (ArtifactContents &rank : ranks)
    rank.manifest.weightsBytes = 4 * weightBytes;
  return ranks;
}

void killWriterAt(int weight, const std::string &folder) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int appended = 0;
    std::vector<ArtifactContents> ranks = twoRanks();
    Status status = writeArtifact(ranks, {1, 2}, folder, killedWriter(weight, &appended));
    ::_exit(1);
  }
  int result = 0;
  ::waitpid(child, &result, 0);
  ASSERT_TRUE(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

std::string unfinishedIn(const std::string &folder) {
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().front() == '.')
      return entry.path();
  return "";
}

TEST_F(ArtifactWriter, ContinuesWhatAKilledWriterLeft) {
  const std::string undisturbed = temporary.path() + "/undisturbed";
  int appended = 0;
  std::vector<ArtifactContents> ranks = twoRanks();
  Status status = writeArtifact(ranks, {1, 2}, undisturbed, killedWriter(-1, &appended));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(appended, 8);
  // A byte of what is left changes: its rank begins where the note before it says.
  for (bool isDamaged : {false, true}) {
    killWriterAt(2, folder);
    if (isDamaged) {
      std::fstream file(unfinishedIn(temporary.path()) + "/weights-1.bin", std::ios::in | std::ios::out);
      file.seekp(weightBytes + 5).put('x');
    }
    std::vector<std::string> notes;
    ArtifactOptions options = killedWriter(-1, &(appended = 0));
    options.note = [&](const std::string &note) { notes.push_back(note); };
    status = writeArtifact(ranks, {1, 2}, folder, options);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(appended, isDamaged ? 2 + 3 : 2 + 2); // the weights from the third on, which was not whole
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[0],
              "continuing weights.bin, of which an interrupted run left " + std::to_string(2 * weightBytes) + " bytes");
    ASSERT_EQ(namesIn(folder), namesIn(undisturbed));
    for (const std::string &name : namesIn(folder))
      EXPECT_TRUE(readAll(folder + "/" + name) == readAll(undisturbed + "/" + name)) << name;
    std::filesystem::remove_all(folder);
  }
}

TEST_F(ArtifactWriter, DoesNotContinueOtherInputs) {
  killWriterAt(2, folder);
  int appended = 0;
  std::vector<std::string> notes;
  ArtifactOptions options = killedWriter(-1, &appended);
  options.key = "other inputs";
  options.note = [&](const std::string &note) { notes.push_back(note); };
  std::vector<ArtifactContents> ranks = twoRanks();
  ASSERT_TRUE(writeArtifact(ranks, {1, 2}, folder, options).ok());
  EXPECT_EQ(appended, 8);
  EXPECT_EQ(notes,
            std::vector<std::string>{"removed what an interrupted run with other inputs or options left of " + folder});
  EXPECT_EQ(namesIn(temporary.path()), std::vector<std::string>{"out.llmc"});
}

// RLIMIT_FSIZE stands in for a full disk: the same errno path, without mounting anything.
TEST_F(ArtifactWriter, FullDisk) {
  ASSERT_TRUE(writeArtifact(fakeContents(), folder).ok());
  std::string before = readAll(folder + "/" + manifestFile);
  std::string report = temporary.path() + "/report";
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{3 << 20, 3 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Status status = writeArtifact(largeContents(8 << 20, 1), folder);
    writeAll(report, status.ok() ? "no failure" : status.message());
    ::_exit(0);
  }
  int result = 0;
  ::waitpid(child, &result, 0);
  EXPECT_EQ(readAll(report).find("cannot write " + folder + ": "), 0u) << readAll(report);
  std::string total = std::to_string((8 << 20) + fakeProgram().size() + 3); // weights, program, dispatch manifest
  EXPECT_NE(readAll(report).find(" of " + total + " bytes"), std::string::npos) << readAll(report);
  EXPECT_EQ(readAll(folder + "/" + manifestFile), before);
  EXPECT_EQ(namesIn(temporary.path()), (std::vector<std::string>{"out.llmc", "report"}));
}

// A child replaces the artifact again and again and is killed anywhere; what is there afterwards always loads.
TEST_F(ArtifactWriter, KilledAnywhere) {
  std::mt19937 random(7);
  ASSERT_TRUE(writeArtifact(largeContents(1 << 20, 0), folder).ok());
  for (int round = 0; round < 200; ++round) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (uint8_t fill = 1;; ++fill)
        if (!writeArtifact(largeContents(1 << 20, fill), folder).ok())
          ::_exit(1);
    }
    ::usleep(random() % 8'000);
    ::kill(child, SIGKILL);
    int result = 0;
    ::waitpid(child, &result, 0);
    ASSERT_TRUE(WIFSIGNALED(result)) << "the writer failed by itself";
    StatusOr<LoadedArtifact> artifact = LoadedArtifact::open(folder);
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    EXPECT_EQ(artifact->weights().front(), artifact->weights().back());
    // What the killed one left is no artifact, unless it is the old one waiting to be removed.
    for (const std::string &name : namesIn(temporary.path()))
      if (StatusOr<LoadedArtifact> left = LoadedArtifact::open(temporary.path() + "/" + name); left.ok())
        EXPECT_EQ(left->weights().front(), left->weights().back());
  }
  ASSERT_TRUE(writeArtifact(fakeContents(), folder).ok());
  EXPECT_EQ(namesIn(temporary.path()), std::vector<std::string>{"out.llmc"});
}

} // namespace
} // namespace llmc
