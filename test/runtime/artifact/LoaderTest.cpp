// Loader: a whole artifact loads, and any damage, missing piece or foreign host is one sentence.
#include "runtime/artifact/Loader.h"
#include "runtime/support/CpuFeatures.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>

namespace llmc {
namespace {

using namespace test;

class Loader : public ::testing::Test {
protected:
  void SetUp() override { writeFakeArtifact(folder, fakeManifest(), fakeFiles()); }
  std::string failure() const {
    StatusOr<LoadedArtifact> artifact = LoadedArtifact::open(folder);
    return artifact.ok() ? "no failure" : artifact.status().message();
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/fake.llmc";
};

TEST_F(Loader, WholeArtifact) {
  StatusOr<LoadedArtifact> artifact = LoadedArtifact::open(folder);
  ASSERT_TRUE(artifact.ok()) << artifact.status().message();
  EXPECT_NE(artifact->step(), nullptr);
  EXPECT_EQ(artifact->weights().size(), fakeWeights().size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artifact->weights().data()) % artifactAlignment, 0u);
  StatusOr<std::string> dispatch = artifact->readSection(dispatchFile);
  ASSERT_TRUE(dispatch.ok());
  EXPECT_EQ(*dispatch, "[]\n");
  EXPECT_EQ(artifact->readSection("x").status().message(), folder + ": has no section 'x'");
}

TEST_F(Loader, FlippedByteInAnySection) {
  for (const auto &[name, bytes] : fakeFiles())
    for (size_t at : {size_t(0), bytes.size() / 2, bytes.size() - 1}) {
      std::string flipped = bytes;
      flipped[at] ^= 1;
      writeAll(folder + "/" + name, flipped);
      std::string message = failure();
      EXPECT_EQ(message.find(folder + ": section '" + name + "': checksum differs: "), 0u) << message;
      EXPECT_NE(message.find("; compile it again"), std::string::npos);
      writeAll(folder + "/" + name, bytes);
    }
  EXPECT_EQ(failure(), "no failure");
}

TEST_F(Loader, CutOrMissingSection) {
  for (const auto &[name, bytes] : fakeFiles()) {
    writeAll(folder + "/" + name, bytes.substr(0, bytes.size() - 1));
    EXPECT_EQ(failure(), folder + ": section '" + name + "': has " + std::to_string(bytes.size() - 1) +
                             " bytes, the manifest says " + std::to_string(bytes.size()) + "; compile it again");
    std::filesystem::remove(folder + "/" + name);
    EXPECT_NE(failure().find(name), std::string::npos) << failure();
    std::filesystem::create_directory(folder + "/" + name);
    EXPECT_NE(failure(), "no failure");
    std::filesystem::remove(folder + "/" + name);
    writeAll(folder + "/" + name, bytes);
  }
}

TEST_F(Loader, MissingCpuFeature) {
  Manifest manifest = fakeManifest();
  std::string lacking;
  for (std::string_view name : knownCpuFeatures())
    if (std::find(hostCpuFeatures().begin(), hostCpuFeatures().end(), name) == hostCpuFeatures().end())
      lacking = name;
  if (lacking.empty())
    lacking = "avx1024";
  manifest.cpuFeatures = {lacking};
  writeFakeArtifact(folder, manifest, fakeFiles());
  EXPECT_EQ(failure().find(folder + ": needs "), 0u) << failure();
  EXPECT_NE(failure().find(lacking), std::string::npos) << failure();
  EXPECT_TRUE(LoadedArtifact::openForInspection(folder).ok());
}

TEST_F(Loader, AnotherAbi) {
  Files files = fakeFiles();
  files[programFile] = otherAbiProgram();
  writeFakeArtifact(folder, fakeManifest(), files);
  std::string ours = std::to_string(LLMC_ABI_VERSION);
  EXPECT_EQ(failure(), folder + ": program.so: step ABI 999, the manifest says " + ours + ", this runtime has " + ours +
                           "; compile it again");
}

TEST_F(Loader, ProgramThatIsNoLibrary) {
  Files files = fakeFiles();
  files[programFile] = "not an ELF file";
  writeFakeArtifact(folder, fakeManifest(), files);
  EXPECT_EQ(failure().find(folder + ": program.so: "), 0u) << failure();
}

TEST_F(Loader, NoArtifact) {
  std::filesystem::remove(folder + "/" + manifestFile);
  EXPECT_EQ(failure(), folder + ": has no manifest.json, so it is no artifact; write one with llmc compile");
  folder += "/nothing";
  EXPECT_EQ(failure(), folder + ": no such folder; an artifact is the folder that llmc compile wrote");
}

} // namespace
} // namespace llmc
