#include "lib/importer/TextDescription.h"
#include "models/Embedded.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace llmc {
namespace {

constexpr const char *folderName = "models/text/";
constexpr int64_t maxId = std::numeric_limits<int32_t>::max();

using Files = std::map<std::string, std::string>; // name -> text

StatusOr<std::vector<std::string>> strings(const Json &value, const std::string &pointer) {
  if (!value.is_array())
    return Status::error(pointer + " is " + brief(value) + ", expected a list of texts");
  std::vector<std::string> out;
  for (size_t i = 0; i < value.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(std::string text, asString(value[i], pointer + "/" + std::to_string(i)));
    out.push_back(std::move(text));
  }
  return out;
}

// Alternatives, one of a line.
StatusOr<std::string> readPattern(const Json &value, const std::string &pointer) {
  LLMC_ASSIGN_OR_RETURN(std::vector<std::string> alternatives, strings(value, pointer));
  std::string out;
  for (const std::string &alternative : alternatives)
    out += (out.empty() ? "" : "|") + alternative;
  return out;
}

Status unknownKey(const std::string &pointer, const std::string &key, const char *known) {
  return Status::error(pointer + " has the member '" + key + "' (known = " + known + ")");
}

StatusOr<TiktokenRules> readTiktoken(const Json &json, const std::string &pointer) {
  if (!json.is_object())
    return Status::error(pointer + " is " + brief(json) + ", expected an object");
  TiktokenRules rules;
  for (const auto &[key, value] : json.items()) {
    const std::string at = pointer + "/" + key;
    if (key == "file") {
      LLMC_ASSIGN_OR_RETURN(rules.file, asString(value, at));
    } else if (key == "pattern") {
      LLMC_ASSIGN_OR_RETURN(rules.pattern, readPattern(value, at));
    } else if (key == "special_ids") {
      LLMC_ASSIGN_OR_RETURN(rules.specialIds, asInteger(value, at, 0, 1 << 20));
    } else if (key == "filler") {
      LLMC_ASSIGN_OR_RETURN(rules.filler, asString(value, at));
    } else if (key == "prefix") {
      LLMC_ASSIGN_OR_RETURN(rules.prefix, strings(value, at));
    } else if (key == "cut_characters") {
      LLMC_ASSIGN_OR_RETURN(rules.cutCharacters, asInteger(value, at, 0, maxId));
    } else if (key == "cut_run_characters") {
      LLMC_ASSIGN_OR_RETURN(rules.cutRunCharacters, asInteger(value, at, 0, maxId));
    } else {
      return unknownKey(pointer, key, "file, pattern, special_ids, filler, prefix, cut_characters, cut_run_characters");
    }
  }
  if (rules.pattern.empty())
    return Status::error(pointer + "/pattern is missing");
  if (rules.specialIds > 0 && rules.filler.find("{id}") == std::string::npos &&
      rules.filler.find("{n}") == std::string::npos)
    return Status::error(pointer + "/filler is " + inQuotes(rules.filler) + ", expected a name with {id} or {n} in it");
  return rules;
}

StatusOr<std::map<std::string, int32_t>> readSpecialTokens(const Json &json, const std::string &pointer) {
  if (!json.is_object())
    return Status::error(pointer + " is " + brief(json) + ", expected an object of texts and ids");
  std::map<std::string, int32_t> out;
  for (const auto &[content, value] : json.items()) {
    LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(value, pointer + "/" + content, 0, maxId));
    out[content] = static_cast<int32_t>(id);
  }
  return out;
}

StatusOr<TextDescription> readDescription(const Json &json, const std::string &name, const Files &files) {
  TextDescription out;
  out.file = folderName + name;
  for (const auto &[key, value] : json.items()) {
    const std::string at = out.file + ": /" + key;
    if (key == "model_types") {
      LLMC_ASSIGN_OR_RETURN(out.modelTypes, strings(value, at));
    } else if (key == "tokenizer_classes") {
      LLMC_ASSIGN_OR_RETURN(out.tokenizerClasses, strings(value, at));
    } else if (key == "tiktoken") {
      LLMC_ASSIGN_OR_RETURN(out.tiktoken, readTiktoken(value, at));
    } else if (key == "special_tokens") {
      LLMC_ASSIGN_OR_RETURN(out.specialTokens, readSpecialTokens(value, at));
    } else if (key == "chat_template") {
      LLMC_ASSIGN_OR_RETURN(out.chatTemplateFile, asString(value, at));
      auto source = files.find(out.chatTemplateFile);
      if (source == files.end())
        return Status::error(at + " is " + inQuotes(out.chatTemplateFile) + ", which is not beside it");
      out.chatTemplate = source->second;
    } else if (key != "about") {
      return unknownKey(out.file, key,
                        "about, model_types, tokenizer_classes, tiktoken, special_tokens, chat_template");
    }
  }
  return out;
}

Status addFolder(Files &files, const std::string &folder) {
  std::error_code code; // a folder of descriptions need not say anything about text
  for (const auto &entry : std::filesystem::directory_iterator(folder, code)) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".json" && path.extension() != ".jinja")
      continue;
    LLMC_ASSIGN_OR_RETURN(files[path.filename().string()], readFile(path.string(), limits::configBytes));
  }
  return {};
}

bool contains(const std::vector<std::string> &list, const std::string &name) {
  return !name.empty() && std::find(list.begin(), list.end(), name) != list.end();
}

} // namespace

StatusOr<TextDescriptions> TextDescriptions::load(const std::string &folder) {
  Files files;
  for (const EmbeddedDescription &embedded : embeddedTexts())
    files[std::string(embedded.file)] = std::string(embedded.text);
  const char *fromEnvironment = std::getenv("LLMC_MODELS");
  std::string overlay = !folder.empty() ? folder : fromEnvironment ? fromEnvironment : "";
  if (!overlay.empty())
    LLMC_RETURN_IF_ERROR(addFolder(files, overlay + "/text"));
  TextDescriptions out;
  for (const auto &[name, text] : files) {
    if (!name.ends_with(".json"))
      continue;
    LLMC_ASSIGN_OR_RETURN(Json json, parseJson(text, folderName + name));
    LLMC_ASSIGN_OR_RETURN(TextDescription description, readDescription(json, name, files));
    out.all_.push_back(std::move(description));
  }
  return out;
}

template <typename Has> const TextDescription *TextDescriptions::find(const TextOwner &owner, Has has) const {
  for (const TextDescription &description : all_)
    if (has(description) && contains(description.modelTypes, owner.modelType))
      return &description;
  for (const TextDescription &description : all_)
    if (has(description) && contains(description.tokenizerClasses, owner.tokenizerClass))
      return &description;
  return nullptr;
}

const TiktokenRules *TextDescriptions::tiktoken(const TextOwner &owner) const {
  const TextDescription *found = find(owner, [](const TextDescription &d) { return d.tiktoken.has_value(); });
  return found ? &*found->tiktoken : nullptr;
}

const std::map<std::string, int32_t> *TextDescriptions::specialTokens(const TextOwner &owner) const {
  const TextDescription *found = find(owner, [](const TextDescription &d) { return !d.specialTokens.empty(); });
  return found ? &found->specialTokens : nullptr;
}

const TextDescription *TextDescriptions::chatFormat(const TextOwner &owner) const {
  return find(owner, [](const TextDescription &d) { return !d.chatTemplate.empty(); });
}

std::vector<std::string> TextDescriptions::tiktokenFiles() const {
  std::vector<std::string> out;
  for (const TextDescription &description : all_)
    if (description.tiktoken && !contains(out, description.tiktoken->file))
      out.push_back(description.tiktoken->file);
  return out;
}

std::string TextDescriptions::knownTokenizerClasses() const {
  std::string out;
  for (const TextDescription &description : all_)
    for (const std::string &name : description.tokenizerClasses)
      out += (out.empty() ? "" : ", ") + name;
  return out;
}

} // namespace llmc
