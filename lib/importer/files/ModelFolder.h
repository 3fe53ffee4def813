// What a path given as a model holds: its weight files and tensors, found and cross-checked from names and headers
// alone.
#pragma once
#include "lib/importer/files/ModelFiles.h"
#include "runtime/support/File.h"
#include <optional>

namespace llmc {

struct ModelListing {
  std::string path;       // as given
  std::string folder;     // where side files lie; empty for GGUF and for a config alone
  std::string configPath; // empty when there is no config
  std::vector<std::string> weightFiles;
  std::vector<FileIdentity> identities;         // of the weight files, from before their headers were read
  std::vector<ModelTensor> tensors;             // sorted by name, names differ
  std::vector<std::string> namesWithoutWeights; // from an index none of whose shards is there; sorted
  std::optional<GgufMetadata> gguf;
  Status weights; // why there are none
  std::vector<std::string> warnings;
};

StatusOr<ModelListing> listModel(const std::string &path);

} // namespace llmc
