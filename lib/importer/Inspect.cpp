// Counting a ModelSpec. Sizes cannot overflow: dimensions and layers are bounded where they are read.
#include "lib/importer/Inspect.h"
#include "lib/importer/StoredForms.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

namespace llmc {
namespace {

constexpr uint64_t activationBytes = 2; // what caches and convolutions keep, as bfloat16
constexpr uint64_t sumBytes = 4;        // what recurrences add up, as float32

uint64_t plainBytes(const std::string &type) { return type == "F32" ? 4 : 2; }

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

uint64_t partElements(const ModelPart &part) {
  uint64_t elements = 0;
  for (const PartTensor &tensor : part.tensors)
    elements += elementsOf(tensor.shape);
  return elements;
}

std::string withThousands(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t i = text.size(); i > 3;)
    text.insert(i -= 3, ",");
  return text;
}

} // namespace

std::string plainTypeOf(const ModelSpec &spec) {
  if (spec.weightType == "float32" || spec.weightType == "float")
    return "F32";
  return spec.weightType == "float16" || spec.weightType == "half" ? "F16" : "BF16";
}

ParameterCounts countParameters(const ModelSpec &spec) {
  // Of experts a token meets those that its router chose.
  std::map<std::string, std::pair<uint64_t, uint64_t>> share; // weight -> chosen of all
  for (const GraphFunction &kind : spec.graph.kinds)
    for (const GraphNode &node : kind.nodes)
      if (node.op == "expert_linear")
        for (int operand : node.operands)
          if (const GraphValue &weight = kind.values[static_cast<size_t>(operand)];
              weight.kind == GraphValue::Kind::Weight)
            share[weight.name] = {kind.values[static_cast<size_t>(node.results.front())].heads, weight.shape.front()};
  ParameterCounts counts;
  for (const WeightSpec &weight : spec.weights) {
    if (std::all_of(weight.sources.begin(), weight.sources.end(), [](const WeightSource &s) { return s.isConstant(); }))
      continue; // the description's, not the model's
    uint64_t all = elementsOf(weight.shape);
    counts.total += all;
    size_t dot = weight.name.rfind("layers.", 0) == 0 ? weight.name.find('.', 7) : std::string::npos;
    if (weight.name == "embedding" && !spec.tiedHead)
      continue; // a token reads one row of it
    auto found = share.find(dot == std::string::npos ? weight.name : weight.name.substr(dot + 1));
    counts.active += found == share.end() ? all : all / found->second.second * found->second.first;
  }
  counts.text = counts.total;
  for (const ModelPart &part : spec.parts)
    counts.total += partElements(part);
  return counts;
}

std::vector<LayerKind> layerKinds(const ModelSpec &spec) {
  std::vector<LayerKind> kinds;
  for (const GraphFunction &kind : spec.graph.kinds)
    kinds.push_back({kind.name, {}});
  for (size_t i = 0; i < spec.graph.kindOfLayer.size(); ++i)
    kinds[static_cast<size_t>(spec.graph.kindOfLayer[i])].at.push_back(static_cast<int64_t>(i));
  return kinds;
}

std::vector<OperatorCount> countOperators(const ModelSpec &spec) {
  const GraphFunction &step = spec.graph.step;
  // Records are for people who look into a model; what is made for them alone is no part of it.
  std::set<int> used(step.results.begin(), step.results.end());
  for (const GraphNode &node : step.nodes)
    if (node.op != "record")
      used.insert(node.operands.begin(), node.operands.end());
  OperatorTally tally;
  for (const GraphNode &node : step.nodes) {
    if (node.op != "call") {
      bool counts =
          std::any_of(node.results.begin(), node.results.end(), [&](int result) { return used.count(result) != 0; });
      tally.add(node.op, counts);
      continue;
    }
    for (const GraphNode &inner :
         spec.graph.kinds[static_cast<size_t>(std::get<int64_t>(node.attributes.at("kind")))].nodes)
      tally.add(inner.op, 1);
  }
  return tally.take();
}

StateBytes stateBytes(const ModelSpec &spec) {
  StateBytes bytes;
  for (const GraphValue &value : spec.graph.step.values)
    if (value.kind == GraphValue::Kind::State) {
      uint64_t count = static_cast<uint64_t>(value.state.elements());
      const uint64_t every = static_cast<uint64_t>(value.state.every);
      if (value.state.isCache)
        bytes.perToken += (count * activationBytes + every - 1) / every;
      else
        bytes.perSequence += count * (value.state.inputs ? activationBytes : sumBytes);
      bytes.recurrentElements += value.state.isCache ? 0 : count;
    }
  return bytes;
}

namespace {

// The numbers people know a model by.
struct Headline {
  int64_t heads = 0, kvHeads = 0, headDim = 0, experts = 0;
  bool latent = false;
};

Headline headlineOf(const ModelSpec &spec) {
  Headline headline;
  for (const GraphFunction &kind : spec.graph.kinds)
    for (const GraphNode &node : kind.nodes) {
      auto operand = [&](size_t i) -> const GraphValue & { return kind.values[static_cast<size_t>(node.operands[i])]; };
      if (node.op == "attention" && headline.heads == 0) {
        headline.heads = operand(0).heads;
        headline.kvHeads = operand(1).state.heads;
        headline.headDim = operand(1).state.keys;
        headline.latent = operand(1).state.latent;
      }
      if (node.op == "expert_linear" && headline.experts == 0)
        headline.experts = operand(1).shape.front();
    }
  // What the config states counts for latent caches, whose single head is wide.
  for (const Fact &fact : spec.facts) {
    int64_t *known = fact.name == "heads"      ? &headline.heads
                     : fact.name == "kv_heads" ? &headline.kvHeads
                     : fact.name == "head_dim" ? &headline.headDim
                                               : nullptr;
    if (known)
      *known = std::atoll(fact.value.c_str());
  }
  return headline;
}

// Where no headers are at hand, what the config and the description say of the stored types counts.
StoredTotals totalsOf(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  if (stored.empty())
    return storedTotals(spec);
  uint64_t typeBytes = plainBytes(plainTypeOf(spec));
  StoredTotals totals;
  std::unordered_map<std::string, uint64_t> byName;
  for (const StoredTensor &tensor : stored)
    byName[tensor.name] = tensor.bytes;
  for (const ExpectedTensor &expected : expectedTensors(spec)) {
    auto it = byName.find(expected.name);
    totals.bytes += it != byName.end() ? it->second : elementsOf(expected.shape) * typeBytes;
    ++totals.tensors;
  }
  return totals;
}

Json tensorsJson(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  std::unordered_map<std::string, const StoredTensor *> byName;
  for (const StoredTensor &tensor : stored)
    byName[tensor.name] = &tensor;
  Json tensors = Json::array();
  for (const ExpectedTensor &expected : expectedTensors(spec)) {
    auto it = byName.find(expected.name);
    tensors.push_back({{"name", expected.name},
                       {"shape", expected.shape},
                       {"type", it != byName.end() ? it->second->type : plainTypeOf(spec)}});
  }
  return tensors;
}

// The text that tensorsJson would print without headers, made a group at a time: half a million of Json values take
// seconds. What stands for packed weights is listed as it is stored, and the parts that are not run.
std::string tensorsText(const ModelSpec &spec) {
  std::string text = "[";
  const StoredForms forms(spec);
  auto add = [&](const std::string &quotedName, const std::string &rest) {
    text += text.size() == 1 ? "{\"name\":" : ",{\"name\":";
    text += quotedName;
    text += rest;
  };
  auto restOf = [](const std::string &type, const std::vector<int64_t> &shape) {
    return ",\"shape\":" + Json(shape).dump() + ",\"type\":" + Json(type).dump() + "}";
  };
  for (const ExpectedGroup &group : expectedGroups(spec))
    for (const StoredPiece &piece : forms.of(group)) {
      WeightSource quoted = group.source;
      quoted.tensor = Json(StoredForms::nameOf(quoted.tensor, piece)).dump();
      const std::string rest = restOf(piece.type, piece.shape);
      for (int64_t i = 0; i < quoted.numTensors(); ++i)
        add(quoted.tensorAt(i), rest);
    }
  for (const ModelPart &part : spec.parts)
    for (const PartTensor &tensor : part.tensors)
      add(Json(tensor.name).dump(), restOf(tensor.type.empty() ? plainTypeOf(spec) : tensor.type, tensor.shape));
  return text + "]";
}

// Everything but the list of tensors.
Json summaryJson(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  Json layers = Json::array(), operators = Json::array(), facts = Json::array();
  for (const LayerKind &kind : layerKinds(spec))
    layers.push_back({{"kind", kind.name}, {"count", kind.at.size()}, {"at", kind.at}});
  for (const OperatorCount &op : countOperators(spec))
    operators.push_back({{"op", op.name}, {"count", op.count}});
  for (const Fact &fact : spec.facts)
    facts.push_back({{"name", fact.name}, {"value", fact.value}, {"origin", fact.origin}});
  ParameterCounts counts = countParameters(spec);
  Headline headline = headlineOf(spec);
  StateBytes state = stateBytes(spec);
  Json json;
  json["family"] = spec.family;
  json["architecture"] = spec.architecture;
  json["parameters"] = {{"total", counts.total}, {"active", counts.active}, {"text", counts.text}};
  for (const ModelPart &part : spec.parts)
    json["parts"].push_back({{"name", part.name}, {"parameters", partElements(part)}, {"tensors", part.tensors.size()}});
  StoredTotals totals = totalsOf(spec, stored);
  json["bytes"] = totals.bytes;
  json["stored_tensors"] = totals.tensors;
  json["layers"] = layers;
  json["hidden"] = spec.hidden;
  json["vocabulary"] = spec.vocabulary;
  json["context"] = spec.context;
  json["heads"] = headline.heads;
  json["kv_heads"] = headline.kvHeads;
  json["head_dim"] = headline.headDim;
  json["experts"] = headline.experts;
  json["latent_attention"] = headline.latent;
  json["tied_head"] = spec.tiedHead;
  json["operators"] = operators;
  json["state"] = {{"bytes_per_token", state.perToken}, {"bytes_per_sequence", state.perSequence}};
  json["ignored_keys"] = spec.ignoredKeys;
  json["unknown_keys"] = spec.unknownKeys;
  json["facts"] = facts;
  json["notes"] = spec.notes;
  for (const MissingPart &part : spec.missing)
    json["missing"].push_back({{"name", part.name}, {"reason", part.reason}});
  return json;
}

} // namespace

Json inspectToJson(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  Json json = summaryJson(spec, stored);
  json["tensors"] = stored.empty() ? Json::parse(tensorsText(spec)) : tensorsJson(spec, stored);
  return json;
}

std::string inspectToJsonText(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  if (!stored.empty())
    return inspectToJson(spec, stored).dump();
  std::string summary = summaryJson(spec, stored).dump();
  summary.pop_back();
  return summary + ",\"tensors\":" + tensorsText(spec) + "}";
}

std::string inspectToText(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  Headline headline = headlineOf(spec);
  StateBytes state = stateBytes(spec);
  std::string text = spec.family + " (" + spec.architecture + ")\n";
  auto line = [&](const std::string &name, const std::string &value) {
    text += "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + value + "\n";
  };
  ParameterCounts counts = countParameters(spec);
  line("parameters", withThousands(counts.total) +
                         (counts.active != counts.total ? ", active for a token " + withThousands(counts.active) : ""));
  StoredTotals totals = totalsOf(spec, stored);
  char gib[32];
  std::snprintf(gib, sizeof gib, "%.2f", static_cast<double>(totals.bytes) / (uint64_t(1) << 30));
  line("stored", withThousands(totals.tensors) + " tensors, " + withThousands(totals.bytes) + " bytes (" + gib + " GiB)");
  line("hidden", std::to_string(spec.hidden) + ", vocabulary " + std::to_string(spec.vocabulary) + ", context " +
                     std::to_string(spec.context));
  if (headline.experts)
    line("experts", std::to_string(headline.experts));
  line("heads", std::to_string(headline.heads) + ", key and value " + std::to_string(headline.kvHeads) + ", " +
                    std::to_string(headline.headDim) + " channels each");
  for (const ModelPart &part : spec.parts)
    line("part", part.name + ", " + withThousands(partElements(part)) + " parameters in " +
                     withThousands(part.tensors.size()) + " tensors, not run");
  for (const LayerKind &kind : layerKinds(spec))
    line("layers", std::to_string(kind.at.size()) + " x " + kind.name);
  std::string operators;
  for (const OperatorCount &op : countOperators(spec))
    operators += (operators.empty() ? "" : ", ") + op.name + " " + std::to_string(op.count);
  line("operators", operators);
  line("state", withThousands(state.perToken) + " bytes per token" +
                    (state.perSequence ? ", " + withThousands(state.perSequence) + " bytes per sequence" : ""));
  for (const Fact &fact : spec.facts)
    line("fact", fact.name + " = " + fact.value + " (" + fact.origin + ")");
  for (const std::string &note : spec.notes)
    line("note", note);
  for (const MissingPart &part : spec.missing)
    line("not run", part.name + " (" + part.reason + ")");
  for (const std::string &key : spec.unknownKeys)
    line("unknown", key);
  return text;
}

} // namespace llmc
