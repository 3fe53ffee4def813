// WeightCatalog: the weights of a model, declared as the wiring uses them, with the published tensors they come from.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "lib/importer/ValueReader.h"
#include <unordered_map>

namespace llmc {

class WeightCatalog {
public:
  WeightCatalog(ValueReader &values, ModelSpec &spec);

  // The weight `name` of a layer (negative: of none), as the description publishes it; its full name. Used again, it
  // must have the same shape. `lookup` answers expressions of the weight's rule.
  StatusOr<std::string> declare(const std::string &name, int64_t layer, const std::vector<int64_t> &shape, double add,
                                const ScalarLookup &lookup);
  // Whether the description publishes a weight of that name.
  bool knows(const std::string &name) const;
  // The published tensor of a weight outside of the layers.
  StatusOr<std::string> published(const std::string &name);

private:
  StatusOr<const WeightRule *> ruleOf(const std::string &name) const;
  StatusOr<std::vector<WeightSource>> sourcesOf(const std::string &name, const WeightRule &rule, int64_t layer,
                                                const ScalarLookup &lookup) const;
  StatusOr<WeightSource> sourceOf(const WeightRule::Source &rule, int64_t layer, const ScalarLookup &lookup) const;

  ValueReader &values_;
  ModelSpec &spec_;
  std::map<std::string, std::string> prefixes_;
  std::unordered_map<std::string, size_t> at_; // of spec.weights, by full name
};

} // namespace llmc
