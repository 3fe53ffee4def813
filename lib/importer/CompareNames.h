// The tensor names that a description expects of a config, against those of a weight index.
#pragma once
#include "lib/importer/ModelSpec.h"
#include <set>
#include <string>
#include <vector>

namespace llmc {

// Names that differ in their numbers only, in one finding.
struct NameDifference {
  bool isExpected;     // and not there; else there and not expected
  std::string pattern; // numbers are `*`
  std::string example;
  size_t count;
};
// Ordered by kind and pattern; empty when the names agree. What stands for a packed weight (codes, scales) counts as
// the weight where the config says that weights are packed.
std::vector<NameDifference> compareNames(const ModelSpec &spec, const std::set<std::string> &stored);

} // namespace llmc
