// A description's JSON to structs, checked: unknown members, wrong types, expressions that do not parse. What the parts
// say of each other is checked in CheckDescription.cpp. models/schema.json says the same for people and editors.
#include "lib/importer/ModelDescription.h"
#include <set>

namespace llmc {
namespace {

const std::set<std::string> ropeTypes = {"default", "linear", "llama3", "longrope", "proportional", "yarn"};

class Reader {
public:
  Reader(const std::string &file, std::vector<std::string> &errors) : file_(file), errors_(errors) {}

  ModelDescription read(const Json &json) {
    ModelDescription d;
    members(json, "", {"$schema", "family", "about", "inherits", "blocks", "config", "gguf"});
    if (const Json *family = find(json, "family"))
      d.family = text(*family, "/family");
    forEach(json, "", "blocks", [&](const std::string &signature, const Json &value, const std::string &at) {
      readBlock(signature, value, at, d);
    });
    for (ConfigFormat format : {ConfigFormat::HuggingFace, ConfigFormat::Gguf}) {
      std::string name = format == ConfigFormat::Gguf ? "gguf" : "config";
      FormatRules &rules = format == ConfigFormat::Gguf ? d.gguf : d.config;
      if (const Json *section = find(json, name))
        readFormat(*section, "/" + name, rules);
    }
    for (const std::string &problem : problemsOf(d))
      errors_.push_back(file_ + ": " + problem);
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

  void readBlock(const std::string &signature, const Json &json, const std::string &at, ModelDescription &d) {
    StatusOr<std::pair<std::string, std::vector<std::string>>> parsed = parseSignature(signature);
    if (!parsed.ok())
      return error(at, parsed.status().message());
    Block block;
    block.parameters = parsed->second;
    std::vector<std::string> lines = texts(json, at);
    for (size_t i = 0; i < lines.size(); ++i) {
      StatusOr<Statement> statement = parseStatement(lines[i]);
      if (statement.ok())
        block.statements.push_back(std::move(*statement));
      else
        error(at + "/" + std::to_string(i), statement.status().message());
    }
    if (!d.blocks.emplace(parsed->first, std::move(block)).second)
      error(at, "is a second block '" + parsed->first + "'; blocks have one signature");
  }

  void readFormat(const Json &json, const std::string &pointer, FormatRules &rules) {
    if (!members(json, pointer,
                 {"architectures", "model_types", "recognised_by", "nested", "values", "must_equal", "per_layer", "ropes", "weights",
                  "other_prefixes", "ignored", "ignored_tensors", "parts"}))
      return;
    rules.architectures = textsMember(json, pointer, "architectures");
    rules.modelTypes = textsMember(json, pointer, "model_types");
    rules.recognisedBy = textsMember(json, pointer, "recognised_by");
    forEach(json, pointer, "nested", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.nested[name] = textMap(value, at);
    });
    forEach(json, pointer, "values", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.values[name] = readValue(name, value, at);
    });
    forEach(json, pointer, "must_equal",
            [&](const std::string &name, const Json &value, const std::string &at) { rules.mustEqual[name] = value; });
    forEach(json, pointer, "per_layer", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.perLayer[name] = readChoices(value, at);
    });
    forEach(json, pointer, "ropes", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.ropes[name] = readRope(value, at);
    });
    forEach(json, pointer, "weights", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.weights[name] = readWeight(value, at);
    });
    forEach(json, pointer, "other_prefixes", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.otherPrefixes[name] = texts(value, at);
    });
    forEach(json, pointer, "parts", [&](const std::string &name, const Json &value, const std::string &at) {
      rules.parts[name] = readPart(value, at);
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

  PartRule readPart(const Json &json, const std::string &at) {
    PartRule rule;
    if (!members(json, at, {"inherits", "key", "when", "prefix", "values", "tensors", "operators"}))
      return rule;
    rule.key = textMember(json, at, "key");
    rule.when = expressionMember(json, at, "when");
    rule.prefix = textMember(json, at, "prefix");
    forEach(json, at, "values", [&](const std::string &name, const Json &value, const std::string &where) {
      rule.values[name] = readValue(name, value, where);
    });
    forEach(json, at, "tensors", [&](const std::string &name, const Json &value, const std::string &where) {
      rule.tensors[name] = readPartTensor(value, where);
    });
    forEach(json, at, "operators", [&](const std::string &name, const Json &value, const std::string &where) {
      rule.operators.emplace_back(name, text(value, where));
    });
    return rule;
  }

  PartRule::Tensor readPartTensor(const Json &json, const std::string &at) {
    PartRule::Tensor tensor;
    const Json *shape = &json;
    if (json.is_object() && members(json, at, {"shape", "type"})) {
      tensor.type = textMember(json, at, "type");
      shape = find(json, "shape");
    }
    if (!shape || !shape->is_array())
      error(at, "is " + brief(json) + ", expected the sizes of a tensor");
    else
      for (size_t i = 0; i < shape->size(); ++i)
        tensor.shape.push_back(expression((*shape)[i], at + "/" + std::to_string(i)));
    return tensor;
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
    static const std::pair<const char *, Kind> kinds[] = {
        {"list", Kind::List}, {"letters", Kind::Letters}, {"period", Kind::Period},        {"from", Kind::From},
        {"as", Kind::As},     {"not", Kind::Not},         {"expression", Kind::Expression}};
    LayerChoice choice;
    if (!members(json, at,
                 {"list", "letters", "yes", "no", "period", "last", "from", "as", "not", "all", "expression", "extra",
                  "or_other", "when", "member"}))
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
      error(at, "names " + std::to_string(stated) +
                    " sources, expected one of list, letters, period, from, as, not, all, expression");
    if (choice.kind == Kind::Expression)
      choice.name = expression(*find(json, "expression"), at + "/expression");
    choice.other = flagMember(json, at, "or_other", false);
    if (const Json *extra = find(json, "extra")) {
      StatusOr<int64_t> count = asInteger(*extra, at + "/extra", 0, 1 << 20);
      if (count.ok())
        choice.extra = *count;
      else
        errors_.push_back(file_ + ": " + count.status().message());
    }
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
    choice.member = textMember(json, at, "member");
    return choice;
  }

  RopeRule readRope(const Json &json, const std::string &at) {
    RopeRule rule;
    if (!members(json, at,
                 {"objects", "scaling", "theta", "default_theta", "partial", "width", "original_context", "type",
                  "factor", "magnitude", "types", "divisors", "short_divisors", "long_divisors", "channels",
                  "default_partial", "default_magnitude", "ignored"}))
      return rule;
    rule.channels = expressionMember(json, at, "channels");
    rule.ignored = textsMember(json, at, "ignored");
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
    rule.defaultTheta = expressionMember(json, at, "default_theta");
    rule.defaultPartial = numberMember(json, at, "default_partial");
    rule.defaultMagnitude = numberMember(json, at, "default_magnitude");
    if (const Json *types = find(json, "types"))
      rule.types = textMap(*types, at + "/types");
    for (const auto &[published, type] : rule.types)
      if (!ropeTypes.count(type))
        error(at + "/types/" + published,
              "'" + type + "' is unknown (known = default, linear, llama3, longrope, proportional, yarn)");
    return rule;
  }

  std::optional<double> numberMember(const Json &json, const std::string &at, const char *name) {
    const Json *number = find(json, name);
    if (!number)
      return {};
    if (number->is_number())
      return number->get<double>();
    error(at + "/" + name, "is " + brief(*number) + ", expected a number");
    return {};
  }
  std::string expression(const Json &json, const std::string &at) {
    std::string text = json.is_number() ? json.dump() : this->text(json, at);
    if (StatusOr<Expression> parsed = parseExpression(text); !parsed.ok())
      error(at, parsed.status().message());
    return text;
  }
  std::string expressionMember(const Json &json, const std::string &at, const char *name) {
    const Json *value = find(json, name);
    return value ? expression(*value, at + "/" + name) : "";
  }
  std::pair<std::string, std::string> range(const Json &json, const std::string &at) {
    if (json.is_array() && json.size() == 2)
      return {expression(json[0], at + "/0"), expression(json[1], at + "/1")};
    error(at, "is " + brief(json) + ", expected [first, one after the last]");
    return {};
  }

  WeightRule readWeight(const Json &json, const std::string &at) {
    WeightRule rule;
    if (!json.is_array()) {
      rule.sources.push_back(readSource(json, at, rule));
      return rule;
    }
    for (size_t i = 0; i < json.size(); ++i)
      rule.sources.push_back(readSource(json[i], at + "/" + std::to_string(i), rule));
    if (rule.sources.empty())
      error(at, "names no tensor");
    return rule;
  }

  WeightRule::Source readSource(const Json &json, const std::string &at, WeightRule &rule) {
    WeightRule::Source source;
    if (json.is_string()) {
      source.tensor = json.get<std::string>();
      return source;
    }
    if (!members(json, at,
                 {"tensor", "rows", "unpermute", "stack", "dims", "take", "order", "map", "type", "in_layer", "prefix",
                  "constant", "times"}))
      return source;
    source.tensor = textMember(json, at, "tensor");
    source.constant = expressionMember(json, at, "constant");
    source.times = expressionMember(json, at, "times");
    if (source.tensor.empty() == source.constant.empty())
      error(at, source.tensor.empty() ? "names no tensor" : "names a tensor and a constant; expected one of them");
    source.map = textMember(json, at, "map");
    source.type = textMember(json, at, "type");
    source.unpermute = expressionMember(json, at, "unpermute");
    source.stack = expressionMember(json, at, "stack");
    rule.inLayer = flagMember(json, at, "in_layer", true);
    source.prefix = flagMember(json, at, "prefix", true);
    if (const Json *rows = find(json, "rows"))
      source.rows = range(*rows, at + "/rows");
    readView(json, at, source);
    return source;
  }

  void readView(const Json &json, const std::string &at, WeightRule::Source &source) {
    auto list = [&](const char *name, auto read) {
      const Json *value = find(json, name);
      if (value && !value->is_array())
        error(at + "/" + name, "is " + brief(*value) + ", expected a list");
      else if (value)
        for (size_t i = 0; i < value->size(); ++i)
          read((*value)[i], at + "/" + name + "/" + std::to_string(i));
    };
    list("dims", [&](const Json &size, const std::string &where) { source.dims.push_back(expression(size, where)); });
    list("take", [&](const Json &part, const std::string &where) {
      source.take.push_back(part.is_null() ? std::nullopt : std::optional(range(part, where)));
    });
    list("order", [&](const Json &dimension, const std::string &where) {
      StatusOr<int64_t> index = asInteger(dimension, where, 0, 7);
      if (index.ok())
        source.order.push_back(*index);
      else
        errors_.push_back(file_ + ": " + index.status().message());
    });
    if (!source.take.empty() && source.take.size() != source.dims.size())
      error(at + "/take", "has " + std::to_string(source.take.size()) + " ranges for " +
                              std::to_string(source.dims.size()) + " dimensions");
  }

  const std::string &file_;
  std::vector<std::string> &errors_;
};

} // namespace

ModelDescription parseDescription(const Json &merged, const std::string &file, std::vector<std::string> &errors) {
  return Reader(file, errors).read(merged);
}

} // namespace llmc
