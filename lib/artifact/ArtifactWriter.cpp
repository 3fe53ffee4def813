#include "lib/artifact/ArtifactWriter.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/Hash.h"
#include <algorithm>
#include <map>

namespace llmc {
namespace {

constexpr size_t bufferBytes = 1 << 20;

// Packed weights come in small pieces; the file gets large ones.
class FileWeightSink final : public WeightSink {
public:
  explicit FileWeightSink(OutputFile &file) : file_(file) { buffer_.reserve(bufferBytes); }
  Status append(std::span<const uint8_t> bytes) override {
    hash_.add(bytes);
    offset_ += bytes.size();
    if (buffer_.size() + bytes.size() > bufferBytes)
      LLMC_RETURN_IF_ERROR(flush());
    if (bytes.size() >= bufferBytes)
      return file_.append(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  uint64_t offset() const override { return offset_; }
  Status flush() {
    LLMC_RETURN_IF_ERROR(file_.append(buffer_));
    buffer_.clear();
    return {};
  }
  std::string hash() const { return hash_.hex(); }

private:
  OutputFile &file_;
  std::vector<uint8_t> buffer_;
  Hasher hash_;
  uint64_t offset_ = 0;
};

// "weights-1.bin" for rank 1; rank 0's files are called as they are where there is one rank.
std::string nameOfRank(const std::string &file, size_t rank) {
  if (rank == 0)
    return file;
  size_t dot = file.rfind('.');
  dot = dot == std::string::npos ? file.size() : dot;
  return file.substr(0, dot) + "-" + std::to_string(rank) + file.substr(dot);
}

void sortByName(std::vector<Section> &sections) {
  std::sort(sections.begin(), sections.end(), [](const Section &a, const Section &b) { return a.file < b.file; });
}

// Names and numbers are checked before a byte is written, with stand-ins for the hashes that are not known yet.
Status checkContents(const ArtifactContents &contents, const std::string &outputFolder) {
  Manifest manifest = contents.manifest;
  const std::string noHash(32, '0');
  manifest.sections = {{programFile, contents.program.size(), noHash}, {weightsFile, manifest.weightsBytes, noHash}};
  for (const ArtifactFile &file : contents.files)
    manifest.sections.push_back({file.file, file.bytes.size(), noHash});
  sortByName(manifest.sections);
  return checkManifest(manifest, outputFolder);
}

} // namespace

Status WeightSink::padTo(uint64_t target) {
  static const uint8_t zeros[4096] = {};
  if (target < offset())
    return Status::error(std::string(weightsFile) + ": the next weight belongs at byte " + std::to_string(target) +
                         ", but " + std::to_string(offset()) + " are written");
  while (offset() < target)
    LLMC_RETURN_IF_ERROR(append({zeros, static_cast<size_t>(std::min<uint64_t>(sizeof zeros, target - offset()))}));
  return {};
}

namespace {

// Writes the sections of rank after rank and remembers what lies in the folder.
class FolderWriter {
public:
  explicit FolderWriter(AtomicFolder &folder) : folder_(folder) {}

  StatusOr<Manifest> writeRank(const ArtifactContents &contents, size_t rank) {
    Manifest manifest = contents.manifest;
    manifest.sections.clear();
    LLMC_RETURN_IF_ERROR(write(programFile, contents.program, rank, manifest));
    LLMC_RETURN_IF_ERROR(writeWeights(contents, rank, manifest));
    for (const ArtifactFile &file : contents.files)
      LLMC_RETURN_IF_ERROR(write(file.file, file.bytes, rank, manifest));
    sortByName(manifest.sections);
    return manifest;
  }

private:
  Status write(const std::string &file, const std::string &bytes, size_t rank, Manifest &manifest) {
    Section section{"", bytes.size(), hashHex(bytes)};
    auto [stored, isNew] = stored_.try_emplace({file, section.hash}, nameOfRank(file, rank));
    section.file = stored->second;
    add(file, section, manifest);
    return isNew ? folder_.writeFile(section.file, bytes) : Status();
  }

  Status writeWeights(const ArtifactContents &contents, size_t rank, Manifest &manifest) {
    const std::string name = nameOfRank(weightsFile, rank);
    LLMC_ASSIGN_OR_RETURN(OutputFile file, folder_.openFile(name));
    FileWeightSink sink(file);
    if (contents.writeWeights)
      LLMC_RETURN_IF_ERROR(contents.writeWeights(sink));
    uint64_t planned = contents.manifest.weightsBytes;
    if (sink.offset() != planned)
      return Status::error(name + ": the plan says " + std::to_string(planned) + " bytes, " +
                           std::to_string(sink.offset()) + " were written");
    LLMC_RETURN_IF_ERROR(sink.flush());
    LLMC_RETURN_IF_ERROR(file.close());
    add(weightsFile, {name, planned, sink.hash()}, manifest);
    return {};
  }

  static void add(const std::string &of, const Section &section, Manifest &manifest) {
    manifest.sections.push_back(section);
    if (section.file != of)
      manifest.rank->files.push_back({of, section.file});
  }

  AtomicFolder &folder_;
  std::map<std::pair<std::string, std::string>, std::string> stored_; // (called, hash) -> file
};

// Of everything that the ranks are given but the manifests themselves.
std::string identityOf(const std::vector<Manifest> &manifests) {
  std::string text;
  for (const Manifest &manifest : manifests)
    for (const Section &section : manifest.sections)
      text += section.file + " " + section.hash + "\n";
  return hashHex(text);
}

} // namespace

Status writeArtifact(const ArtifactContents &contents, const std::string &outputFolder) {
  ArtifactContents alone = contents;
  return writeArtifact({&alone, 1}, RankGrid(), outputFolder);
}

Status writeArtifact(std::span<ArtifactContents> ranks, RankGrid grid, const std::string &outputFolder) {
  if (ranks.size() != static_cast<size_t>(grid.size()))
    return Status::error(outputFolder + ": there are contents of " + std::to_string(ranks.size()) + " ranks for " +
                         std::to_string(grid.size()));
  uint64_t expectedBytes = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ArtifactContents &contents = ranks[rank];
    if (ranks.size() > 1) {
      uint64_t collectiveBytes = contents.manifest.rank ? contents.manifest.rank->collectiveBytes : 0;
      contents.manifest.rank = {static_cast<int32_t>(rank), grid, std::string(32, '0'), collectiveBytes, {}};
    }
    LLMC_RETURN_IF_ERROR(checkContents(contents, outputFolder));
    expectedBytes += contents.program.size() + contents.manifest.weightsBytes;
    for (const ArtifactFile &file : contents.files)
      expectedBytes += file.bytes.size();
  }
  LLMC_ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::create(outputFolder, manifestFile, expectedBytes));
  FolderWriter writer(folder);
  std::vector<Manifest> manifests;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    LLMC_ASSIGN_OR_RETURN(Manifest manifest, writer.writeRank(ranks[rank], rank));
    manifests.push_back(std::move(manifest));
  }
  const std::string identity = identityOf(manifests);
  // Rank 0's last: without it the folder is no artifact.
  for (size_t rank = manifests.size(); rank-- > 0;) {
    if (manifests[rank].rank)
      manifests[rank].rank->identity = identity;
    LLMC_RETURN_IF_ERROR(checkManifest(manifests[rank], outputFolder));
    LLMC_RETURN_IF_ERROR(folder.writeFile(manifestFileOf(static_cast<int32_t>(rank)), manifestText(manifests[rank])));
  }
  return folder.commit();
}

} // namespace llmc
