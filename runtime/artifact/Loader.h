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

class LoadedArtifact {
public:
  // Checks, in this order: the manifest, the CPU features, size and hash of every section, the program's ABI. Messages
  // start with the file that is at fault.
  static StatusOr<LoadedArtifact> open(const std::string &folder);
  // The same up to the section hashes; the program is not opened and CPU features may be missing. For tools that
  // inspect.
  static StatusOr<LoadedArtifact> openForInspection(const std::string &folder);

  const std::string &folder() const { return folder_; }
  const Manifest &manifest() const { return manifest_; }
  // Page aligned, so every weight is at a multiple of artifactAlignment. Valid as long as this object lives.
  std::span<const uint8_t> weights() const { return weights_->bytes(); }
  // The memory behind a range of weights is given back until they are read again: for a caller that has its own copy.
  void dropWeightPages(size_t offset, size_t size) const { weights_->dropPages(offset, size); }
  // Null after openForInspection.
  llmc_step_function step() const { return step_; }
  // A section as text: tokenizer, template, dispatch manifest. Hashed again on the way: the file may have changed.
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
