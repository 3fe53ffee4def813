// The parts of a published model that are known and not run, such as an image tower: which tensors they have, and what
// would have to be computed.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "lib/importer/ValueReader.h"

namespace llmc {

// Adds the parts that the config says the model has, and their operators to what is missing.
Status resolveParts(ValueReader &values, ModelSpec &spec);

// Whether a stored name belongs to one of them, described or not.
bool belongsToPart(const ModelSpec &spec, std::string_view tensor);

} // namespace llmc
