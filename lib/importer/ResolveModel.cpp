// resolveModel: choose the family, read the model-wide values and the facts of the layers, wire the graph, then account
// for every key.
#include "lib/importer/ResolveModel.h"
#include "lib/importer/ModelParts.h"
#include "lib/importer/Wiring.h"
#include <algorithm>

namespace llmc {
namespace {

// Packings that published files use. What each means for the weights is decided where they are read.
const std::vector<std::string> knownQuantizations = {"awq", "compressed-tensors", "fp8", "gptq", "modelopt", "mxfp4"};

// Reasons of descriptions that tell of a part that is not run, and not of tensors without meaning.
constexpr const char *textOnly = "text only", *notRun = "not run";

size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

Status unknownArchitecture(std::vector<std::string> known, const std::string &name) {
  constexpr size_t shownNames = 3;
  std::string nearest, shown = name.substr(0, 100);
  std::sort(known.begin(), known.end(), [&](const std::string &a, const std::string &b) {
    size_t left = editDistance(shown, a), right = editDistance(shown, b);
    return left != right ? left < right : a < b;
  });
  for (size_t i = 0; i < std::min(shownNames, known.size()); ++i)
    nearest += (i ? ", " : "") + known[i];
  return Status::error("architecture '" + shown + "' is unknown (nearest = " + nearest + "; " +
                       std::to_string(known.size()) + " are known)");
}

bool contains(const std::vector<std::string> &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool matches(const std::string &pattern, const std::string &key) {
  if (!pattern.empty() && pattern.back() == '*')
    return key.rfind(pattern.substr(0, pattern.size() - 1), 0) == 0;
  return pattern == key;
}

bool saysNothing(const Json &value) {
  return value.is_null() || value == Json(false) || (value.is_number() && value == 0) ||
         ((value.is_string() || value.is_structured()) && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string &>().empty());
}

// The top-level name of every key that a description mentions.
std::set<std::string> mentionedKeys(const FormatRules &rules) {
  std::set<std::string> names;
  auto add = [&](const std::string &key) { names.insert(key.substr(0, key.find('/'))); };
  for (const auto &value : rules.values) {
    for (const std::string &key : value.second.keys)
      add(key);
    add(value.second.lengthOf);
  }
  for (const auto &key : rules.mustEqual)
    add(key.first);
  for (const auto &entry : rules.perLayer)
    for (const LayerChoice &choice : entry.second)
      if (choice.kind == LayerChoice::Kind::List || choice.kind == LayerChoice::Kind::Letters)
        add(choice.name);
  for (const auto &part : rules.parts)
    add(part.second.key);
  for (const auto &[name, rope] : rules.ropes)
    for (const auto *keys : {&rope.objects, &rope.scaling, &rope.theta, &rope.partial, &rope.width,
                             &rope.originalContext, &rope.type, &rope.factor, &rope.magnitude})
      for (const std::string &key : *keys)
        add(key);
  return names;
}

class KeyAccount {
public:
  KeyAccount(const ValueReader &values, ModelSpec &spec)
      : values_(values), spec_(spec), mentioned_(mentionedKeys(values.rules())) {}

  void run() {
    const ConfigSource &source = values_.source();
    for (const std::string &key : source.keys())
      if (key != values_.nested())
        account(key, source.get(key), source.pointer(key));
    if (values_.nested().empty())
      return;
    const Json *inner = source.get(values_.nested());
    for (auto it = inner->begin(); it != inner->end(); ++it)
      account(it.key(), &it.value(), source.pointer(values_.nested() + "/" + it.key()));
  }

private:
  void account(const std::string &key, const Json *value, const std::string &pointer) {
    if (!value || mentioned_.count(key))
      return;
    for (const auto &[pattern, why] : values_.rules().ignored)
      if (matches(pattern, key)) {
        spec_.ignoredKeys.push_back(pointer);
        if (key == "auto_map")
          spec_.notes.push_back(key + " is ignored, " + why);
        return;
      }
    (saysNothing(*value) ? spec_.ignoredKeys : spec_.unknownKeys).push_back(pointer);
  }

  const ValueReader &values_;
  ModelSpec &spec_;
  std::set<std::string> mentioned_;
};

Status checkEqual(ValueReader &values) {
  for (const auto &[key, expected] : values.rules().mustEqual) {
    Stated found = values.stated(key);
    if (!found.json)
      continue;
    Json wanted = expected;
    if (expected.is_string()) {
      LLMC_ASSIGN_OR_RETURN(Scalar value, values.evaluateAny(expected.get<std::string>()));
      wanted = value.kind == Scalar::Kind::Number ? Json(value.number) : Json(value.word);
    }
    if (*found.json != wanted)
      return Status::error(found.pointer + " is " + brief(*found.json) + ", but only " +
                           (wanted.is_number() ? printNumber(wanted.get<double>()) : brief(wanted)) +
                           (expected.is_string() ? " (" + expected.get<std::string>() + ")" : "") + " is supported");
  }
  return {};
}

// A tie that is stated outside of the nested text model and inside, and not alike, decides nothing: what is stored
// does.
void compareTies(const ConfigSource &source, ValueReader &values, ModelSpec &spec) {
  const FormatRules &rules = values.rules();
  auto rule = rules.values.find("tied_head");
  if (rule == rules.values.end())
    return;
  for (const std::string &key : rule->second.keys)
    for (const auto &[object, prefixes] : rules.nested) {
      const Json *outer = source.get(key), *inner = source.get(object + "/" + key);
      if (!outer || !inner || !outer->is_boolean() || !inner->is_boolean() || *outer == *inner)
        continue;
      spec.tiedHead = spec.tiedHeadStated = false;
      values.replace("tied_head", Scalar::of(0.0));
      spec.notes.push_back(source.pointer(key) + " is " + outer->dump() + ", " + source.pointer(object + "/" + key) +
                           " is " + inner->dump() + ": whether a head is stored decides");
    }
}

Status readModel(ValueReader &values, ModelSpec &spec) {
  LLMC_ASSIGN_OR_RETURN(spec.layers, values.integer("layers"));
  LLMC_ASSIGN_OR_RETURN(spec.hidden, values.integer("hidden"));
  LLMC_ASSIGN_OR_RETURN(spec.vocabulary, values.integer("vocabulary"));
  LLMC_ASSIGN_OR_RETURN(spec.context, values.integer("context"));
  LLMC_ASSIGN_OR_RETURN(spec.tiedHead, values.flag("tied_head"));
  spec.tiedHeadStated = values.isStated("tied_head");
  LLMC_ASSIGN_OR_RETURN(spec.weightType, values.word("weight_type"));
  LLMC_ASSIGN_OR_RETURN(spec.quantization, values.word("quantization"));
  if (spec.quantization.empty())
    return {};
  std::string object = values.label("quantization");
  if (Stated found = values.stated(object.substr(0, object.find('/'))); found.json)
    spec.quantizationDetails = found.json->dump();
  return {};
}

void addPrefixes(const FormatRules &rules, ModelSpec &spec) {
  for (const auto &[prefix, others] : rules.otherPrefixes)
    for (const std::string &other : others)
      spec.otherPrefixes.emplace_back(prefix, other);
  for (const auto &ignored : rules.ignoredTensors)
    spec.ignorableTensors.push_back(ignored.first);
}

// Whether the model has tensors of that name: as the files say, or as the ignored keys of its config suggest.
bool hasPart(const ValueReader &values, const ModelSpec &spec, const std::string &pattern, const std::string &why) {
  const ConfigSource &source = values.source();
  if (std::optional<bool> stored = source.hasMatch(pattern))
    return *stored;
  if (why.rfind(textOnly, 0) != 0)
    return true;
  if (!spec.parts.empty()) // they say it better
    return false;
  for (const auto &[key, reason] : values.rules().ignored)
    if (const Json *stated = source.get(key); stated && stated->is_object() && reason.rfind(textOnly, 0) == 0)
      return true;
  return false;
}

// What is known and not run beside the parts: tensors of which the description says so.
void listMissing(const ValueReader &values, ModelSpec &spec) {
  for (const auto &[pattern, why] : values.rules().ignoredTensors)
    if ((why.rfind(textOnly, 0) == 0 || why.find(notRun) != std::string::npos) && hasPart(values, spec, pattern, why))
      spec.missing.push_back({pattern, why});
}

// How the weights are packed may be unknown without the config being unreadable.
Status checkQuantization(ValueReader &values, UnknownKeys unknownKeys, ModelSpec &spec) {
  if (spec.quantization.empty() || contains(knownQuantizations, spec.quantization))
    return {};
  if (unknownKeys == UnknownKeys::Report) {
    spec.unknownKeys.push_back(values.stated(values.label("quantization")).pointer);
    spec.notes.push_back("how '" + spec.quantization + "' packs weights is unknown; they count as plain ones");
    return {};
  }
  std::string known;
  for (const std::string &method : knownQuantizations)
    known += (known.empty() ? "" : ", ") + method;
  return Status::error(values.label("quantization") + " '" + spec.quantization + "' is unknown (known = " + known + ")");
}

Status refuseUnknown(const ModelSpec &spec, const ConfigSource &source) {
  std::string list;
  for (const std::string &pointer : spec.unknownKeys)
    list += (list.empty() ? "" : ", ") + pointer;
  bool many = spec.unknownKeys.size() > 1;
  return Status::error(source.file() + (many ? " has keys" : " has a key") + " that family '" + spec.family +
                       "' does not know and that may change the maths: " + list + "; describe or ignore " +
                       (many ? "them" : "it") + " in the family's model description");
}

// A wrapper of several families of text models says which it holds in an object: "Wrapper/TextForCausalLM".
std::vector<std::string> wrappedNames(const ConfigSource &source, const std::string &architecture) {
  std::vector<std::string> names;
  for (const std::string &key : source.keys())
    if (const Json *inner = source.get(key + "/architectures");
        inner && inner->is_array() && !inner->empty() && inner->front().is_string())
      names.push_back(architecture + "/" + inner->front().get<std::string>());
  return names;
}

} // namespace

StatusOr<const ModelDescription *> selectFamily(const ModelDescriptions &descriptions, const ConfigSource &source) {
  std::string architecture = source.architecture();
  const Json *type = source.format() == ConfigFormat::HuggingFace ? source.get("model_type") : nullptr;
  bool byType = architecture.empty() && type && type->is_string();
  std::string name = byType ? type->get<std::string>() : architecture;
  std::vector<std::string> known, names = {name};
  if (!byType && source.format() == ConfigFormat::HuggingFace)
    for (std::string &wrapped : wrappedNames(source, architecture))
      names.push_back(std::move(wrapped));
  for (const ModelDescription &family : descriptions.families) {
    const FormatRules &rules = family.rules(source.format());
    const std::vector<std::string> &served = byType ? rules.modelTypes : rules.architectures;
    if (std::any_of(names.begin(), names.end(), [&](const std::string &each) { return contains(served, each); }))
      return &family;
    known.insert(known.end(), served.begin(), served.end());
  }
  if (name.empty())
    for (const ModelDescription &family : descriptions.families) {
      const std::vector<std::string> &keys = family.rules(source.format()).recognisedBy;
      if (!keys.empty() && std::all_of(keys.begin(), keys.end(), [&](const std::string &key) { return source.get(key); }))
        return &family;
    }
  if (name.empty() && source.get("peft_type"))
    return Status::error("this is an adapter; the base model is missing");
  if (name.empty())
    return Status::error(source.file() + " names no architecture: no 'architectures', no 'model_type'");
  std::sort(known.begin(), known.end());
  return unknownArchitecture(known, name);
}

StatusOr<ModelSpec> resolveModel(const ModelDescriptions &descriptions, const ConfigSource &source,
                                 UnknownKeys unknownKeys) {
  LLMC_ASSIGN_OR_RETURN(const ModelDescription *family, selectFamily(descriptions, source));
  ModelSpec spec;
  spec.family = family->family;
  spec.architecture = source.architecture();
  ValueReader values(family->rules(source.format()), source, spec.facts);
  LLMC_RETURN_IF_ERROR(readModel(values, spec));
  LLMC_RETURN_IF_ERROR(checkQuantization(values, unknownKeys, spec));
  compareTies(source, values, spec);
  LLMC_ASSIGN_OR_RETURN(LayerFacts facts, resolveLayerFacts(values, spec.layers, spec));
  LLMC_RETURN_IF_ERROR(checkEqual(values));
  addPrefixes(values.rules(), spec);
  if (!family->blocks.empty())
    LLMC_RETURN_IF_ERROR(wireModel(*family, values, facts, spec));
  if (spec.tiedHead && spec.isWired()) { // A head that is stored all the same is compared with the embedding, not refused.
    LLMC_ASSIGN_OR_RETURN(spec.tiedHeadTensor, WeightCatalog(values, spec).published("head"));
  }
  KeyAccount(values, spec).run();
  LLMC_RETURN_IF_ERROR(resolveParts(values, spec));
  listMissing(values, spec);
  if (!spec.unknownKeys.empty() && unknownKeys == UnknownKeys::Refuse)
    return refuseUnknown(spec, source);
  return spec;
}

} // namespace llmc
