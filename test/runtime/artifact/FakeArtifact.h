// FakeArtifact: artifact folders around FakeStepProgram.c, written the plain way (lib/artifact is the real writer).
#pragma once
#include "runtime/artifact/Manifest.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llmc::test {

std::string readAll(const std::string &path);
void writeAll(const std::string &path, const std::string &bytes);

// Limits small enough that chunks, pages and rows run out in tests. No sections.
Manifest fakeManifest();
// The same without KV pages: all that a sequence keeps is its recurrent state.
Manifest fakeRecurrentManifest();
// Bytes of program.so and weights.bin.
std::string fakeProgram();
std::string otherAbiProgram();
std::string fakeWeights();
// The key in fakeWeights(), as FakeModel.h wants it.
uint64_t fakeKey();
// The answer of the fake model: logits after `tokens`.
std::vector<float> fakeLogitsAfter(const std::vector<int32_t> &tokens);
uint64_t fakeStateAfter(const std::vector<int32_t> &tokens);

// A tokenizer of single characters: id i is the character 32 + i; 95 is <s>, 96 is </s>.
std::string fakeTokenizerJson();
std::string fakeText(const std::vector<int32_t> &ids);
// fakeManifest with that tokenizer, to go with fakeTextFiles().
Manifest fakeTextManifest();

using Files = std::map<std::string, std::string>;
// The sections of a fake artifact; add or replace some, then write.
Files fakeFiles();
// With the tokenizer, and a chat template that puts brackets around the question.
Files fakeTextFiles();
// Fills manifest.sections and weightsBytes and writes the folder.
void writeFakeArtifact(const std::string &folder, Manifest manifest, const Files &files);

} // namespace llmc::test
