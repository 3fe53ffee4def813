#include "runtime/artifact/Loader.h"
#include "runtime/support/CpuFeatures.h"
#include "runtime/support/Hash.h"
#include "runtime/support/Limits.h"
#include <cstdlib>
#include <dlfcn.h>

namespace llmc {
namespace {

Status checkSize(const Section &section, std::span<const uint8_t> bytes) {
  if (bytes.size() != section.bytes)
    return Status::error("section '" + section.file + "': has " + std::to_string(bytes.size()) +
                         " bytes, the manifest says " + std::to_string(section.bytes) + "; compile it again");
  return {};
}

Status checkHash(const Section &section, const std::string &hash) {
  if (hash != section.hash)
    return Status::error("section '" + section.file + "': checksum differs: " + section.hash + " stored, " + hash +
                         " found; compile it again");
  return {};
}

Status checkBytes(const Section &section, std::span<const uint8_t> bytes) {
  LLMC_RETURN_IF_ERROR(checkSize(section, bytes));
  return checkHash(section, hashHex(bytes));
}

// The size is compared before the bytes are read, and the file is asked again after: a cut file faults.
StatusOr<MappedFile> openSection(const std::string &folder, const Section &section, bool hashed) {
  LLMC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(folder + "/" + section.file));
  auto check = hashed ? checkBytes : checkSize;
  LLMC_RETURN_IF_ERROR(check(section, file.bytes()).inside(folder));
  LLMC_RETURN_IF_ERROR(file.checkUnchanged());
  return file;
}

} // namespace

void LoadedArtifact::CloseProgram::operator()(void *handle) const { ::dlclose(handle); }

StatusOr<LoadedArtifact> LoadedArtifact::openForInspection(const std::string &folder, WeightsCheck check,
                                                           int32_t rank) {
  if (!isFolder(folder))
    return Status::error(folder + ": no such folder; an artifact is the folder that llmc compile wrote");
  if (!fileExists(folder + "/" + manifestFile))
    return Status::error(folder + ": has no " + manifestFile + ", so it is no artifact; write one with llmc compile");
  LoadedArtifact artifact;
  artifact.folder_ = folder;
  const std::string file = folder + "/" + manifestFileOf(rank);
  LLMC_ASSIGN_OR_RETURN(std::string text, readFile(file, limits::manifestBytes));
  LLMC_ASSIGN_OR_RETURN(artifact.manifest_, parseManifest(text, file));
  if (artifact.manifest_.rank && artifact.manifest_.rank->number != rank)
    return Status::error(file + ": is the manifest of rank " + std::to_string(artifact.manifest_.rank->number) +
                         "; compile it again");
  for (const Section &section : artifact.manifest_.sections) {
    bool isWeights = section.file == artifact.manifest_.fileOf(weightsFile);
    LLMC_ASSIGN_OR_RETURN(MappedFile file, openSection(folder, section, !isWeights || check == WeightsCheck::AtOnce));
    if (isWeights)
      artifact.weights_ = std::move(file);
  }
  return artifact;
}

StatusOr<LoadedArtifact> LoadedArtifact::open(const std::string &folder, WeightsCheck check, int32_t rank) {
  LLMC_ASSIGN_OR_RETURN(LoadedArtifact artifact, openForInspection(folder, check, rank));
  LLMC_RETURN_IF_ERROR(checkCpuFeatures(artifact.manifest_.cpuFeatures, hostCpuFeatures()).inside(folder));
  LLMC_RETURN_IF_ERROR(requestCpuState(artifact.manifest_.cpuFeatures).inside(folder));
  LLMC_RETURN_IF_ERROR(artifact.openProgram().inside(folder));
  return artifact;
}

Status LoadedArtifact::checkWeights(const std::string &hash) const {
  LLMC_RETURN_IF_ERROR(checkHash(*manifest_.findSection(manifest_.fileOf(weightsFile)), hash));
  return weights_->checkUnchanged();
}

Status LoadedArtifact::openProgram() {
  const std::string name = manifest_.fileOf(programFile);
  // dlopen searches the library path for a name without a slash, so the path is made absolute.
  std::unique_ptr<char, decltype(&std::free)> path(::realpath((folder_ + "/" + name).c_str(), nullptr), &std::free);
  if (!path)
    return Status::error(name + ": cannot be opened");
  program_.reset(::dlopen(path.get(), RTLD_NOW | RTLD_LOCAL));
  if (!program_) {
    const char *reason = ::dlerror();
    return Status::error(name + ": " + (reason ? reason : "cannot be loaded") + "; compile it again");
  }
  const auto *version = static_cast<const int32_t *>(::dlsym(program_.get(), "llmc_abi_version"));
  if (!version)
    return Status::error(name + ": exports no llmc_abi_version; compile it again");
  if (*version != LLMC_ABI_VERSION || manifest_.abiVersion != LLMC_ABI_VERSION)
    return Status::error(name + ": step ABI " + std::to_string(*version) + ", the manifest says " +
                         std::to_string(manifest_.abiVersion) + ", this runtime has " +
                         std::to_string(LLMC_ABI_VERSION) + "; compile it again");
  step_ = reinterpret_cast<llmc_step_function>(::dlsym(program_.get(), "llmc_step"));
  if (!step_)
    return Status::error(name + ": exports no llmc_step; compile it again");
  return {};
}

StatusOr<std::string> LoadedArtifact::readSection(std::string_view file) const {
  const Section *section = manifest_.findSection(manifest_.fileOf(file));
  if (!section)
    return Status::error(folder_ + ": has no section '" + std::string(file) + "'");
  LLMC_ASSIGN_OR_RETURN(std::string text, readFile(folder_ + "/" + section->file, section->bytes));
  LLMC_RETURN_IF_ERROR(
      checkBytes(*section, {reinterpret_cast<const uint8_t *>(text.data()), text.size()}).inside(folder_));
  return text;
}

StatusOr<DispatchManifest> LoadedArtifact::readDispatch() const {
  LLMC_ASSIGN_OR_RETURN(std::string text, readSection(dispatchFile));
  return parseDispatch(text, folder_ + "/" + dispatchFile);
}

} // namespace llmc
