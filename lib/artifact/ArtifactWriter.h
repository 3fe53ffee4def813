// ArtifactWriter: writes the folder that runtime/artifact/FORMAT.md describes, whole or not at all. One thread per
// output.
#pragma once
#include "runtime/artifact/Manifest.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

// Where packed weights go, front to back, in pieces of any size: nothing but a small buffer is held.
class WeightSink {
public:
  virtual ~WeightSink() = default;
  virtual Status append(std::span<const uint8_t> bytes) = 0;
  // Bytes there so far: at first none, or those that a killed writer of the same artifact left and that are not
  // appended again. The first weight to append begins there.
  virtual uint64_t offset() const = 0;
  // Zeros up to `offset`, the place of the next weight in the plan; fails when that is already passed.
  Status padTo(uint64_t offset);

private:
  // A weight begins at offset().
  virtual Status beginWeight() { return {}; }
};

struct ArtifactFile {
  std::string file; // name in the folder
  std::string bytes;
};

struct ArtifactContents {
  Manifest manifest;   // `sections` is filled in while writing
  std::string program; // bytes of program.so
  // Appends weights up to byte manifest.weightsBytes; not called where there is a writer for all ranks.
  std::function<Status(WeightSink &)> writeWeights;
  std::vector<ArtifactFile> files; // tokenizer, template, dispatch manifest
};

struct ArtifactOptions {
  // Appends the weights of the ranks from `first` on, so that what several need is read once.
  std::function<Status(size_t first, std::span<WeightSink *const> ranks)> writeWeights;
  // Says of what inputs the artifact is made, in one line: then what a killed writer of the same has left is continued.
  std::string key;
  std::function<void(const std::string &)> note; // is told of that
};

// Replaces an artifact (or an empty folder) at `outputFolder` and refuses to replace anything else (AtomicOutput.h).
// The manifest is written last, so what a killed writer leaves is no artifact. The same contents give the same bytes,
// continued or not.
Status writeArtifact(const ArtifactContents &contents, const std::string &outputFolder);

// The same for all ranks of `grid`, by their number. Their manifests are completed here (`rank` but for what its program
// exchanges, which is the caller's). Files of several ranks that hold the same bytes, the program too, are stored once.
Status writeArtifact(std::span<ArtifactContents> ranks, RankGrid grid, const std::string &outputFolder,
                     const ArtifactOptions &options = {});

} // namespace llmc
