// Evaluates the blocks of a description for one model: `begin()`, then `layer(h)` for every layer, then `finish(h)`.
// Layers whose graphs are equal become one function.
#pragma once
#include "lib/importer/LayerFacts.h"
#include "lib/importer/WeightCatalog.h"

namespace llmc {

// Fills spec.graph, spec.ropes and spec.weights.
Status wireModel(const ModelDescription &description, ValueReader &values, const LayerFacts &facts, ModelSpec &spec);

} // namespace llmc
