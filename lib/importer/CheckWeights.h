// Does what the files hold fit the model? Every weight has its source in the right shape, and nothing is left over.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "runtime/support/Status.h"
#include <functional>
#include <string_view>

namespace llmc {

// A tensor as the weight headers list it; shape as torch has it, last dimension contiguous.
struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string type; // "BF16", "Q4_K"
  uint64_t bytes = 0;
};

// A published tensor that the model needs: whole, also where weights take a part of it.
struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool isView = false; // the weight sees so many elements as this shape; they may be stored as another
  std::string type = {}; // always published in this one; empty: in that of the model's weights
};
// In the order of the forward pass, each once.
std::vector<ExpectedTensor> expectedTensors(const ModelSpec &spec);

// Tensors that differ only in the number of their expert: the name of the source has `expertPlaceholder` for it.
struct ExpectedGroup {
  WeightSource source;
  std::vector<int64_t> shape; // of each
};
// The same tensors, a group at a time: models have a few thousand groups of hundreds of thousands of tensors.
std::vector<ExpectedGroup> expectedGroups(const ModelSpec &spec);

// Whether `name` is what `pattern` says; `*` stands for any text.
bool matchesPattern(std::string_view pattern, std::string_view name);

// Whether two stored tensors hold the same values.
using TensorsEqual = std::function<StatusOr<bool>(const std::string &, const std::string &)>;

// Settles what only the files can: which spelling of the names is used, and whether the head is tied where the config
// does not say. Then checks. Without `equal`, a tied head that is stored too is taken on trust, with a note.
Status checkWeights(ModelSpec &spec, const std::vector<StoredTensor> &stored, const TensorsEqual &equal = nullptr);

} // namespace llmc
