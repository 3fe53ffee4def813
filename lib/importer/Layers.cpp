// The layers of a model: one block's numbers, and which layers slide and which turn.
#include "lib/importer/ResolveParts.h"
#include "lib/importer/Rope.h"
#include <algorithm>

namespace llmc {
namespace {

using Flags = std::vector<bool>;
using Kind = LayerChoice::Kind;

// A yes or no for every layer, from the first source that is stated.
class Pattern {
public:
  Pattern(ValueReader &values, int64_t layers, ModelSpec &spec) : values_(values), layers_(layers), spec_(spec) {}

  StatusOr<Flags> resolve(const std::string &name) {
    if (!resolving_.insert(name).second)
      return Status::error("the description takes the layers that " + name + " from themselves");
    const std::vector<LayerChoice> &choices = name == "rope" ? values_.rules().rope : values_.rules().sliding;
    std::optional<Flags> decided;
    std::string decidedBy;
    for (const LayerChoice &choice : choices) {
      if (decided && !statedInConfig(choice))
        continue;
      LLMC_ASSIGN_OR_RETURN(std::optional<Flags> flags, apply(choice, name));
      if (!flags)
        continue;
      if (!decided) {
        decided = std::move(*flags);
        decidedBy = describe(choice);
        values_.record(name + " layers", print(*decided), decidedBy);
      } else if (*flags != *decided) {
        spec_.notes.push_back(describe(choice) + " disagrees with " + decidedBy + ", which counts");
      }
    }
    resolving_.erase(name);
    return decided ? *decided : Flags(static_cast<size_t>(layers_), name == "rope");
  }

private:
  bool statedInConfig(const LayerChoice &choice) const {
    if (choice.kind == Kind::List || choice.kind == Kind::Letters)
      return values_.stated(choice.name).json != nullptr;
    auto rule = values_.rules().values.find(choice.name);
    return choice.kind == Kind::Period && rule != values_.rules().values.end() &&
           values_.firstStated(rule->second.keys).json != nullptr &&
           values_.firstStated(rule->second.keys).json->is_number();
  }

  std::string describe(const LayerChoice &choice) const {
    if (choice.kind == Kind::List || choice.kind == Kind::Letters)
      return "stated as " + values_.stated(choice.name).pointer;
    if (choice.kind == Kind::Period || choice.kind == Kind::From)
      return "computed: by " + values_.label(choice.name);
    return "fixed by the family";
  }

  static std::string print(const Flags &flags) {
    auto count = std::count(flags.begin(), flags.end(), true);
    return std::to_string(count) + " of " + std::to_string(flags.size());
  }

  StatusOr<std::optional<Flags>> apply(const LayerChoice &choice, const std::string &name) {
    if (!choice.when.empty()) {
      LLMC_ASSIGN_OR_RETURN(bool counts, values_.flag(choice.when));
      if (!counts)
        return std::optional<Flags>();
    }
    switch (choice.kind) {
    case Kind::List:
      return fromList(choice);
    case Kind::Letters:
      return fromLetters(choice);
    case Kind::Period: {
      LLMC_ASSIGN_OR_RETURN(int64_t period, values_.integer(choice.name));
      if (period < 1)
        return Status::error(values_.label(choice.name) + " is " + std::to_string(period) + ", expected at least 1");
      return each([&](int64_t i) { return ((i + 1) % period == 0) == choice.last; });
    }
    case Kind::From: {
      LLMC_ASSIGN_OR_RETURN(int64_t first, values_.integer(choice.name));
      return each([&](int64_t i) { return i >= first; });
    }
    case Kind::As:
    case Kind::Not: {
      LLMC_ASSIGN_OR_RETURN(Flags other, resolve(choice.name));
      return each([&](int64_t i) { return other[static_cast<size_t>(i)] == (choice.kind == Kind::As); });
    }
    case Kind::All:
      break;
    }
    return each([&](int64_t) { return choice.all; });
  }

  template <typename F> std::optional<Flags> each(F f) const {
    Flags flags;
    for (int64_t i = 0; i < layers_; ++i)
      flags.push_back(f(i));
    return flags;
  }

  static StatusOr<bool> among(const LayerChoice &choice, const Json &word, const std::string &pointer) {
    if (std::find(choice.yes.begin(), choice.yes.end(), word) != choice.yes.end())
      return true;
    if (std::find(choice.no.begin(), choice.no.end(), word) != choice.no.end())
      return false;
    std::string known;
    for (const auto *words : {&choice.yes, &choice.no})
      for (const Json &each : *words)
        known += (known.empty() ? "" : ", ") + (each.is_string() ? each.get<std::string>() : each.dump());
    return Status::error(pointer + " is " + brief(word) + ", which is unknown (known = " + known + ")");
  }

  StatusOr<std::optional<Flags>> fromList(const LayerChoice &choice) {
    Stated found = values_.stated(choice.name);
    if (!found.json)
      return std::optional<Flags>();
    if (!found.json->is_array())
      return Status::error(found.pointer + " is " + brief(*found.json) + ", expected a list with an entry per layer");
    if (found.json->size() != static_cast<size_t>(layers_))
      return Status::error(found.pointer + " has " + std::to_string(found.json->size()) + " entries, but " +
                           values_.label("layers") + " is " + std::to_string(layers_));
    Flags flags;
    for (size_t i = 0; i < found.json->size(); ++i) {
      LLMC_ASSIGN_OR_RETURN(bool flag, among(choice, (*found.json)[i], found.pointer + "/" + std::to_string(i)));
      flags.push_back(flag);
    }
    return std::optional<Flags>(std::move(flags));
  }

  StatusOr<std::optional<Flags>> fromLetters(const LayerChoice &choice) {
    Stated found = values_.stated(choice.name);
    if (!found.json || !found.json->is_string())
      return std::optional<Flags>(); // the same key may hold a period instead
    std::string letters = found.json->get<std::string>();
    if (letters.empty() || letters.size() > static_cast<size_t>(layers_))
      return Status::error(found.pointer + " has " + std::to_string(letters.size()) + " letters, expected 1 to " +
                           std::to_string(layers_) + ", the layers");
    std::vector<bool> period;
    for (char letter : letters) {
      LLMC_ASSIGN_OR_RETURN(bool flag, among(choice, Json(std::string(1, letter)), found.pointer));
      period.push_back(flag);
    }
    return each([&](int64_t i) { return period[static_cast<size_t>(i) % period.size()]; });
  }

  ValueReader &values_;
  int64_t layers_;
  ModelSpec &spec_;
  std::set<std::string> resolving_;
};

bool slidingIsListed(const ValueReader &values) {
  for (const LayerChoice &choice : values.rules().sliding)
    if (choice.kind == Kind::List && values.stated(choice.name).json)
      return true;
  return false;
}

StatusOr<AttentionSpec> resolveAttention(const ModelDescription &description, ValueReader &values,
                                         const ModelSpec &spec) {
  AttentionSpec a;
  LLMC_ASSIGN_OR_RETURN(a.heads, values.integer("heads"));
  LLMC_ASSIGN_OR_RETURN(a.kvHeads, values.integer("kv_heads"));
  LLMC_ASSIGN_OR_RETURN(a.headDim, values.integer("head_dim"));
  if (a.heads % a.kvHeads != 0)
    return Status::error(values.label("heads") + " " + std::to_string(a.heads) + " is not a multiple of " +
                         values.label("kv_heads") + " " + std::to_string(a.kvHeads));
  LLMC_ASSIGN_OR_RETURN(a.scale, values.number("attention_scale"));
  LLMC_ASSIGN_OR_RETURN(a.softcap, values.number("attention_softcap"));
  LLMC_ASSIGN_OR_RETURN(a.qkvBias, values.flag("qkv_bias"));
  LLMC_ASSIGN_OR_RETURN(a.outputBias, values.flag("output_bias"));
  a.qkNorm = description.qkNorm;
  a.qkNormEps = description.qkNorm == QkNorm::None ? 0.0 : spec.normEps;
  return a;
}

StatusOr<LayerSpec> resolveBlock(const ModelDescription &description, ValueReader &values, const ModelSpec &spec) {
  LayerSpec layer;
  layer.preAttentionNorm = layer.preMlpNorm = description.preNorms;
  layer.postAttentionNorm = layer.postMlpNorm = description.postNorms;
  LLMC_ASSIGN_OR_RETURN(layer.residualScale, values.number("residual_scale"));
  LLMC_ASSIGN_OR_RETURN(layer.attention, resolveAttention(description, values, spec));
  LLMC_ASSIGN_OR_RETURN(layer.mlp.intermediate, values.integer("intermediate"));
  LLMC_ASSIGN_OR_RETURN(layer.mlp.activation, values.word("activation"));
  static const std::set<std::string> known = {"gelu", "gelu_tanh", "silu"};
  if (!known.count(layer.mlp.activation))
    return Status::error(values.label("activation") + " '" + layer.mlp.activation +
                         "' is no activation of the building blocks (known = gelu, gelu_tanh, silu)");
  LLMC_ASSIGN_OR_RETURN(layer.mlp.bias, values.flag("mlp_bias"));
  return layer;
}

} // namespace

Status resolveLayers(const ModelDescription &description, ValueReader &values, ModelSpec &spec) {
  LLMC_ASSIGN_OR_RETURN(int64_t layers, values.integer("layers"));
  LLMC_ASSIGN_OR_RETURN(LayerSpec block, resolveBlock(description, values, spec));
  LLMC_ASSIGN_OR_RETURN(int64_t window, values.integer("window"));
  Pattern pattern(values, layers, spec);
  LLMC_ASSIGN_OR_RETURN(Flags sliding, pattern.resolve("sliding"));
  LLMC_ASSIGN_OR_RETURN(Flags rotated, pattern.resolve("rope"));
  if (window == 0 && slidingIsListed(values) && std::count(sliding.begin(), sliding.end(), true) > 0)
    return Status::error("layer " + std::to_string(std::find(sliding.begin(), sliding.end(), true) - sliding.begin()) +
                         " of " + std::to_string(layers) + " slides, but there is no " + values.label("window"));
  if (window >= spec.context) {
    spec.notes.push_back(values.label("window") + " " + std::to_string(window) + " is not below the context " +
                         std::to_string(spec.context) + ": no layer slides");
    window = 0;
  }
  const FormatRules &rules = values.rules();
  LLMC_ASSIGN_OR_RETURN(RopeSpec full, resolveRope(*rules.fullRope, "full", values, spec.ignorableTensors));
  spec.ropes.push_back(std::move(full));
  if (rules.slidingRope) {
    LLMC_ASSIGN_OR_RETURN(RopeSpec other, resolveRope(*rules.slidingRope, "sliding", values, spec.ignorableTensors));
    spec.ropes.push_back(std::move(other));
  }
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    LayerSpec layer = block;
    // Which rope serves a layer goes by its kind, also where the window is off.
    layer.attention.rope = !rotated[i] ? -1 : sliding[i] && rules.slidingRope ? 1 : 0;
    layer.attention.window = sliding[i] ? window : 0;
    spec.layers.push_back(layer);
  }
  return {};
}

} // namespace llmc
