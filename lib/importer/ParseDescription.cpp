// A description's JSON to structs, checked: unknown members, wrong types, expressions that do not parse, names of
// values or weights that nothing defines. models/schema.json says the same for people and editors.
#include "lib/importer/Expression.h"
#include "lib/importer/ModelDescription.h"
#include <set>

namespace llmc {
namespace {

// Weight names of a layer come after layer_prefix; biases are the same names with ".bias" for ".weight".
const std::set<std::string> weightNames = {"embedding",
                                           "layer_prefix",
                                           "final_norm",
                                           "head",
                                           "attention_norm",
                                           "attention.query",
                                           "attention.key",
                                           "attention.value",
                                           "attention.query_norm",
                                           "attention.key_norm",
                                           "attention.output",
                                           "attention_post_norm",
                                           "mlp_norm",
                                           "mlp.gate",
                                           "mlp.up",
                                           "mlp.down",
                                           "mlp_post_norm"};
const std::set<std::string> ropeTypes = {"default", "linear", "llama3", "longrope", "yarn"};

class Reader {
public:
  Reader(const std::string &file, std::vector<std::string> &errors) : file_(file), errors_(errors) {}

  ModelDescription read(const Json &json) {
    ModelDescription d;
    members(json, "", {"$schema", "family", "about", "inherits", "layer", "config", "gguf"});
    if (const Json *family = find(json, "family"))
      d.family = text(*family, "/family");
    if (const Json *layer = find(json, "layer"))
      readLayer(*layer, d);
    for (ConfigFormat format : {ConfigFormat::HuggingFace, ConfigFormat::Gguf}) {
      std::string name = format == ConfigFormat::Gguf ? "gguf" : "config";
      FormatRules &rules = format == ConfigFormat::Gguf ? d.gguf : d.config;
      if (const Json *section = find(json, name))
        readFormat(*section, "/" + name, rules);
      if (!rules.architectures.empty())
        checkComplete("/" + name, d, rules);
    }
    return d;
  }

private:
  void error(const std::string &pointer, const std::string &what) {
    errors_.push_back(file_ + ": " + pointer + " " + what);
  }

  bool members(const Json &json, const std::string &pointer, const std::set<std::string> &known) {
    if (!json.is_object()) {
      error(pointer, "is " + brief(json) + ", expected an object");
      return false;
    }
    for (auto it = json.begin(); it != json.end(); ++it)
      if (!known.count(it.key()))
        error(pointer + "/" + it.key(), "is not a member of a description; see models/schema.json");
    return true;
  }

  std::string text(const Json &json, const std::string &pointer) {
    StatusOr<std::string> value = asString(json, pointer);
    if (!value.ok()) {
      errors_.push_back(file_ + ": " + value.status().message());
      return "";
    }
    return *value;
  }
  std::string textMember(const Json &json, const std::string &pointer, const char *name) {
    const Json *value = find(json, name);
    return value ? text(*value, pointer + "/" + name) : "";
  }
  bool flagMember(const Json &json, const std::string &pointer, const char *name, bool fallback) {
    const Json *value = find(json, name);
    if (!value)
      return fallback;
    StatusOr<bool> flag = asBool(*value, pointer + "/" + name);
    if (!flag.ok())
      errors_.push_back(file_ + ": " + flag.status().message());
    return flag.ok() ? *flag : fallback;
  }
  std::vector<std::string> texts(const Json &json, const std::string &pointer) {
    std::vector<std::string> result;
    if (!json.is_array())
      error(pointer, "is " + brief(json) + ", expected a list of text");
    else
      for (size_t i = 0; i < json.size(); ++i)
        result.push_back(text(json[i], pointer + "/" + std::to_string(i)));
    return result;
  }
  std::vector<std::string> textsMember(const Json &json, const std::string &pointer, const char *name) {
    const Json *value = find(json, name);
    return value ? texts(*value, pointer + "/" + name) : std::vector<std::string>();
  }
  std::map<std::string, std::string> textMap(const Json &json, const std::string &pointer) {
    std::map<std::string, std::string> result;
    if (!json.is_object())
      error(pointer, "is " + brief(json) + ", expected an object");
    else
      for (auto it = json.begin(); it != json.end(); ++it)
        result[it.key()] = text(*it, pointer + "/" + it.key());
    return result;
  }

  void readLayer(const Json &json, ModelDescription &d) {
    if (!members(json, "/layer", {"pre_norms", "post_norms", "qk_norm"}))
      return;
    d.preNorms = flagMember(json, "/layer", "pre_norms", true);
    d.postNorms = flagMember(json, "/layer", "post_norms", false);
    std::string norm = textMember(json, "/layer", "qk_norm");
    if (norm == "per_head")
      d.qkNorm = QkNorm::PerHead;
    else if (norm == "whole_width")
      d.qkNorm = QkNorm::WholeWidth;
    else if (!norm.empty() && norm != "none")
      error("/layer/qk_norm", "'" + norm + "' is unknown (known = none, per_head, whole_width)");
  }

  void readFormat(const Json &json, const std::string &pointer, FormatRules &rules) {
    if (!members(json, pointer,
                 {"architectures", "model_types", "nested", "values", "must_equal", "per_layer", "ropes", "weights",
                  "other_prefixes", "ignored", "ignored_tensors"}))
      return;
    rules.architectures = textsMember(json, pointer, "architectures");
    rules.modelTypes = textsMember(json, pointer, "model_types");
    forEach(json, pointer, "nested", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.nested[name] = textMap(value, at);
    });
    forEach(json, pointer, "values", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.values[name] = readValue(name, value, at);
    });
    forEach(json, pointer, "must_equal",
            [&](const std::string &name, const Json &value, const std::string &at) { rules.mustEqual[name] = value; });
    forEach(json, pointer, "per_layer", [&](const std::string &name, const Json &value, const std::string &at) {
      if (name == "sliding" || name == "rope")
        (name == "rope" ? rules.rope : rules.sliding) = readChoices(value, at);
      else
        error(at, "is not a choice per layer (known = sliding, rope)");
    });
    forEach(json, pointer, "ropes", [&](const std::string &name, const Json &value, const std::string &at) {
      if (name == "full" || name == "sliding")
        (name == "full" ? rules.fullRope : rules.slidingRope) = readRope(value, at);
      else
        error(at, "is not a rope (known = full, sliding)");
    });
    forEach(json, pointer, "weights", [&](const std::string &name, const Json &value, const std::string &at) {
      if (!weightNames.count(name))
        error(at, "is not the name of a weight");
      rules.weights[name] = readWeight(value, at);
    });
    forEach(json, pointer, "other_prefixes", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.otherPrefixes[name] = texts(value, at);
    });
    if (const Json *ignored = find(json, "ignored"))
      rules.ignored = textMap(*ignored, pointer + "/ignored");
    if (const Json *ignored = find(json, "ignored_tensors"))
      rules.ignoredTensors = textMap(*ignored, pointer + "/ignored_tensors");
  }

  template <typename F> void forEach(const Json &json, const std::string &pointer, const char *section, F read) {
    const Json *object = find(json, section);
    std::string at = pointer + "/" + section;
    if (!object)
      return;
    if (!object->is_object())
      return error(at, "is " + brief(*object) + ", expected an object");
    for (auto it = object->begin(); it != object->end(); ++it)
      read(it.key(), *it, at + "/" + it.key());
  }

  ValueRule readValue(const std::string &name, const Json &json, const std::string &at) {
    ValueRule rule;
    if (json.is_string()) {
      rule.keys = {json.get<std::string>()};
      return rule;
    }
    if (!members(json, at, {"keys", "names", "default", "null", "value", "enabled_by", "length_of", "unless_tensor"}))
      return rule;
    rule.keys = textsMember(json, at, "keys");
    if (const Json *names = find(json, "names"))
      rule.names = textMap(*names, at + "/names");
    auto literal = [&](const char *member) -> std::optional<Json> {
      const Json *value = find(json, member);
      return value ? std::optional<Json>(*value) : std::nullopt;
    };
    rule.fallback = literal("default");
    rule.onNull = literal("null");
    rule.value = literal("value");
    rule.enabledBy = textMember(json, at, "enabled_by");
    rule.lengthOf = textMember(json, at, "length_of");
    rule.unlessTensor = textMember(json, at, "unless_tensor");
    if (rule.keys.empty() && !rule.value && rule.unlessTensor.empty() && rule.lengthOf.empty())
      error(at, "says neither keys nor value");
    return rule;
  }

  std::vector<LayerChoice> readChoices(const Json &json, const std::string &at) {
    std::vector<LayerChoice> choices;
    if (!json.is_array()) {
      error(at, "is " + brief(json) + ", expected a list of sources");
      return choices;
    }
    for (size_t i = 0; i < json.size(); ++i)
      choices.push_back(readChoice(json[i], at + "/" + std::to_string(i)));
    return choices;
  }

  LayerChoice readChoice(const Json &json, const std::string &at) {
    using Kind = LayerChoice::Kind;
    static const std::pair<const char *, Kind> kinds[] = {{"list", Kind::List},     {"letters", Kind::Letters},
                                                          {"period", Kind::Period}, {"from", Kind::From},
                                                          {"as", Kind::As},         {"not", Kind::Not}};
    LayerChoice choice;
    if (!members(json, at, {"list", "letters", "yes", "no", "period", "last", "from", "as", "not", "all", "when"}))
      return choice;
    int stated = find(json, "all") ? 1 : 0;
    choice.all = flagMember(json, at, "all", true);
    for (const auto &[name, kind] : kinds)
      if (find(json, name)) {
        ++stated;
        choice.kind = kind;
        choice.name = textMember(json, at, name);
      }
    if (stated != 1)
      error(at,
            "names " + std::to_string(stated) + " sources, expected one of list, letters, period, from, as, not, all");
    for (const char *member : {"yes", "no"})
      if (const Json *words = find(json, member)) {
        if (!words->is_array())
          error(at + "/" + member, "is " + brief(*words) + ", expected a list");
        else
          for (const Json &word : *words)
            (member[0] == 'y' ? choice.yes : choice.no).push_back(word);
      }
    choice.last = flagMember(json, at, "last", false);
    choice.when = textMember(json, at, "when");
    return choice;
  }

  RopeRule readRope(const Json &json, const std::string &at) {
    RopeRule rule;
    if (!members(json, at,
                 {"objects", "scaling", "theta", "default_theta", "partial", "width", "original_context", "type",
                  "factor", "magnitude", "types", "divisors", "short_divisors", "long_divisors"}))
      return rule;
    rule.objects = textsMember(json, at, "objects");
    rule.scaling = textsMember(json, at, "scaling");
    rule.theta = textsMember(json, at, "theta");
    rule.partial = textsMember(json, at, "partial");
    rule.width = textsMember(json, at, "width");
    rule.originalContext = textsMember(json, at, "original_context");
    rule.type = textsMember(json, at, "type");
    rule.factor = textsMember(json, at, "factor");
    rule.magnitude = textsMember(json, at, "magnitude");
    rule.divisors = textMember(json, at, "divisors");
    rule.shortDivisors = textMember(json, at, "short_divisors");
    rule.longDivisors = textMember(json, at, "long_divisors");
    if (const Json *theta = find(json, "default_theta")) {
      if (theta->is_number())
        rule.defaultTheta = theta->get<double>();
      else
        error(at + "/default_theta", "is " + brief(*theta) + ", expected a number");
    }
    if (const Json *types = find(json, "types"))
      rule.types = textMap(*types, at + "/types");
    for (const auto &[published, type] : rule.types)
      if (!ropeTypes.count(type))
        error(at + "/types/" + published,
              "'" + type + "' is unknown (known = default, linear, llama3, longrope, yarn)");
    return rule;
  }

  std::string expression(const Json &json, const std::string &at) {
    std::string text = json.is_number() ? json.dump() : this->text(json, at);
    StatusOr<std::vector<std::string>> names = namesInExpression(text);
    if (!names.ok())
      error(at, names.status().message());
    return text;
  }

  WeightRule readWeight(const Json &json, const std::string &at) {
    WeightRule rule;
    if (json.is_string()) {
      rule.tensor = json.get<std::string>();
      return rule;
    }
    if (!members(json, at, {"tensor", "rows", "unpermute"}))
      return rule;
    rule.tensor = textMember(json, at, "tensor");
    if (const Json *rows = find(json, "rows")) {
      if (!rows->is_array() || rows->size() != 2)
        error(at + "/rows", "is " + brief(*rows) + ", expected [first row, row after the last]");
      else
        rule.rows = std::pair(expression((*rows)[0], at + "/rows/0"), expression((*rows)[1], at + "/rows/1"));
    }
    if (const Json *heads = find(json, "unpermute"))
      rule.unpermute = expression(*heads, at + "/unpermute");
    return rule;
  }

  // A family that serves a format must answer every question of the building blocks in it.
  void checkComplete(const std::string &pointer, const ModelDescription &d, const FormatRules &rules) {
    for (const std::string &name : requiredValues())
      if (!rules.values.count(name))
        error(pointer + "/values", "has no '" + name + "'");
    if (!rules.fullRope)
      error(pointer + "/ropes", "has no 'full'");
    std::vector<std::string> wanted = {"embedding",       "layer_prefix",  "final_norm",      "head",
                                       "attention.query", "attention.key", "attention.value", "attention.output",
                                       "mlp.gate",        "mlp.up",        "mlp.down"};
    if (d.preNorms)
      wanted.insert(wanted.end(), {"attention_norm", "mlp_norm"});
    if (d.postNorms)
      wanted.insert(wanted.end(), {"attention_post_norm", "mlp_post_norm"});
    if (d.qkNorm != QkNorm::None)
      wanted.insert(wanted.end(), {"attention.query_norm", "attention.key_norm"});
    for (const std::string &name : wanted)
      if (!rules.weights.count(name))
        error(pointer + "/weights", "has no '" + name + "'");
    checkExpressions(pointer, rules);
  }

  void checkNames(const std::string &text, const std::string &at, const FormatRules &rules) {
    StatusOr<std::vector<std::string>> names = namesInExpression(text);
    if (!names.ok())
      return error(at, names.status().message());
    for (const std::string &name : *names)
      checkName(name, at, rules);
  }
  void checkName(const std::string &name, const std::string &at, const FormatRules &rules) {
    const ValueDefinition *definition = findValueDefinition(name);
    if (!rules.values.count(name) && !(definition && definition->fallback))
      error(at, "uses '" + name + "', which is no entry of values");
  }

  void checkExpressions(const std::string &pointer, const FormatRules &rules) {
    for (const auto &[name, rule] : rules.values) {
      const ValueDefinition *definition = findValueDefinition(name);
      if (definition && definition->kind == ValueDefinition::Kind::Word)
        continue;
      std::string at = pointer + "/values/" + name;
      for (const std::optional<Json> &literal : {rule.fallback, rule.onNull, rule.value})
        if (literal && literal->is_string())
          checkNames(literal->get<std::string>(), at, rules);
      if (!rule.enabledBy.empty())
        checkName(rule.enabledBy, at + "/enabled_by", rules);
    }
    for (const auto &[key, value] : rules.mustEqual)
      if (value.is_string())
        checkNames(value.get<std::string>(), pointer + "/must_equal/" + key, rules);
    for (const auto &[name, rule] : rules.weights) {
      std::string at = pointer + "/weights/" + name;
      if (rule.rows) {
        checkNames(rule.rows->first, at + "/rows/0", rules);
        checkNames(rule.rows->second, at + "/rows/1", rules);
      }
      if (!rule.unpermute.empty())
        checkNames(rule.unpermute, at + "/unpermute", rules);
    }
    for (const auto *choices : {&rules.sliding, &rules.rope})
      for (size_t i = 0; i < choices->size(); ++i)
        checkChoice((*choices)[i],
                    pointer + "/per_layer/" + (choices == &rules.rope ? "rope/" : "sliding/") + std::to_string(i),
                    choices == &rules.rope ? "rope" : "sliding", rules);
  }

  void checkChoice(const LayerChoice &choice, const std::string &at, const std::string &self,
                   const FormatRules &rules) {
    using Kind = LayerChoice::Kind;
    if (choice.kind == Kind::Period || choice.kind == Kind::From)
      checkName(choice.name, at, rules);
    if (!choice.when.empty())
      checkName(choice.when, at + "/when", rules);
    if ((choice.kind == Kind::As || choice.kind == Kind::Not) &&
        (choice.name == self || (choice.name != "rope" && choice.name != "sliding")))
      error(at, "refers to '" + choice.name + "', expected the other choice");
    if ((choice.kind == Kind::List || choice.kind == Kind::Letters) && (choice.yes.empty() || choice.no.empty()))
      error(at, "needs the words of 'yes' and of 'no'");
  }

  const std::string &file_;
  std::vector<std::string> &errors_;
};

} // namespace

ModelDescription parseDescription(const Json &merged, const std::string &file, std::vector<std::string> &errors) {
  return Reader(file, errors).read(merged);
}

} // namespace llmc
