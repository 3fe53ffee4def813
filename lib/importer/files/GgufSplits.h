// GGUF models cut into several files: NAME-00001-of-00003.gguf and so on.
#pragma once
#include "lib/importer/files/Gguf.h"
#include <string>
#include <vector>

namespace llmc {

// All files of the model whose first file is `path`, that file included: one, unless its metadata speaks of splits. An
// error if the file is not the first split, or its name is not what the splits' names are made from.
StatusOr<std::vector<std::string>> ggufSplits(const std::string &path, const GgufMetadata &metadata);

} // namespace llmc
