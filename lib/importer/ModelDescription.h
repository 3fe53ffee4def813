// ModelDescription: one file of models/ as C++ structs: where the facts of a family sit, how its layers are wired, and
// under which names its weights are published. models/schema.json documents the file; parseDescription checks it.
#pragma once
#include "lib/importer/ConfigSource.h"
#include "lib/importer/ModelSpec.h"
#include "lib/importer/Scalar.h"
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

// One source of a fact per layer. See "choice" in the schema.
struct LayerChoice {
  enum class Kind { List, Letters, Period, From, As, Not, All, Expression };
  Kind kind = Kind::All;
  std::string name; // key of a list or letters, value of a period or from, choice of as or not, the expression
  std::vector<Json> yes, no;
  bool last = false, all = true;
  int64_t extra = 0;  // entries that a list may have behind those of the layers
  bool other = false; // the key of the list may hold something else
  std::string member; // of the entries of a list of objects: "attention/no_op"
  std::string when;
};

struct RopeRule {
  std::vector<std::string> objects, scaling, theta, partial, width, originalContext, type, factor, magnitude;
  std::string defaultTheta; // expression: the base when none is stated; empty: that is an error
  std::optional<double> defaultPartial;
  std::optional<double> defaultMagnitude; // of a yarn that states none; without it as its paper computes it
  std::map<std::string, std::string> types;
  std::string channels;             // expression: of the head, or of the part of it that turns; empty: head_dim
  std::vector<std::string> ignored; // members of the object that do not change the maths of text
  std::string divisors, shortDivisors, longDivisors;
};

// Where a weight is published. Text but `tensor` and `map` is an expression.
struct WeightRule {
  struct Source {
    std::string tensor;
    std::optional<std::pair<std::string, std::string>> rows;
    std::string unpermute, stack; // empty: no
    std::vector<std::string> dims;
    std::vector<std::optional<std::pair<std::string, std::string>>> take;
    std::vector<int64_t> order;
    std::string map, type;
    std::string constant, times; // expressions: a number or a list that stands for a tensor, and how often; empty: none
    bool prefix = true; // the name follows that of the layer
  };
  std::vector<Source> sources;
  bool inLayer = true; // used in a layer it is the layer's own
};

// A part of published models that is known and not run.
struct PartRule {
  struct Tensor {
    std::vector<std::string> shape; // expressions
    std::string type;               // empty: that of the model's weights
  };
  std::string key;    // of the config, stated where the model has the part; empty: always
  std::string when;   // expression that has to be true as well; empty: none
  std::string prefix; // of the names of its tensors
  std::map<std::string, ValueRule> values; // their keys are looked up inside of `key`
  std::map<std::string, Tensor> tensors;   // "{n}" in a name stands for each number below n
  std::vector<std::pair<std::string, std::string>> operators; // name, what it computes
};

// A part of a model's wiring: statements that are evaluated in order; the last one without a name is the result.
struct Block {
  std::vector<std::string> parameters;
  std::vector<Statement> statements;
};

// A family as one format publishes it.
struct FormatRules {
  std::vector<std::string> architectures, modelTypes;
  std::vector<std::string> recognisedBy; // keys that a config which names neither has to state
  std::map<std::string, std::map<std::string, std::string>> nested;
  std::map<std::string, ValueRule> values;
  std::map<std::string, Json> mustEqual;
  std::map<std::string, std::vector<LayerChoice>> perLayer;
  std::map<std::string, RopeRule> ropes;
  std::map<std::string, WeightRule> weights;
  std::map<std::string, std::vector<std::string>> otherPrefixes;
  std::map<std::string, std::string> ignored, ignoredTensors; // name, may end in * -> why
  std::map<std::string, PartRule> parts;
};

struct ModelDescription {
  std::string family;
  std::map<std::string, Block> blocks; // none: the model is known and not run
  FormatRules config, gguf;
  const FormatRules &rules(ConfigFormat format) const { return format == ConfigFormat::Gguf ? gguf : config; }
};

struct ModelDescriptions {
  std::vector<ModelDescription> families;
};

// What the C++ side knows of a value by name: its range, and what it is when a description does not mention it.
struct ValueDefinition {
  enum class Kind { Integer, Positive, NotNegative, Number, Flag, Word, Any };
  std::string name;
  Kind kind;
  int64_t min, max;
  std::optional<Json> fallback;
  std::string meaning;
};
// nullptr: not a building block's value, but free for use in expressions.
const ValueDefinition *findValueDefinition(const std::string &name);
// What every description must provide; its wiring asks for others.
std::vector<std::string> requiredValues();

// The descriptions compiled into the program, overlaid with the *.json of `folder` (of the environment's LLMC_MODELS
// when empty and that is set): same file name replaces, others are added.
StatusOr<ModelDescriptions> loadModelDescriptions(const std::string &folder = "");

// Everything wrong with one description file, each with a JSON pointer; empty when it is sound. Families that it
// inherits from are looked for beside it, then among the compiled ones. A sound one is put into `description` if given.
std::vector<std::string> checkModelDescription(const std::string &path, ModelDescription *description = nullptr);

// What the parts of a description say of each other and is wrong, each with a JSON pointer: values that are missing,
// names that nothing defines, calls of blocks and functions that do not exist. Only formats that serve an architecture
// have to be complete.
std::vector<std::string> problemsOf(const ModelDescription &description);

// One merged description (inheritance applied) to structs; problems are appended to `errors`, prefixed by `file`.
ModelDescription parseDescription(const Json &merged, const std::string &file, std::vector<std::string> &errors);

} // namespace llmc
