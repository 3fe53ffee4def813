// What a path given as a model holds: its weight files and tensors, found and cross-checked from names and headers
// alone.
#pragma once
#include "lib/importer/files/ModelFiles.h"
#include <optional>

namespace llmc {

struct ModelListing {
  std::string path;       // as given
  std::string folder;     // where side files lie; empty for GGUF and for a config alone
  std::string configPath; // empty when there is no config
  std::vector<std::string> weightFiles;
  std::vector<uint64_t> weightFileBytes; // their sizes when the headers were read
  std::vector<ModelTensor> tensors;      // sorted by name, names differ
  std::optional<GgufMetadata> gguf;
  std::vector<std::string> warnings;
};

StatusOr<ModelListing> listModel(const std::string &path);

} // namespace llmc
