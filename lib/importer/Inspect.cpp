// Counting a ModelSpec. Sizes cannot overflow: dimensions and layers are bounded where they are read.
#include "lib/importer/Inspect.h"
#include <algorithm>
#include <map>

namespace llmc {
namespace {

constexpr uint64_t kvElementBytes = 2; // bfloat16

uint64_t elements(const std::vector<int64_t> &shape) {
  uint64_t product = 1;
  for (int64_t size : shape)
    product *= static_cast<uint64_t>(size);
  return product;
}

// Weight type of a config to the spelling of weight files, and its size.
std::pair<std::string, uint64_t> plainType(const std::string &word) {
  if (word == "float32" || word == "float")
    return {"F32", 4};
  if (word == "float16" || word == "half")
    return {"F16", 2};
  return {"BF16", 2};
}

class OperatorTally {
public:
  void add(const std::string &name, int64_t count) {
    if (count == 0)
      return;
    auto [it, isNew] = at_.emplace(name, counts_.size());
    if (isNew)
      counts_.push_back({name, 0});
    counts_[it->second].count += count;
  }
  std::vector<OperatorCount> take() { return std::move(counts_); }

private:
  std::vector<OperatorCount> counts_;
  std::map<std::string, size_t> at_;
};

std::string nameOfKind(const LayerSpec &layer) {
  std::string name = layer.attention.window != 0 ? "sliding_attention" : "full_attention";
  return layer.attention.rope < 0 ? name + "_no_rope" : name;
}

std::string withThousands(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t i = text.size(); i > 3;)
    text.insert(i -= 3, ",");
  return text;
}

} // namespace

ParameterCounts countParameters(const ModelSpec &spec) {
  ParameterCounts counts;
  for (const WeightSpec &weight : spec.weights)
    counts.total += elements(weight.shape);
  counts.active = counts.total;
  return counts;
}

std::vector<LayerKind> layerKinds(const ModelSpec &spec) {
  std::vector<LayerKind> kinds;
  std::vector<const LayerSpec *> examples;
  std::map<std::string, int> sameName;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec &layer = spec.layers[i];
    auto same = std::find_if(examples.begin(), examples.end(), [&](const LayerSpec *other) { return *other == layer; });
    if (same == examples.end()) {
      std::string name = nameOfKind(layer);
      int earlier = sameName[name]++;
      kinds.push_back({earlier == 0 ? name : name + "_" + std::to_string(earlier + 1), {}});
      examples.push_back(&layer);
      same = examples.end() - 1;
    }
    kinds[static_cast<size_t>(same - examples.begin())].at.push_back(static_cast<int64_t>(i));
  }
  return kinds;
}

std::vector<OperatorCount> countOperators(const ModelSpec &spec) {
  OperatorTally tally;
  tally.add("embedding", 1);
  tally.add("rope_table", static_cast<int64_t>(spec.ropes.size()));
  int64_t scales = (spec.embeddingScale != 1.0) + (spec.logitScale != 1.0);
  for (const LayerSpec &layer : spec.layers) {
    const AttentionSpec &a = layer.attention;
    tally.add("rms_norm", layer.preAttentionNorm + layer.postAttentionNorm + layer.preMlpNorm + layer.postMlpNorm +
                              (a.qkNorm == QkNorm::None ? 0 : 2));
    tally.add("linear", 7);
    tally.add("split_heads", 3);
    tally.add("rope", a.rope < 0 ? 0 : 2);
    tally.add("kv_append", 1);
    tally.add("attention", 1);
    tally.add("merge_heads", 1);
    tally.add("gated_activation", 1);
    tally.add("add", 2);
    scales += layer.residualScale != 1.0 ? 2 : 0;
  }
  tally.add("scale", scales);
  tally.add("rms_norm", 1);
  tally.add("select_rows", 1);
  tally.add("linear", 1);
  tally.add("softcap", spec.logitSoftcap != 0.0 ? 1 : 0);
  return tally.take();
}

uint64_t stateBytesPerToken(const ModelSpec &spec) {
  uint64_t bytes = 0;
  for (const LayerSpec &layer : spec.layers)
    bytes += 2 * static_cast<uint64_t>(layer.attention.kvHeads * layer.attention.headDim) * kvElementBytes;
  return bytes;
}

Json inspectToJson(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  std::map<std::string, const StoredTensor *> byName;
  for (const StoredTensor &tensor : stored)
    byName[tensor.name] = &tensor;
  auto [type, typeBytes] = plainType(spec.weightType);
  uint64_t bytes = 0;
  Json tensors = Json::array();
  for (const ExpectedTensor &expected : expectedTensors(spec)) {
    auto it = byName.find(expected.name);
    bytes += it != byName.end() ? it->second->bytes : elements(expected.shape) * typeBytes;
    tensors.push_back(
        {{"name", expected.name}, {"shape", expected.shape}, {"type", it != byName.end() ? it->second->type : type}});
  }
  Json layers = Json::array(), operators = Json::array(), facts = Json::array();
  for (const LayerKind &kind : layerKinds(spec))
    layers.push_back({{"kind", kind.name}, {"count", kind.at.size()}, {"at", kind.at}});
  for (const OperatorCount &op : countOperators(spec))
    operators.push_back({{"op", op.name}, {"count", op.count}});
  for (const Fact &fact : spec.facts)
    facts.push_back({{"name", fact.name}, {"value", fact.value}, {"origin", fact.origin}});
  ParameterCounts counts = countParameters(spec);
  const AttentionSpec &attention = spec.layers.front().attention;
  Json json;
  json["family"] = spec.family;
  json["architecture"] = spec.architecture;
  json["parameters"] = {{"total", counts.total}, {"active", counts.active}};
  json["bytes"] = bytes;
  json["layers"] = layers;
  json["hidden"] = spec.hidden;
  json["vocabulary"] = spec.vocabulary;
  json["context"] = spec.context;
  json["heads"] = attention.heads;
  json["kv_heads"] = attention.kvHeads;
  json["head_dim"] = attention.headDim;
  json["experts"] = 0;
  json["latent_attention"] = false;
  json["tied_head"] = spec.tiedHead;
  json["operators"] = operators;
  json["state"] = {{"bytes_per_token", stateBytesPerToken(spec)}, {"bytes_per_sequence", 0}};
  json["tensors"] = tensors;
  json["ignored_keys"] = spec.ignoredKeys;
  json["unknown_keys"] = spec.unknownKeys;
  json["facts"] = facts;
  json["notes"] = spec.notes;
  return json;
}

std::string inspectToText(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  Json json = inspectToJson(spec, stored);
  const AttentionSpec &attention = spec.layers.front().attention;
  std::string text = spec.family + " (" + spec.architecture + ")\n";
  auto line = [&](const std::string &name, const std::string &value) {
    text += "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + value + "\n";
  };
  line("parameters", withThousands(countParameters(spec).total));
  line("bytes", withThousands(json["bytes"].get<uint64_t>()));
  line("hidden", std::to_string(spec.hidden) + ", vocabulary " + std::to_string(spec.vocabulary) + ", context " +
                     std::to_string(spec.context));
  line("heads", std::to_string(attention.heads) + ", key and value " + std::to_string(attention.kvHeads) + ", " +
                    std::to_string(attention.headDim) + " channels each");
  for (const LayerKind &kind : layerKinds(spec))
    line("layers", std::to_string(kind.at.size()) + " x " + kind.name);
  std::string operators;
  for (const OperatorCount &op : countOperators(spec))
    operators += (operators.empty() ? "" : ", ") + op.name + " " + std::to_string(op.count);
  line("operators", operators);
  line("state", withThousands(stateBytesPerToken(spec)) + " bytes per token");
  for (const Fact &fact : spec.facts)
    line("fact", fact.name + " = " + fact.value + " (" + fact.origin + ")");
  for (const std::string &note : spec.notes)
    line("note", note);
  for (const std::string &key : spec.unknownKeys)
    line("unknown", key);
  return text;
}

} // namespace llmc
