// What the importer's tests share: the descriptions, published configs, and small models to break.
#pragma once
#include "lib/importer/ResolveModel.h"
#include "runtime/support/Json.h"
#include <gtest/gtest.h>

namespace llmc::fixture {

inline const std::string modelsFolder = LLMC_TEST_DATA "/../../models/";

inline const ModelDescriptions &descriptions() {
  static const StatusOr<ModelDescriptions> loaded = loadModelDescriptions();
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return *loaded;
}

// `name`: a folder of test/models, or "published/" and the name of a config there.
inline Json configOf(const std::string &name) {
  bool published = name.rfind("published/", 0) == 0;
  StatusOr<Json> json = readJsonFile(modelsFolder + name + (published ? ".json" : "/config.json"), 1 << 20);
  EXPECT_TRUE(json.ok()) << json.status().message();
  return json.ok() ? *json : Json::object();
}

inline ModelSpec resolved(const Json &config) {
  StatusOr<ModelSpec> spec = resolveModel(descriptions(), HuggingFaceConfig(config));
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? *spec : ModelSpec();
}
inline ModelSpec resolved(const std::string &name) { return resolved(configOf(name)); }
// Not a Json string.
inline ModelSpec resolved(const char *name) { return resolved(configOf(name)); }

// Why a config does not resolve; empty when it does.
inline std::string errorOf(const Json &config) {
  StatusOr<ModelSpec> spec = resolveModel(descriptions(), HuggingFaceConfig(config));
  return spec.ok() ? "" : spec.status().message();
}

// The config of `name` with some keys replaced.
inline Json changed(const std::string &name, const Json &keys) {
  Json config = configOf(name);
  for (auto it = keys.begin(); it != keys.end(); ++it)
    config[it.key()] = *it;
  return config;
}
inline Json without(const std::string &name, const std::string &key) {
  Json config = configOf(name);
  config.erase(key);
  return config;
}

inline std::string factOf(const ModelSpec &spec, const std::string &name) {
  for (const Fact &fact : spec.facts)
    if (fact.name == name)
      return fact.value + " (" + fact.origin + ")";
  return "";
}

//===-- graphs
//------------------------------------------------------------------------------------------------------===//

inline const GraphFunction &kindOf(const ModelSpec &spec, size_t layer = 0) {
  static const GraphFunction none;
  bool exists = layer < spec.graph.kindOfLayer.size();
  EXPECT_TRUE(exists) << "no layer " << layer;
  return exists ? spec.graph.kinds[static_cast<size_t>(spec.graph.kindOfLayer[layer])] : none;
}

// The mnemonics of a function's nodes, in order.
inline std::vector<std::string> opsOf(const GraphFunction &function) {
  std::vector<std::string> ops;
  for (const GraphNode &node : function.nodes)
    ops.push_back(node.op);
  return ops;
}
inline std::vector<GraphNode> nodesOf(const GraphFunction &function, const std::string &op) {
  std::vector<GraphNode> nodes;
  for (const GraphNode &node : function.nodes)
    if (node.op == op)
      nodes.push_back(node);
  return nodes;
}

// An attribute of the function's first node of an op; what `T` is by default when there is none.
template <typename T> T attributeOf(const GraphFunction &function, const std::string &op, const std::string &name) {
  std::vector<GraphNode> nodes = nodesOf(function, op);
  if (nodes.empty() || !nodes[0].attributes.count(name)) {
    ADD_FAILURE() << function.name << " has no " << op << " with " << name;
    return T();
  }
  const T *value = std::get_if<T>(&nodes[0].attributes.at(name));
  EXPECT_NE(value, nullptr) << op << " has " << name << " of another type";
  return value ? *value : T();
}

// Operand `index` of the function's first node of an op.
inline GraphValue operandOf(const GraphFunction &function, const std::string &op, size_t index) {
  std::vector<GraphNode> nodes = nodesOf(function, op);
  bool exists = !nodes.empty() && index < nodes[0].operands.size();
  EXPECT_TRUE(exists) << function.name << " has no " << op << " with operand " << index;
  return exists ? function.values[static_cast<size_t>(nodes[0].operands[index])] : GraphValue();
}

inline std::vector<int64_t> windowsOf(const ModelSpec &spec) {
  std::vector<int64_t> windows;
  for (size_t i = 0; i < spec.graph.kindOfLayer.size(); ++i)
    windows.push_back(attributeOf<int64_t>(kindOf(spec, i), "attention", "window"));
  return windows;
}

// The rope that each layer turns its query with, empty where it does not turn: the table is an input of the layer's
// function, made in the step.
inline std::vector<std::string> ropesOf(const ModelSpec &spec) {
  std::vector<std::string> ropes;
  for (const GraphNode &call : nodesOf(spec.graph.step, "call")) {
    const GraphFunction &kind = kindOf(spec, ropes.size());
    std::vector<GraphNode> turns = nodesOf(kind, "rope");
    ropes.emplace_back();
    for (size_t i = 0; !turns.empty() && i < kind.inputs.size(); ++i)
      for (const GraphNode &table : nodesOf(spec.graph.step, "rope_table"))
        if (kind.inputs[i] == turns[0].operands[1] && call.operands[i] == table.results[0])
          ropes.back() = std::get<std::string>(table.attributes.at("rope"));
  }
  return ropes;
}

//===-- a family of one's own
//-----------------------------------------------------------------------------------------===//

// A family whose values are all fixed: layers of one norm and one product, to be changed by tests.
inline Json tinyFamily() {
  return *parseJson(R"json({
    "family": "tiny",
    "blocks": {
      "begin()": ["embedding(embedding, vocabulary, hidden)"],
      "kind()": ["'plain'"],
      "layer(h)": ["h + linear(norm(h), mix, hidden)"],
      "norm(x)": ["rms_norm(x, gain, eps: 1e-5)"],
      "finish(h)": ["linear(select(h), head, vocabulary)"]
    },
    "config": {
      "architectures": ["Tiny"],
      "values": {
        "layers": {"value": 4}, "hidden": {"value": 8}, "vocabulary": {"value": 16}, "context": {"value": 64},
        "tied_head": {"value": false}
      },
      "weights": {
        "embedding": "embed.weight", "layer_prefix": "layers.{layer}.", "gain": "norm.weight", "mix": "mix.weight",
        "head": "head.weight"
      },
      "ignored": {"architectures": ""}
    }
  })json",
                    "tiny.json");
}

// `keys`: of the config, beside the architecture. What is wrong with the description is an error too.
inline StatusOr<ModelSpec> resolveTiny(const Json &family, Json keys = Json::object()) {
  std::vector<std::string> errors;
  ModelDescriptions tiny;
  tiny.families.push_back(parseDescription(family, "tiny.json", errors));
  if (!errors.empty())
    return Status::error(errors.front());
  keys["architectures"] = {"Tiny"};
  return resolveModel(tiny, HuggingFaceConfig(keys));
}
inline ModelSpec resolvedTiny(const Json &family, const Json &keys = Json::object()) {
  StatusOr<ModelSpec> spec = resolveTiny(family, keys);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? *spec : ModelSpec();
}
inline std::string tinyError(const Json &family, const Json &keys = Json::object()) {
  StatusOr<ModelSpec> spec = resolveTiny(family, keys);
  return spec.ok() ? "" : spec.status().message();
}

} // namespace llmc::fixture
