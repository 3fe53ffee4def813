// Generation settings from the several places where they are published.
#include "lib/importer/GenerationFacts.h"
#include "lib/importer/TextDescription.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace llmc {
namespace {

constexpr int64_t maxId = std::numeric_limits<int32_t>::max();
const char *const tokenRoles[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                  "sep_token", "cls_token", "mask_token"};

// One JSON object and how messages call it.
struct Place {
  std::string file;
  std::function<const Json *(const std::string &)> get;
  std::function<std::string(const std::string &)> pointer;
};

Place placeOf(const ConfigSource &source) {
  return {source.file(), [&source](const std::string &key) { return source.get(key); },
          [&source](const std::string &key) { return source.pointer(key); }};
}
Place placeOf(const Json &json, const std::string &file) {
  return {file, [&json](const std::string &key) { return find(json, key); },
          [file](const std::string &key) { return file + ": /" + key; }};
}

const Json *valueAt(const Place &place, const std::string &key) {
  const Json *value = place.get(key);
  return value && !value->is_null() ? value : nullptr;
}

class Collector {
public:
  GenerationFacts facts;

  void record(const std::string &name, const std::string &value, const std::string &origin) {
    facts.facts.push_back({name, value, origin});
  }

  // One id or a list of them; adds to what is there.
  Status ids(const Place &place, const std::string &key, const std::string &name, std::vector<int64_t> &into) {
    const Json *value = valueAt(place, key);
    if (!value)
      return {};
    auto add = [&](const Json &one, const std::string &pointer) -> Status {
      LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(one, pointer, 0, maxId));
      if (std::find(into.begin(), into.end(), id) == into.end())
        into.push_back(id);
      return {};
    };
    if (!value->is_array())
      LLMC_RETURN_IF_ERROR(add(*value, place.pointer(key)));
    else
      for (size_t i = 0; i < value->size(); ++i)
        LLMC_RETURN_IF_ERROR(add((*value)[i], place.pointer(key) + "/" + std::to_string(i)));
    record(name, value->dump(), "stated as " + place.pointer(key));
    return {};
  }

  // -1 is how some published files say that there is none.
  Status id(const Place &place, const std::string &key, std::optional<int64_t> &into) {
    const Json *value = valueAt(place, key);
    if (!value || into)
      return {};
    LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(*value, place.pointer(key), -1, maxId));
    if (id < 0)
      return {};
    into = id;
    record(key, std::to_string(id), "stated as " + place.pointer(key));
    return {};
  }

  Status number(const Place &place, const std::string &key, double min, double max, std::optional<double> &into) {
    const Json *value = valueAt(place, key);
    if (!value || into)
      return {};
    LLMC_ASSIGN_OR_RETURN(double number, asNumber(*value, place.pointer(key)));
    if (!(number >= min && number <= max))
      return Status::error(place.pointer(key) + " is " + brief(*value) + ", expected " + Json(min).dump() + " to " +
                           Json(max).dump());
    into = number;
    record(key, value->dump(), "stated as " + place.pointer(key));
    return {};
  }

  Status flag(const Place &place, const std::string &key, std::optional<bool> &into) {
    const Json *value = valueAt(place, key);
    if (!value || into)
      return {};
    LLMC_ASSIGN_OR_RETURN(into, asBool(*value, place.pointer(key)));
    record(key, *into ? "true" : "false", "stated as " + place.pointer(key));
    return {};
  }

  void special(const std::string &role, std::string text) {
    for (const auto &known : facts.specialTokens)
      if (known.first == role)
        return;
    facts.specialTokens.emplace_back(role, std::move(text));
  }

  void chatTemplate(const std::string &name, std::string source, const std::string &origin) {
    if (name == "default" && facts.chatTemplate.empty()) {
      record("chat_template", std::to_string(source.size()) + " bytes", origin);
      facts.chatTemplate = std::move(source);
    } else if (name != "default") {
      facts.otherTemplates.emplace_back(name, std::move(source));
    }
  }
};

Status readSampling(const Place &place, Collector &out) {
  LLMC_RETURN_IF_ERROR(out.flag(place, "do_sample", out.facts.sample));
  LLMC_RETURN_IF_ERROR(out.number(place, "temperature", 0.0, 1e6, out.facts.temperature));
  LLMC_RETURN_IF_ERROR(out.number(place, "top_p", 0.0, 1.0, out.facts.topP));
  LLMC_RETURN_IF_ERROR(out.number(place, "min_p", 0.0, 1.0, out.facts.minP));
  LLMC_RETURN_IF_ERROR(out.number(place, "repetition_penalty", 0.0, 1e6, out.facts.repetitionPenalty));
  std::optional<double> topK;
  LLMC_RETURN_IF_ERROR(out.number(place, "top_k", 0.0, static_cast<double>(maxId), topK));
  if (topK)
    out.facts.topK = static_cast<int64_t>(*topK);
  return {};
}

Status readIds(const Place &place, Collector &out) {
  // The first file that states stop ids decides: a later one names the tokenizer's idea, which may end nothing.
  if (out.facts.eosIds.empty())
    LLMC_RETURN_IF_ERROR(out.ids(place, "eos_token_id", "eos_token_id", out.facts.eosIds));
  LLMC_RETURN_IF_ERROR(out.id(place, "bos_token_id", out.facts.bosId));
  return out.id(place, "pad_token_id", out.facts.padId);
}

// "<s>", or an object with the text as `content`.
void readSpecialTokens(const Json &json, Collector &out) {
  for (const char *role : tokenRoles) {
    const Json *value = find(json, role);
    if (value && value->is_object())
      value = find(*value, "content");
    if (value && value->is_string())
      out.special(role, value->get<std::string>());
  }
}

// One template, or a list of objects with name and template.
Status readTemplates(const Json &json, const std::string &file, Collector &out) {
  const Json *value = find(json, "chat_template");
  std::string pointer = file + ": /chat_template";
  if (!value || value->is_null())
    return {};
  if (value->is_string()) {
    out.chatTemplate("default", value->get<std::string>(), "stated as " + pointer);
    return {};
  }
  if (!value->is_array())
    return Status::error(pointer + " is " + brief(*value) + ", expected a string or a list of named templates");
  for (size_t i = 0; i < value->size(); ++i) {
    const Json *name = find((*value)[i], "name"), *source = find((*value)[i], "template");
    std::string at = pointer + "/" + std::to_string(i);
    if (!name || !name->is_string() || !source || !source->is_string())
      return Status::error(at + " is " + brief((*value)[i]) + ", expected an object with name and template");
    out.chatTemplate(name->get<std::string>(), source->get<std::string>(), "stated as " + at);
  }
  return {};
}

// A file that may be absent.
StatusOr<std::optional<Json>> readIfThere(const std::string &path, uint64_t maxBytes) {
  if (!fileExists(path))
    return std::optional<Json>();
  LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(path, maxBytes));
  return std::optional<Json>(std::move(json));
}

Status readTemplateFiles(const std::string &folder, Collector &out) {
  std::string path = folder + "/chat_template.jinja";
  if (fileExists(path)) {
    LLMC_ASSIGN_OR_RETURN(std::string source, readFile(path, limits::templateSourceBytes));
    out.chatTemplate("default", std::move(source), "stored as chat_template.jinja");
  }
  std::vector<std::filesystem::path> others;
  std::error_code code; // a folder that is not there holds no templates
  for (const auto &entry : std::filesystem::directory_iterator(folder + "/additional_chat_templates", code))
    if (entry.path().extension() == ".jinja")
      others.push_back(entry.path());
  std::sort(others.begin(), others.end());
  for (const auto &other : others) {
    LLMC_ASSIGN_OR_RETURN(std::string source, readFile(other.string(), limits::templateSourceBytes));
    out.chatTemplate(other.stem().string(), std::move(source), "stored as " + other.filename().string());
  }
  return {};
}

Status readTokenizerFiles(const std::string &folder, Collector &out) {
  // A template in a file of its own replaces the one inside tokenizer_config.json, as its writers do.
  LLMC_RETURN_IF_ERROR(readTemplateFiles(folder, out));
  LLMC_ASSIGN_OR_RETURN(auto tokenizer, readIfThere(folder + "/tokenizer_config.json", limits::tokenizerBytes));
  if (tokenizer) {
    Place place = placeOf(*tokenizer, "tokenizer_config.json");
    LLMC_RETURN_IF_ERROR(readTemplates(*tokenizer, place.file, out));
    LLMC_RETURN_IF_ERROR(out.flag(place, "add_bos_token", out.facts.addBos));
    LLMC_RETURN_IF_ERROR(out.flag(place, "add_eos_token", out.facts.addEos));
    readSpecialTokens(*tokenizer, out);
  }
  LLMC_ASSIGN_OR_RETURN(auto separate, readIfThere(folder + "/chat_template.json", limits::configBytes));
  if (separate)
    LLMC_RETURN_IF_ERROR(readTemplates(*separate, "chat_template.json", out));
  LLMC_ASSIGN_OR_RETURN(auto special, readIfThere(folder + "/special_tokens_map.json", limits::tokenizerBytes));
  if (special)
    readSpecialTokens(*special, out);
  return {};
}

// For a model whose makers publish program text instead of a template.
Status readDescribedTemplate(const std::string &modelType, Collector &out) {
  LLMC_ASSIGN_OR_RETURN(TextDescriptions texts, TextDescriptions::load());
  if (const TextDescription *described = texts.chatFormat({modelType, ""}))
    out.chatTemplate("default", described->chatTemplate,
                     "described by " + described->file + " for model_type " + modelType);
  return {};
}

Status readFolder(const ConfigSource &config, const std::string &folder, Collector &out) {
  LLMC_ASSIGN_OR_RETURN(auto generation, readIfThere(folder + "/generation_config.json", limits::configBytes));
  if (generation) {
    Place place = placeOf(*generation, "generation_config.json");
    LLMC_RETURN_IF_ERROR(readIds(place, out));
    LLMC_RETURN_IF_ERROR(readSampling(place, out));
  }
  LLMC_RETURN_IF_ERROR(readIds(placeOf(config), out));
  if (const Json *nested = config.get("text_config")) {
    Place inner = placeOf(*nested, config.file() + ": /text_config");
    LLMC_RETURN_IF_ERROR(readIds(inner, out));
  }
  LLMC_RETURN_IF_ERROR(readTokenizerFiles(folder, out));
  const Json *type = config.get("model_type");
  return out.facts.chatTemplate.empty() && type && type->is_string() ? readDescribedTemplate(*type, out) : Status();
}

void readGgufSpecialTokens(const ConfigSource &config, Collector &out) {
  const Json *tokens = config.get("tokenizer.ggml.tokens");
  for (auto [role, key] : {std::pair("bos_token", "bos_token_id"), std::pair("eos_token", "eos_token_id"),
                           std::pair("unk_token", "unknown_token_id"), std::pair("pad_token", "padding_token_id")}) {
    const Json *id = config.get(std::string("tokenizer.ggml.") + key);
    if (!tokens || !tokens->is_array() || !id || !id->is_number_integer())
      continue;
    StatusOr<int64_t> index = asInteger(*id, key, 0, static_cast<int64_t>(tokens->size()) - 1);
    if (index.ok() && (*tokens)[static_cast<size_t>(*index)].is_string())
      out.special(role, (*tokens)[static_cast<size_t>(*index)].get<std::string>());
  }
}

Status readGguf(const ConfigSource &config, Collector &out) {
  Place place = placeOf(config);
  const std::string prefix = "tokenizer.ggml.";
  // End of text, of a turn and of a message all end an answer.
  for (const char *key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    LLMC_RETURN_IF_ERROR(out.ids(place, prefix + key, key, out.facts.eosIds));
  LLMC_RETURN_IF_ERROR(out.id(place, prefix + "bos_token_id", out.facts.bosId));
  LLMC_RETURN_IF_ERROR(out.id(place, prefix + "padding_token_id", out.facts.padId));
  LLMC_RETURN_IF_ERROR(out.flag(place, prefix + "add_bos_token", out.facts.addBos));
  LLMC_RETURN_IF_ERROR(out.flag(place, prefix + "add_eos_token", out.facts.addEos));
  const std::string name = "tokenizer.chat_template";
  for (const std::string &key : config.keys()) {
    const Json *value = config.get(key);
    if (!value || !value->is_string() || key.rfind(name, 0) != 0)
      continue;
    bool isDefault = key == name;
    if (isDefault || key[name.size()] == '.')
      out.chatTemplate(isDefault ? "default" : key.substr(name.size() + 1), value->get<std::string>(),
                       "stated as " + key);
  }
  readGgufSpecialTokens(config, out);
  return {};
}

} // namespace

StatusOr<GenerationFacts> readGenerationFacts(const ConfigSource &config, const std::string &folder) {
  Collector out;
  Status status = config.format() == ConfigFormat::Gguf ? readGguf(config, out) : readFolder(config, folder, out);
  if (!status.ok())
    return status;
  return std::move(out.facts);
}

} // namespace llmc
