// A model as published, opened, to its facts: the source for its format, resolved, and checked against its headers.
#pragma once
#include "lib/importer/CheckWeights.h"
#include "lib/importer/ConfigSource.h"
#include "lib/importer/GenerationFacts.h"
#include "lib/importer/ResolveModel.h"
#include "lib/importer/files/ModelFiles.h"
#include <memory>

namespace llmc {

// config.json or GGUF metadata of `files`, with the names of the stored tensors. `files` must outlive it.
StatusOr<std::unique_ptr<ConfigSource>> openConfig(const ModelFiles &files);

std::vector<StoredTensor> storedTensors(const ModelFiles &files);

// Resolves the model and, where there are weights, checks them. Reads headers and, for a tied head that is stored a
// second time, the two tensors.
StatusOr<ModelSpec> readModel(const ModelDescriptions &descriptions, const ModelFiles &files,
                              UnknownKeys unknownKeys = UnknownKeys::Refuse);

StatusOr<GenerationFacts> readGenerationFacts(const ModelFiles &files);

} // namespace llmc
