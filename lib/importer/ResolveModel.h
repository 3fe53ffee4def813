// From a model's own config and the description of its family to ModelSpec.
#pragma once
#include "lib/importer/ConfigSource.h"
#include "lib/importer/ModelDescription.h"
#include "lib/importer/ModelSpec.h"
#include "runtime/support/Status.h"

namespace llmc {

// What to do with keys that no description mentions and that say something: they may change the maths.
enum class UnknownKeys { Refuse, Report };

StatusOr<ModelSpec> resolveModel(const ModelDescriptions &descriptions, const ConfigSource &source,
                                 UnknownKeys unknownKeys = UnknownKeys::Refuse);

// The family that serves the source's architecture, or an error with the nearest name and all known ones.
StatusOr<const ModelDescription *> selectFamily(const ModelDescriptions &descriptions, const ConfigSource &source);

} // namespace llmc
