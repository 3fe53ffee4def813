// What a model is made of, counted from its ModelSpec: parameters, kinds of layers, operators, state.
#pragma once
#include "lib/importer/CheckWeights.h"
#include "lib/importer/ModelSpec.h"
#include "runtime/support/Json.h"

namespace llmc {

// The type of plain weights that the config states, in the spelling of weight files: F32, F16 or BF16.
std::string plainTypeOf(const ModelSpec &spec);

struct ParameterCounts {
  uint64_t total = 0;  // each stored once: a tied head adds nothing; with the parts that are not run
  uint64_t text = 0;   // of the text model alone
  uint64_t active = 0; // that one token multiplies by: of an embedding that is no head it reads a row
};
ParameterCounts countParameters(const ModelSpec &spec);

struct LayerKind {
  std::string name; // "sliding_attention", "full_attention_no_rope"
  std::vector<int64_t> at;
};
// Kinds in the order of their first layer; layers of a kind differ in weights only.
std::vector<LayerKind> layerKinds(const ModelSpec &spec);

struct OperatorCount {
  std::string name; // of the llm dialect
  int64_t count;
};
// One step of the model as imported, before anything is fused; in the order of first use.
std::vector<OperatorCount> countOperators(const ModelSpec &spec);

struct StateBytes {
  uint64_t perToken = 0;    // caches, as bfloat16
  uint64_t perSequence = 0; // recurrent states, as float32; past inputs of convolutions as bfloat16
  uint64_t recurrentElements = 0; // of both
};
StateBytes stateBytes(const ModelSpec &spec);

// The object of `llmc inspect --json`. With the headers of the files, types and bytes are what is stored.
Json inspectToJson(const ModelSpec &spec, const std::vector<StoredTensor> &stored = {});
// Its text, fast also for a config of half a million tensors.
std::string inspectToJsonText(const ModelSpec &spec, const std::vector<StoredTensor> &stored = {});
// The same for people, a few lines.
std::string inspectToText(const ModelSpec &spec, const std::vector<StoredTensor> &stored = {});

} // namespace llmc
