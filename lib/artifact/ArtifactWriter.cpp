#include "lib/artifact/ArtifactWriter.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/Hash.h"
#include <algorithm>

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

StatusOr<Section> writeSection(AtomicFolder &folder, const std::string &name, const std::string &bytes) {
  LLMC_RETURN_IF_ERROR(folder.writeFile(name, bytes));
  return Section{name, bytes.size(), hashHex(bytes)};
}

StatusOr<Section> writeWeights(const ArtifactContents &contents, AtomicFolder &folder) {
  LLMC_ASSIGN_OR_RETURN(OutputFile file, folder.openFile(weightsFile));
  FileWeightSink sink(file);
  if (contents.writeWeights)
    LLMC_RETURN_IF_ERROR(contents.writeWeights(sink));
  uint64_t planned = contents.manifest.weightsBytes;
  if (sink.offset() != planned)
    return Status::error(std::string(weightsFile) + ": the plan says " + std::to_string(planned) + " bytes, " +
                         std::to_string(sink.offset()) + " were written");
  LLMC_RETURN_IF_ERROR(sink.flush());
  LLMC_RETURN_IF_ERROR(file.close());
  return Section{weightsFile, planned, sink.hash()};
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

Status writeArtifact(const ArtifactContents &contents, const std::string &outputFolder) {
  LLMC_RETURN_IF_ERROR(checkContents(contents, outputFolder));
  uint64_t expectedBytes = contents.program.size() + contents.manifest.weightsBytes;
  for (const ArtifactFile &file : contents.files)
    expectedBytes += file.bytes.size();
  LLMC_ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::create(outputFolder, manifestFile, expectedBytes));
  Manifest manifest = contents.manifest;
  manifest.sections.clear();
  auto add = [&](StatusOr<Section> section) {
    if (section.ok())
      manifest.sections.push_back(std::move(*section));
    return section.ok() ? Status() : section.status();
  };
  LLMC_RETURN_IF_ERROR(add(writeSection(folder, programFile, contents.program)));
  LLMC_RETURN_IF_ERROR(add(writeWeights(contents, folder)));
  for (const ArtifactFile &file : contents.files)
    LLMC_RETURN_IF_ERROR(add(writeSection(folder, file.file, file.bytes)));
  sortByName(manifest.sections);
  LLMC_RETURN_IF_ERROR(checkManifest(manifest, outputFolder));
  LLMC_RETURN_IF_ERROR(folder.writeFile(manifestFile, manifestText(manifest)));
  return folder.commit();
}

} // namespace llmc
