// ArtifactWriter: what it writes loads, byte for byte the same each time, and whatever interrupts it leaves the old
// artifact or none.
#include "lib/artifact/ArtifactWriter.h"
#include "runtime/artifact/Loader.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <csignal>
#include <filesystem>
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
