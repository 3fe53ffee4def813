// Facts that differ from layer to layer: which slide, which turn, which mix how. Each is a number or a word per layer.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "lib/importer/ValueReader.h"

namespace llmc {

using LayerFacts = std::map<std::string, std::vector<Scalar>>;

// Reads every entry of `per_layer`. Rows may name other entries, the values of the description, and `layer`.
StatusOr<LayerFacts> resolveLayerFacts(ValueReader &values, int64_t layers, ModelSpec &spec);

} // namespace llmc
