// The memory that a model takes on one rank, without weights or machine code.
#pragma once
#include "tools/llmc/Compile.h"
#include <cstdint>
#include <string>

namespace llmc {

struct MemoryPlan {
  // Bytes; collectives are rows that ranks exchange.
  uint64_t weights = 0, activations = 0, scratch = 0, kv = 0, state = 0, logits = 0, staging = 0, collectives = 0;
  // Of the weights, the stacks of experts, and what one token reads of them.
  uint64_t experts = 0, expertsPerToken = 0;
  uint64_t total() const { return weights + withoutWeights(); }
  uint64_t withoutWeights() const { return activations + scratch + kv + state + logits + staging + collectives; }
  // What every token needs. Experts may stay in the file until they are chosen.
  uint64_t resident() const { return total() - experts; }
  ArtifactLimits limits;
  int64_t workers = 1; // scratch is that of all of them
  // "" where the numbers are those that `llmc compile` allocates; else why they are an estimate.
  std::string estimatedBecause;
};

// Of the artifact that compileModel would write; where a kernel is missing, of one that had it: weights in their form,
// caches and states as the model has them, rows that are needed at once.
StatusOr<MemoryPlan> planMemoryOf(const Model &model, const CompileOptions &options, int64_t workers);

// Bytes of a weight in the form that --weights names, without packing it.
uint64_t weightBytes(const ModelSpec &spec, const WeightSpec &weight, const std::string &form);
double cacheElementBytes(const CompileOptions &options);

// The estimate alone, for the same reason.
StatusOr<MemoryPlan> estimateMemoryOf(const Model &model, const CompileOptions &options, int64_t workers,
                                      std::string reason);

} // namespace llmc
