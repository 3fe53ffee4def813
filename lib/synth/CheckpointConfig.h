// The config.json of a synthetic checkpoint: the published one, with what its weights will not have taken out.
#pragma once
#include "lib/importer/ModelDescription.h"

namespace llmc {

struct CheckpointConfigChanges {
  int64_t layers = 0;     // keep the first so many; 0: all
  std::string weightType; // as configs spell it ("bfloat16"); empty: as it is
};

struct CheckpointConfig {
  Json config;
  std::vector<std::string> notes; // what was taken out, a sentence each
};

// Shortens the number of layers and every list with an entry per layer that the description names, states the type of
// the weights, and drops the statement of how they were packed: the weights will be plain tensors.
StatusOr<CheckpointConfig> checkpointConfig(const ModelDescription &family, Json config,
                                            const CheckpointConfigChanges &changes);

} // namespace llmc
