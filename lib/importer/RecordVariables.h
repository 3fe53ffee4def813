// Lets whoever compares numbers see any value that a wiring gives a name.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "runtime/support/Status.h"

namespace llmc {

// Records of a step that show its stream: after the embedding, after each layer, after the final norm.
inline int64_t streamRecords(const ModelSpec &spec) { return spec.layers + 2; }

// Adds a record, streamRecords + i, of names[i]: "LAYER.BLOCK.VARIABLE" (layers from 0), "LAYER.BLOCK" for the value of
// a block, without a layer in `begin` and `finish`; behind it "@N" is the Nth value of that name, else the first. Layer
// "*" is every layer that has the name. Returns the names, those of such layers one by one. A layer with records
// becomes a kind of its own.
StatusOr<std::vector<std::string>> recordVariables(ModelSpec &spec, const std::vector<std::string> &names);

} // namespace llmc
