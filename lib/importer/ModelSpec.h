// ModelSpec: one model as plain facts, after the description in models/ has been applied to a config.json or to GGUF
// metadata. Everything downstream (IR, plans, reports) reads this and no config key. No tensor data, no family names.
#pragma once
#include "lib/importer/Graph.h"
#include "lib/importer/WeightSource.h"
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

// What the model computes with: the sources below each other, then `add` to every element (norms stored around zero).
// Of a shape that the headers or the importer have bounded.
inline uint64_t elementsOf(const std::vector<int64_t> &shape) {
  uint64_t product = 1;
  for (int64_t size : shape)
    product *= static_cast<uint64_t>(size);
  return product;
}

struct WeightSpec {
  std::string name; // "embedding", "layers.3.attention.query", "layers.3.attention.query.bias", "final_norm", "head"
  std::vector<int64_t> shape; // linear: [out, in]; experts: [experts, out, in]
  std::vector<WeightSource> sources;
  double add = 0.0;
  // The ranges [begin, end) of each dimension that one rank of several has; empty: everything.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> taken = {};
};

// Angles of rotary position embedding: pair i of a head turns by position * frequencies[i]. Pairs are (i, i + width/2)
// of the first `2 * frequencies.size()` channels of a head; the rest passes unchanged. cos and sin are times magnitude.
struct RopeSpec {
  std::vector<float> frequencies;
  double magnitude = 1.0;
  // Some models publish a second set for long contexts: a program compiled for more than `longAfter` positions uses it
  // for every position instead. Empty: none.
  std::vector<float> longFrequencies;
  int64_t longAfter = 0;
};

// A fact that was read, for the import report.
struct Fact {
  std::string name;   // head_dim
  std::string value;  // 64
  std::string origin; // "stated as /head_dim", "computed: hidden_size / num_attention_heads", "class default"
};

// What is known and not run.
struct MissingPart {
  std::string name; // "vision: patch embedding", or a pattern of tensor names
  std::string reason;
};

// A part of the published model that is not run, as published tensors.
struct PartTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string type; // "I64"; empty: that of the model's weights
};
struct ModelPart {
  std::string name; // "vision"
  std::string prefix; // of names that belong to it, listed or not; may be empty
  std::vector<PartTensor> tensors;
};

struct ModelSpec {
  std::string family, architecture;
  int64_t layers = 0, hidden = 0, vocabulary = 0, context = 0;
  bool tiedHead = false;       // the head is the weight "embedding"; no weight "head" exists
  bool tiedHeadStated = false; // by the model itself, not by its class's default
  std::string tiedHeadTensor;  // where a tied head may be stored a second time
  std::string weightType;      // of the stored weights, as the config words it ("bfloat16"); headers know better
  std::map<std::string, RopeSpec> ropes; // by the description's name, those that the wiring uses
  ModelGraph graph;
  // Every weight, in the order in which the wiring first uses them. Those of layer i are called "layers.i." and their
  // name in the description, biases like their weight and ".bias".
  std::vector<WeightSpec> weights;
  // Other published spellings of a name's beginning: `first` in a source may be found as `second` in the files.
  std::vector<std::pair<std::string, std::string>> otherPrefixes;
  std::vector<std::string> ignorableTensors; // stored beside the weights and not needed; `*` matches any text
  std::string quantization;                  // how the files pack weights ("awq", …), empty: as plain tensors
  std::string quantizationDetails;           // the config object that says so, as JSON text
  std::vector<Fact> facts;
  std::vector<std::string> ignoredKeys, unknownKeys, notes;
  std::vector<MissingPart> missing;
  std::vector<ModelPart> parts;
  // False: the model is known and not run, all of it.
  bool isWired() const { return !graph.kinds.empty(); }
};

} // namespace llmc
