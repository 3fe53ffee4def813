#include "lib/artifact/ArtifactWriter.h"
#include "lib/artifact/KeptBytes.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/Hash.h"
#include <algorithm>
#include <map>

namespace llmc {
namespace {

// Less than the pieces that large weights come in, which are written from where they are.
constexpr size_t bufferBytes = 128 << 10;
// Open at once; more ranks are written group after group.
constexpr size_t mostSinks = 64;

// Packed weights come in small pieces; the file gets large ones. Now and then, where a weight begins, it notes how much
// there is and its hash.
class FileWeightSink final : public WeightSink {
public:
  FileWeightSink(AtomicFolder &folder, std::string name, OutputFile file, Hasher hash)
      : folder_(folder), name_(std::move(name)), file_(std::move(file)), hash_(std::move(hash)), offset_(file_.size()),
        noted_(offset_) {
    buffer_.reserve(bufferBytes);
  }
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
  StatusOr<Section> finish() {
    LLMC_RETURN_IF_ERROR(flush());
    LLMC_RETURN_IF_ERROR(file_.close());
    return Section{name_, offset_, hash_.hex()};
  }
  const std::string &name() const { return name_; }

private:
  Status beginWeight() override {
    if (offset_ - noted_ < bytesBetweenNotes)
      return {};
    LLMC_RETURN_IF_ERROR(flush());
    noted_ = offset_;
    return folder_.note(formatKept({name_, offset_, hash_.hex()}));
  }
  Status flush() {
    LLMC_RETURN_IF_ERROR(file_.append(buffer_));
    buffer_.clear();
    return {};
  }

  AtomicFolder &folder_;
  std::string name_;
  OutputFile file_;
  std::vector<uint8_t> buffer_;
  Hasher hash_;
  uint64_t offset_, noted_;
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
  return beginWeight();
}

namespace {

// Writes the sections of rank after rank and remembers what lies in the folder.
class FolderWriter {
public:
  FolderWriter(AtomicFolder &folder, const ArtifactOptions &options) : folder_(folder), options_(options) {}

  StatusOr<std::vector<Manifest>> write(std::span<const ArtifactContents> ranks) {
    std::vector<Manifest> manifests;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      Manifest &manifest = manifests.emplace_back(ranks[rank].manifest);
      manifest.sections.clear();
      LLMC_RETURN_IF_ERROR(write(programFile, ranks[rank].program, rank, manifest));
      for (const ArtifactFile &file : ranks[rank].files)
        LLMC_RETURN_IF_ERROR(write(file.file, file.bytes, rank, manifest));
    }
    for (size_t first = 0; first < ranks.size(); first += mostSinks) {
      size_t count = std::min(mostSinks, ranks.size() - first);
      LLMC_RETURN_IF_ERROR(
          writeWeights(first, ranks.subspan(first, count), std::span(manifests).subspan(first, count)));
    }
    for (Manifest &manifest : manifests)
      sortByName(manifest.sections);
    return manifests;
  }

private:
  Status write(const std::string &file, const std::string &bytes, size_t rank, Manifest &manifest) {
    Section section{"", bytes.size(), hashHex(bytes)};
    auto [stored, isNew] = stored_.try_emplace({file, section.hash}, nameOfRank(file, rank));
    section.file = stored->second;
    add(file, section, manifest);
    return isNew ? folder_.writeFile(section.file, bytes) : Status();
  }

  Status writeWeights(size_t first, std::span<const ArtifactContents> ranks, std::span<Manifest> manifests) {
    std::vector<std::unique_ptr<FileWeightSink>> sinks;
    std::vector<WeightSink *> ofRanks;
    for (size_t i = 0; i < ranks.size(); ++i) {
      LLMC_ASSIGN_OR_RETURN(std::unique_ptr<FileWeightSink> sink, openWeights(nameOfRank(weightsFile, first + i)));
      ofRanks.push_back(sinks.emplace_back(std::move(sink)).get());
    }
    if (options_.writeWeights)
      LLMC_RETURN_IF_ERROR(options_.writeWeights(first, ofRanks));
    for (size_t i = 0; i < ranks.size(); ++i) {
      FileWeightSink &sink = *sinks[i];
      if (!options_.writeWeights && ranks[i].writeWeights)
        LLMC_RETURN_IF_ERROR(ranks[i].writeWeights(sink));
      if (uint64_t planned = ranks[i].manifest.weightsBytes; sink.offset() != planned)
        return Status::error(sink.name() + ": the plan says " + std::to_string(planned) + " bytes, " +
                             std::to_string(sink.offset()) + " were written");
      LLMC_ASSIGN_OR_RETURN(Section section, sink.finish());
      add(weightsFile, section, manifests[i]);
    }
    return {};
  }

  // With what a killed writer left of it, as far as its hashes agree.
  StatusOr<std::unique_ptr<FileWeightSink>> openWeights(const std::string &name) {
    KeptFile kept;
    if (folder_.continued()) {
      LLMC_ASSIGN_OR_RETURN(kept, verifyKept(folder_.temporaryPath(), name, folder_.notes()));
    }
    if (kept.bytes == 0) {
      LLMC_ASSIGN_OR_RETURN(OutputFile file, folder_.openFile(name));
      return std::make_unique<FileWeightSink>(folder_, name, std::move(file), Hasher());
    }
    if (options_.note)
      options_.note("continuing " + name + ", of which an interrupted run left " + std::to_string(kept.bytes) +
                    " bytes");
    LLMC_ASSIGN_OR_RETURN(OutputFile file, folder_.continueFile(name, kept.bytes));
    return std::make_unique<FileWeightSink>(folder_, name, std::move(file), std::move(kept.hash));
  }

  static void add(const std::string &of, const Section &section, Manifest &manifest) {
    manifest.sections.push_back(section);
    if (section.file != of)
      manifest.rank->files.push_back({of, section.file});
  }

  AtomicFolder &folder_;
  const ArtifactOptions &options_;
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

Status writeArtifact(std::span<ArtifactContents> ranks, RankGrid grid, const std::string &outputFolder,
                     const ArtifactOptions &options) {
  if (ranks.size() != static_cast<size_t>(grid.size()))
    return Status::error(outputFolder + ": there are contents of " + std::to_string(ranks.size()) + " ranks for " +
                         std::to_string(grid.size()));
  uint64_t expectedBytes = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ArtifactContents &contents = ranks[rank];
    if (ranks.size() > 1) {
      RankFacts facts = contents.manifest.rank.value_or(RankFacts());
      facts.number = static_cast<int32_t>(rank);
      facts.grid = grid;
      facts.identity = std::string(32, '0');
      facts.files.clear();
      contents.manifest.rank = std::move(facts);
    }
    LLMC_RETURN_IF_ERROR(checkContents(contents, outputFolder));
    expectedBytes += contents.program.size() + contents.manifest.weightsBytes;
    for (const ArtifactFile &file : contents.files)
      expectedBytes += file.bytes.size();
  }
  LLMC_ASSIGN_OR_RETURN(AtomicFolder folder,
                        AtomicFolder::create(outputFolder, manifestFile, expectedBytes, options.key));
  if (folder.discardedOther() && options.note)
    options.note("removed what an interrupted run with other inputs or options left of " + outputFolder);
  LLMC_ASSIGN_OR_RETURN(std::vector<Manifest> manifests, FolderWriter(folder, options).write(ranks));
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
