// Finding descriptions, inheritance between them, and the table of values that building blocks know.
#include "lib/importer/ModelDescription.h"
#include "models/Embedded.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include <cstdlib>
#include <filesystem>

namespace llmc {
namespace {

constexpr int64_t maxWidth = 1 << 24; // channels, rows of a vocabulary; far above anything published
constexpr int64_t maxContext = 1 << 30;
constexpr int maxAncestors = 8;

using Files = std::map<std::string, Json>; // by family

Status addFile(Files &files, const std::string &name, std::string_view text) {
  LLMC_ASSIGN_OR_RETURN(Json json, parseJson(text, name));
  std::string family = std::filesystem::path(name).stem().string();
  const Json *stated = find(json, "family");
  if (!stated || *stated != Json(family))
    return Status::error(name + ": /family is " + (stated ? brief(*stated) : "absent") + ", expected \"" + family +
                         "\" as the file is called");
  files[family] = std::move(json);
  return {};
}

Status addFolder(Files &files, const std::string &folder) {
  std::error_code code;
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator(folder, code))
    if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json")
      paths.push_back(entry.path().string());
  if (code)
    return Status::error(folder + ": cannot be read as a folder of model descriptions: " + code.message());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    LLMC_ASSIGN_OR_RETURN(std::string text, readFile(path, limits::configBytes));
    LLMC_RETURN_IF_ERROR(addFile(files, path, text));
  }
  return {};
}

Status addEmbedded(Files &files) {
  for (const EmbeddedDescription &description : embeddedDescriptions())
    LLMC_RETURN_IF_ERROR(addFile(files, std::string(description.file), description.text));
  return {};
}

bool isFormat(const std::string &key) { return key == "config" || key == "gguf"; }

// A block replaces the inherited one of its name, whatever that one's parameters.
void dropSignature(Json &blocks, const std::string &signature) {
  std::string name = signature.substr(0, signature.find('(') + 1);
  for (auto it = blocks.begin(); it != blocks.end();)
    it = it.key().rfind(name, 0) == 0 ? blocks.erase(it) : std::next(it);
}

// Entries of `over` replace those of `base`; null removes. Sections merge entry by entry, entries never.
void mergeEntries(Json &base, const Json &over, int depth) {
  for (auto it = over.begin(); it != over.end(); ++it) {
    if (it->is_null()) {
      base.erase(it.key());
      continue;
    }
    if (depth == 0 && it.key() == "blocks" && it->is_object() && base.contains("blocks") && base["blocks"].is_object())
      for (auto block = it->begin(); block != it->end(); ++block)
        dropSignature(base["blocks"], block.key());
    int inner = depth == 0 && isFormat(it.key()) ? 2 : depth == 0 && it.key() == "blocks" ? 1 : depth - 1;
    if (inner > 0 && base.contains(it.key()) && base[it.key()].is_object() && it->is_object())
      mergeEntries(base[it.key()], *it, inner);
    else
      base[it.key()] = *it;
  }
}

// What a family serves is its own: a child without "architectures" serves none in that format.
void dropOwnFacts(Json &base) {
  for (const char *own : {"about", "inherits", "$schema"})
    base.erase(own);
  for (const char *format : {"config", "gguf"})
    if (base.contains(format) && base[format].is_object())
      for (const char *own : {"architectures", "model_types", "recognised_by"})
        base[format].erase(own);
}

StatusOr<Json> withAncestors(const Files &files, const std::string &family, int depth = 0);

// A part may refine the part of its name that another description has.
Status inheritParts(const Files &files, const std::string &family, Json &json, int depth) {
  for (const char *format : {"config", "gguf"}) {
    const Json *rules = find(json, format), *parts = rules ? find(*rules, "parts") : nullptr;
    if (!parts || !parts->is_object())
      continue;
    for (auto it = parts->begin(); it != parts->end(); ++it) {
      const Json *parent = find(*it, "inherits");
      if (!parent)
        continue;
      std::string where = family + ".json: /" + format + "/parts/" + it.key() + "/inherits";
      if (!parent->is_string() || depth == maxAncestors)
        return Status::error(where + " is " + brief(*parent) + ", expected the name of a description");
      StatusOr<Json> from = withAncestors(files, parent->get<std::string>(), depth + 1);
      if (!from.ok())
        return from.status().inside(where);
      const Json *others = find(*from, format), *base = others ? find(*others, "parts") : nullptr;
      base = base ? find(*base, it.key()) : nullptr;
      if (!base || !base->is_object())
        return Status::error(where + ": '" + parent->get<std::string>() + "' has no such part");
      Json merged = *base;
      mergeEntries(merged, *it, 2);
      merged.erase("inherits");
      json[format]["parts"][it.key()] = std::move(merged);
    }
  }
  return {};
}

StatusOr<Json> withAncestors(const Files &files, const std::string &family, int depth) {
  auto it = files.find(family);
  if (it == files.end())
    return Status::error("no model description for family '" + family + "'");
  const Json *parent = find(it->second, "inherits");
  if (!parent) {
    Json own = it->second;
    LLMC_RETURN_IF_ERROR(inheritParts(files, family, own, depth));
    return own;
  }
  if (!parent->is_string() || depth == maxAncestors)
    return Status::error(family + ".json: /inherits is " + brief(*parent) +
                         ", expected the name of a family, at most " + std::to_string(maxAncestors) + " deep");
  StatusOr<Json> base = withAncestors(files, parent->get<std::string>(), depth + 1);
  if (!base.ok())
    return base.status().inside(family + ".json: /inherits");
  dropOwnFacts(*base);
  mergeEntries(*base, it->second, 0);
  LLMC_RETURN_IF_ERROR(inheritParts(files, family, *base, depth));
  return base;
}

using Kind = ValueDefinition::Kind;

const std::vector<ValueDefinition> &valueDefinitions() {
  static const std::vector<ValueDefinition> table = {
      {"layers", Kind::Integer, 1, static_cast<int64_t>(limits::layers), {}, "number of layers"},
      {"hidden", Kind::Integer, 1, maxWidth, {}, "width of the residual stream"},
      {"vocabulary", Kind::Integer, 1, maxWidth, {}, "rows of the embedding"},
      {"context", Kind::Integer, 1, maxContext, {}, "positions"},
      {"heads", Kind::Integer, 1, static_cast<int64_t>(limits::heads), {}, "query heads"},
      {"kv_heads", Kind::Integer, 1, static_cast<int64_t>(limits::heads), {}, "key and value heads"},
      {"head_dim", Kind::Integer, 1, 65536, {}, "channels of a head"},
      {"intermediate", Kind::Integer, 1, maxWidth, {}, "width of the feed-forward part"},
      {"activation", Kind::Word, 0, 0, {}, "of the feed-forward part"},
      {"norm_eps", Kind::Positive, 0, 0, {}, "added to the mean square"},
      {"tied_head", Kind::Flag, 0, 0, {}, "whether the embedding is the output head too"},
      {"attention_scale", Kind::Positive, 0, 0, {}, "factor of the attention scores"},
      {"attention_softcap", Kind::NotNegative, 0, 0, Json(0), "bound of the attention scores"},
      {"window", Kind::Integer, 0, maxContext, Json(0), "positions a sliding layer sees"},
      {"qkv_bias", Kind::Flag, 0, 0, Json(false), "bias of query, key and value"},
      {"output_bias", Kind::Flag, 0, 0, Json(false), "bias of the attention output"},
      {"mlp_bias", Kind::Flag, 0, 0, Json(false), "bias of the feed-forward part"},
      {"norm_add", Kind::Number, 0, 0, Json(0), "added to stored norm weights"},
      {"embedding_scale", Kind::Positive, 0, 0, Json(1), "factor of the embedding"},
      {"residual_scale", Kind::Positive, 0, 0, Json(1), "factor of what a layer adds"},
      {"logit_scale", Kind::Positive, 0, 0, Json(1), "factor of the logits"},
      {"logit_softcap", Kind::NotNegative, 0, 0, Json(0), "bound of the logits"},
      {"weight_type", Kind::Word, 0, 0, Json("bfloat16"), "type of the stored weights"},
      {"quantization", Kind::Word, 0, 0, Json(""), "how the files pack weights"},
  };
  return table;
}

} // namespace

const ValueDefinition *findValueDefinition(const std::string &name) {
  for (const ValueDefinition &definition : valueDefinitions())
    if (definition.name == name)
      return &definition;
  return nullptr;
}

std::vector<std::string> requiredValues() { return {"layers", "hidden", "vocabulary", "context", "tied_head"}; }

StatusOr<ModelDescriptions> loadModelDescriptions(const std::string &folder) {
  Files files;
  LLMC_RETURN_IF_ERROR(addEmbedded(files));
  const char *fromEnvironment = std::getenv("LLMC_MODELS");
  std::string overlay = !folder.empty() ? folder : fromEnvironment ? fromEnvironment : "";
  if (!overlay.empty())
    LLMC_RETURN_IF_ERROR(addFolder(files, overlay));
  ModelDescriptions result;
  std::vector<std::string> errors;
  for (const auto &[family, json] : files) {
    LLMC_ASSIGN_OR_RETURN(Json merged, withAncestors(files, family));
    result.families.push_back(parseDescription(merged, family + ".json", errors));
  }
  if (!errors.empty())
    return Status::error(errors.front() +
                         (errors.size() > 1 ? " (and " + std::to_string(errors.size() - 1) + " more)" : ""));
  return result;
}

std::vector<std::string> checkModelDescription(const std::string &path, ModelDescription *description) {
  Files files;
  std::vector<std::string> errors;
  std::string family = std::filesystem::path(path).stem().string();
  Status status = addEmbedded(files);
  // Only the ancestors are wanted from beside it; what else is wrong there is not this file's fault.
  std::string folder = std::filesystem::path(path).parent_path().string();
  Files beside;
  if (addFolder(beside, folder.empty() ? "." : folder).ok())
    for (auto &[name, json] : beside)
      files[name] = json;
  StatusOr<std::string> text = readFile(path, limits::configBytes);
  if (status.ok())
    status = text.ok() ? addFile(files, path, *text) : text.status();
  StatusOr<Json> merged = status.ok() ? withAncestors(files, family) : StatusOr<Json>(status);
  if (!merged.ok())
    return {merged.status().message()};
  ModelDescription parsed = parseDescription(*merged, path, errors);
  if (errors.empty() && description)
    *description = std::move(parsed);
  return errors;
}

} // namespace llmc
