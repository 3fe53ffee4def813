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

inline std::vector<int64_t> windowsOf(const ModelSpec &spec) {
  std::vector<int64_t> windows;
  for (const LayerSpec &layer : spec.layers)
    windows.push_back(layer.attention.window);
  return windows;
}
inline std::vector<int> ropesOf(const ModelSpec &spec) {
  std::vector<int> ropes;
  for (const LayerSpec &layer : spec.layers)
    ropes.push_back(layer.attention.rope);
  return ropes;
}

} // namespace llmc::fixture
