// The angles of rotary position embedding, from a description's rope and a source.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "lib/importer/ValueReader.h"

namespace llmc {

// `name` ("full", "sliding") marks the recorded facts. Tensors that were read are appended to `used`.
StatusOr<RopeSpec> resolveRope(const RopeRule &rule, const std::string &name, ValueReader &values,
                               std::vector<std::string> &used);

// theta^(-2i / width) in float32, one rounding per step, as published implementations compute it.
std::vector<float> plainFrequencies(double theta, int64_t width);

} // namespace llmc
