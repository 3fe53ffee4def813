// Loader: opens an artifact folder, believes nothing in it before it is checked, and hands out the mapped weights and
// the step function. One thread loads; what is loaded is read-only and may be read by any thread.
#pragma once
#include "runtime/artifact/Dispatch.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/llmc_abi.h"
#include "runtime/support/File.h"
#include <memory>
#include <span>

namespace llmc {

// When the hash of the weights, by far the largest section, is compared: at once, or by checkWeights, which the caller
// promises to call before it uses them.
enum class WeightsCheck { AtOnce, ByCaller };

class LoadedArtifact {
public:
  // Checks, in this order: the manifest, size and hash of every section, the CPU features, the program's ABI. Messages
  // start with the file that is at fault. `rank` is a number of those that share the artifact.
  static StatusOr<LoadedArtifact> open(const std::string &folder, WeightsCheck check = WeightsCheck::AtOnce,
                                       int32_t rank = 0);
  // The same up to the section hashes; the program is not opened and CPU features may be missing. For tools that
  // inspect.
  static StatusOr<LoadedArtifact> openForInspection(const std::string &folder,
                                                    WeightsCheck check = WeightsCheck::AtOnce, int32_t rank = 0);

  const std::string &folder() const { return folder_; }
  const Manifest &manifest() const { return manifest_; }
  // Page aligned, so every weight is at a multiple of artifactAlignment. Valid as long as this object lives.
  std::span<const uint8_t> weights() const { return weights_->bytes(); }
  // Compares the hash of the weights, or of a copy of them, in hex. The message does not name the folder.
  Status checkWeights(const std::string &hash) const;
  // The memory behind a range of weights is given back until they are read again: for a caller that has its own copy.
  void dropWeightPages(size_t offset, size_t size) const { weights_->dropPages(offset, size); }
  // Brings a range of weights into memory at once, instead of page by page.
  void populateWeightPages(size_t offset, size_t size) const { weights_->populatePages(offset, size); }
  // Null after openForInspection.
  llmc_step_function step() const { return step_; }
  // A section as text: tokenizer, template, this rank's dispatch manifest. Hashed again on the way: the file may have
  // changed.
  StatusOr<std::string> readSection(std::string_view file) const;
  StatusOr<DispatchManifest> readDispatch() const;

private:
  LoadedArtifact() = default;
  Status openProgram();

  struct CloseProgram {
    void operator()(void *handle) const;
  };
  std::string folder_;
  Manifest manifest_;
  std::optional<MappedFile> weights_;
  std::unique_ptr<void, CloseProgram> program_;
  llmc_step_function step_ = nullptr;
};

} // namespace llmc
