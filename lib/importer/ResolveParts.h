// The parts of resolveModel: layers and their pattern, weights and their published names.
#pragma once
#include "lib/importer/ModelDescription.h"
#include "lib/importer/ModelSpec.h"
#include "lib/importer/ValueReader.h"

namespace llmc {

// Fills spec.ropes and spec.layers.
Status resolveLayers(const ModelDescription &description, ValueReader &values, ModelSpec &spec);

// Fills spec.weights, spec.otherPrefixes and spec.ignorableTensors; needs spec.layers.
Status resolveWeights(const ModelDescription &description, ValueReader &values, ModelSpec &spec);

} // namespace llmc
