// Edits of a config go by the keys that the family's description names; no key is known here.
#include "lib/synth/CheckpointConfig.h"
#include "lib/importer/ValueReader.h"

namespace llmc {
namespace {

// The member at "a/b", or nullptr.
Json *memberAt(Json &config, const std::string &path) {
  Json *value = &config;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    if (!value->is_object())
      return nullptr;
    auto it = value->find(path.substr(begin, end - begin));
    if (it == value->end())
      return nullptr;
    value = &*it;
    begin = end + 1;
  }
  return value;
}

class ConfigEditor {
public:
  ConfigEditor(const FormatRules &rules, Json config) : rules_(rules), config_(std::move(config)) {
    for (const auto &nested : rules.nested)
      if (Json *object = memberAt(config_, nested.first); object && object->is_object())
        nested_ = nested.first;
  }

  // Every statement of `key`: in the object that holds the text model, and beside it.
  template <typename Change> bool change(const std::string &key, Change change) {
    bool stated = false;
    for (const std::string &full : {nested_.empty() ? key : nested_ + "/" + key, key})
      if (Json *value = memberAt(config_, full); value && !value->is_null()) {
        change(*value);
        stated = true;
        if (full == key)
          break;
      }
    return stated;
  }

  bool erase(const std::string &key) {
    bool erased = config_.erase(key) > 0;
    if (!nested_.empty())
      erased = config_[nested_].erase(key) > 0 || erased;
    return erased;
  }

  const std::vector<std::string> &keysOf(const std::string &value) const {
    static const std::vector<std::string> none;
    auto rule = rules_.values.find(value);
    return rule == rules_.values.end() ? none : rule->second.keys;
  }

  void set(const std::string &key, Json value) { (nested_.empty() ? config_ : config_[nested_])[key] = value; }
  Json take() { return std::move(config_); }

private:
  const FormatRules &rules_;
  Json config_;
  std::string nested_;
};

void shorten(Json &list, size_t layers) {
  if (list.is_array() && list.size() > layers)
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(layers), list.end());
  // Letters are repeated over the layers; the first ones are those of the first layers.
  if (list.is_string() && list.get_ref<const std::string &>().size() > layers)
    list = list.get<std::string>().substr(0, layers);
}

Status keepLayers(ConfigEditor &editor, const FormatRules &rules, int64_t layers, int64_t published) {
  if (layers > published)
    return Status::error("asked for " + std::to_string(layers) + " layers, but the model has " +
                         std::to_string(published) + "; ask for at most as many");
  bool stated = false;
  for (const std::string &key : editor.keysOf("layers"))
    stated = editor.change(key, [&](Json &value) { value = layers; }) || stated;
  if (!stated)
    editor.set(editor.keysOf("layers").front(), layers);
  for (const auto &fact : rules.perLayer)
    for (const LayerChoice &choice : fact.second)
      if (choice.kind == LayerChoice::Kind::List || choice.kind == LayerChoice::Kind::Letters)
        editor.change(choice.name, [&](Json &value) { shorten(value, static_cast<size_t>(layers)); });
  return {};
}

void stateWeightType(ConfigEditor &editor, const std::string &type) {
  const std::vector<std::string> &keys = editor.keysOf("weight_type");
  bool stated = false;
  for (const std::string &key : keys)
    stated = editor.change(key, [&](Json &value) { value = type; }) || stated;
  if (!stated && !keys.empty())
    editor.set(keys.front(), type);
}

} // namespace

StatusOr<CheckpointConfig> checkpointConfig(const ModelDescription &family, Json config,
                                            const CheckpointConfigChanges &changes) {
  const FormatRules &rules = family.rules(ConfigFormat::HuggingFace);
  CheckpointConfig result;
  HuggingFaceConfig source(config);
  std::vector<Fact> facts;
  ValueReader values(rules, source, facts);
  LLMC_ASSIGN_OR_RETURN(int64_t published, values.integer("layers"));
  ConfigEditor editor(rules, std::move(config));
  if (changes.layers > 0)
    LLMC_RETURN_IF_ERROR(keepLayers(editor, rules, changes.layers, published));
  if (!changes.weightType.empty())
    stateWeightType(editor, changes.weightType);
  for (const std::string &key : editor.keysOf("quantization"))
    if (std::string object = key.substr(0, key.find('/')); editor.erase(object))
      result.notes.push_back(object + " is left out: the weights are plain tensors");
  result.config = editor.take();
  return result;
}

} // namespace llmc
