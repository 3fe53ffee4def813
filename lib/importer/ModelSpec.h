// ModelSpec: one model as plain facts, after the description in models/ has been applied to a config.json or to GGUF
// metadata. Everything downstream (IR, plans, reports) reads this and no config key. No tensor data, no family names.
#pragma once
#include "lib/importer/WeightSource.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

// What the model computes with: the sources joined, then `add` to every element (norms stored around zero).
struct WeightSpec {
  std::string name; // "embedding", "layers.3.attention.query", "layers.3.attention.query.bias", "final_norm", "head"
  std::vector<int64_t> shape; // linear: [out, in], of experts or heads: [E, out, in]
  std::vector<WeightSource> sources;
  double add = 0.0;
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

enum class QkNorm { None, PerHead, WholeWidth };

struct AttentionSpec {
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  double scale = 0.0;
  double softcap = 0.0; // 0: none. scores = softcap * tanh(scores / softcap)
  int64_t window = 0;   // 0: full. A query sees itself and the window - 1 positions before it
  int rope = -1;        // index into ModelSpec::ropes, -1: no position embedding
  QkNorm qkNorm = QkNorm::None;
  double qkNormEps = 0.0;
  bool qkvBias = false, outputBias = false;
  bool operator==(const AttentionSpec &) const = default;
};

struct GatedMlpSpec {
  int64_t intermediate = 0;
  std::string activation; // silu, gelu_tanh, gelu
  bool bias = false;
  bool operator==(const GatedMlpSpec &) const = default;
};

// h += residualScale * [post](mixer([pre] h)), twice. A norm that is absent is the identity.
struct LayerSpec {
  bool preAttentionNorm = true, postAttentionNorm = false, preMlpNorm = true, postMlpNorm = false;
  double residualScale = 1.0;
  AttentionSpec attention;
  GatedMlpSpec mlp;
  // Layers that are equal are of one kind: they share a function.
  bool operator==(const LayerSpec &) const = default;
};

// A fact that was read, for the import report.
struct Fact {
  std::string name;   // head_dim
  std::string value;  // 64
  std::string origin; // "stated as /head_dim", "computed: hidden_size / num_attention_heads", "class default"
};

struct ModelSpec {
  std::string family, architecture;
  int64_t hidden = 0, vocabulary = 0, context = 0;
  double normEps = 0.0;
  double embeddingScale = 1.0;
  bool embeddingScaleRounded = false; // the multiplier is rounded to bfloat16 first, as the family publishes it
  double logitScale = 1.0;            // logits = logitScale * (head . x), before the softcap
  double logitSoftcap = 0.0;
  bool tiedHead = false;       // the head is the weight "embedding"; no weight "head" exists
  bool tiedHeadStated = false; // by the model itself, not by its class's default
  std::string tiedHeadTensor;  // where a tied head may be stored a second time
  std::string weightType;      // of the stored weights, as the config words it ("bfloat16"); headers know better
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  // Every weight, in the order of the forward pass. Names of layer i: "layers.i." + attention_norm, attention.query,
  // attention.key, attention.value, attention.output (each with ".bias" where the spec says so), attention.query_norm,
  // attention.key_norm, attention_post_norm, mlp_norm, mlp.gate, mlp.up, mlp.down, mlp_post_norm.
  std::vector<WeightSpec> weights;
  // Other published spellings of a name's beginning: `first` in a source may be found as `second` in the files.
  std::vector<std::pair<std::string, std::string>> otherPrefixes;
  std::vector<std::string> ignorableTensors; // stored beside the weights and not needed; `*` matches any text
  std::string quantization;                  // how the files pack weights ("awq", …), empty: as plain tensors
  std::string quantizationDetails;           // the config object that says so, as JSON text
  std::vector<Fact> facts;
  std::vector<std::string> ignoredKeys, unknownKeys, notes;
};

} // namespace llmc
