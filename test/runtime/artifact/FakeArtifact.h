// FakeArtifact: artifact folders around FakeStepProgram.c, written the plain way (lib/artifact is the real writer), and
// the temporary folder they live in.
#pragma once
#include "runtime/artifact/Manifest.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llmc::testing {

class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

std::string readAll(const std::string &path);
void writeAll(const std::string &path, const std::string &bytes);

// Limits small enough that chunks, pages and rows run out in tests. No sections.
Manifest fakeManifest();
// Bytes of program.so and weights.bin.
std::string fakeProgram();
std::string otherAbiProgram();
std::string fakeWeights();
// The key in fakeWeights(), as FakeModel.h wants it.
uint64_t fakeKey();
// The answer of the fake model: logits after `tokens`.
std::vector<float> fakeLogitsAfter(const std::vector<int32_t> &tokens);
uint64_t fakeStateAfter(const std::vector<int32_t> &tokens);

using Files = std::map<std::string, std::string>;
// The sections of a fake artifact; add or replace some, then write.
Files fakeFiles();
// Fills manifest.sections and weightsBytes and writes the folder.
void writeFakeArtifact(const std::string &folder, Manifest manifest, const Files &files);

} // namespace llmc::testing
