// ModelDescription: one file of models/ as C++ structs: where the facts of a family sit and under which names its
// weights are published. models/schema.json documents the file; parseDescription checks it.
#pragma once
#include "lib/importer/ConfigSource.h"
#include "lib/importer/ModelSpec.h"
#include "runtime/support/Json.h"
#include "runtime/support/Status.h"
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

// Where one value sits. Text in `fallback`, `onNull` and `value` is an expression, unless the value is a word.
struct ValueRule {
  std::vector<std::string> keys;
  std::map<std::string, std::string> names;
  std::optional<Json> fallback, onNull, value;
  std::string enabledBy, lengthOf, unlessTensor;
};

// One source of a yes or no per layer. See "choice" in the schema.
struct LayerChoice {
  enum class Kind { List, Letters, Period, From, As, Not, All };
  Kind kind = Kind::All;
  std::string name; // key of a list or letters, value of a period or from, choice of as or not
  std::vector<Json> yes, no;
  bool last = false, all = true;
  std::string when;
};

struct RopeRule {
  std::vector<std::string> objects, scaling, theta, partial, width, originalContext, type, factor, magnitude;
  std::optional<double> defaultTheta;
  std::map<std::string, std::string> types;
  std::string divisors, shortDivisors, longDivisors;
};

struct WeightRule {
  std::string tensor;
  std::optional<std::pair<std::string, std::string>> rows; // expressions
  std::string unpermute;                                   // expression, empty: no
};

// A family as one format publishes it.
struct FormatRules {
  std::vector<std::string> architectures, modelTypes;
  std::map<std::string, std::map<std::string, std::string>> nested;
  std::map<std::string, ValueRule> values;
  std::map<std::string, Json> mustEqual;
  std::vector<LayerChoice> sliding, rope;
  std::optional<RopeRule> fullRope, slidingRope;
  std::map<std::string, WeightRule> weights;
  std::map<std::string, std::vector<std::string>> otherPrefixes;
  std::map<std::string, std::string> ignored, ignoredTensors; // name, may end in * -> why
};

struct ModelDescription {
  std::string family;
  bool preNorms = true, postNorms = false;
  QkNorm qkNorm = QkNorm::None;
  FormatRules config, gguf;
  const FormatRules &rules(ConfigFormat format) const { return format == ConfigFormat::Gguf ? gguf : config; }
};

struct ModelDescriptions {
  std::vector<ModelDescription> families;
};

// What the C++ side knows of a value by name: its range, and what it is when a description does not mention it.
struct ValueDefinition {
  enum class Kind { Integer, Positive, NotNegative, Number, Flag, Word };
  std::string name;
  Kind kind;
  int64_t min, max;
  std::optional<Json> fallback;
  std::string meaning;
};
// nullptr: not a building block's value, but free for use in expressions.
const ValueDefinition *findValueDefinition(const std::string &name);
// Definitions that a description must provide.
std::vector<std::string> requiredValues();

// The descriptions compiled into the program, overlaid with the *.json of `folder` (of the environment's LLMC_MODELS
// when empty and that is set): same file name replaces, others are added.
StatusOr<ModelDescriptions> loadModelDescriptions(const std::string &folder = "");

// Everything wrong with one description file, each with a JSON pointer; empty when it is sound. Families that it
// inherits from are looked for beside it, then among the compiled ones.
std::vector<std::string> checkModelDescription(const std::string &path);

// One merged description (inheritance applied) to structs; problems are appended to `errors`, prefixed by `file`.
ModelDescription parseDescription(const Json &merged, const std::string &file, std::vector<std::string> &errors);

} // namespace llmc
