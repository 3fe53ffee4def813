#include "tools/llmc/TiktokenFiles.h"
#include "lib/importer/TextDescription.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>

namespace llmc {
namespace {

// What tokenizer_config.json says of added tokens: {"added_tokens_decoder": {"1500": {"content": "[BOS]", ...}}}.
Status readAddedTokens(TiktokenOptions &options, const Json &config, const std::string &file) {
  const Json none = Json::object();
  const Json *added = find(config, "added_tokens_decoder");
  for (const auto &[key, token] : (added && added->is_object() ? *added : none).items()) {
    std::string where = file + ": /added_tokens_decoder/" + key;
    const Json *content = find(token, "content"), *special = find(token, "special");
    int64_t id =
        key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos ? -1 : std::stol(key);
    if (id < 0 || !content)
      return Status::error(where + " is " + brief(token) + ", expected a token with content under its id");
    TiktokenOptions::Special out;
    out.id = static_cast<int32_t>(id);
    LLMC_ASSIGN_OR_RETURN(out.content, asString(*content, where + "/content"));
    if (special) {
      LLMC_ASSIGN_OR_RETURN(out.special, asBool(*special, where + "/special"));
    }
    for (auto [name, place] : {std::pair("bos_token", &options.bosId), std::pair("eos_token", &options.eosId)})
      if (const Json *named = find(config, name); named && named->is_string() && *named == out.content)
        *place = out.id;
    options.specials.push_back(std::move(out));
  }
  return {};
}

bool hasId(const TiktokenOptions &options, int64_t id) {
  return std::any_of(options.specials.begin(), options.specials.end(), [&](const auto &s) { return s.id == id; });
}

// What about.json says: {"special": {"[BOS]": 1500}}, where tokenizer_config.json has not said more.
Status readSpecialIds(TiktokenOptions &options, const Json &about, const std::string &file) {
  const Json none = Json::object();
  const Json *special = find(about, "special");
  for (const auto &[content, value] : (special && special->is_object() ? *special : none).items()) {
    LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(value, file + ": /special/" + content, 0, INT32_MAX));
    if (!hasId(options, id))
      options.specials.push_back({content, static_cast<int32_t>(id)});
  }
  return {};
}

StatusOr<std::string> textAt(const std::string &file, const Json &json, const char *key) {
  const Json *value = find(json, key);
  return value && value->is_string() ? asString(*value, file + ": /" + key) : StatusOr<std::string>(std::string());
}

int64_t countRanks(std::string_view ranks) {
  int64_t lines = std::count(ranks.begin(), ranks.end(), '\n');
  return lines + (!ranks.empty() && ranks.back() != '\n' ? 1 : 0);
}

// Names for the ids after the ranks that have none.
void fillUp(TiktokenOptions &options, const TiktokenRules &rules, int64_t ranks) {
  int64_t fillers = 0;
  for (int64_t id = ranks; id < ranks + rules.specialIds; ++id) {
    if (hasId(options, id))
      continue;
    std::string name = rules.filler;
    for (auto [mark, number] : {std::pair("{id}", id), std::pair("{n}", fillers)})
      if (size_t at = name.find(mark); at != std::string::npos)
        name.replace(at, std::string_view(mark).size(), std::to_string(number));
    options.specials.push_back({name, static_cast<int32_t>(id)});
    ++fillers;
  }
}

void addDescribed(TiktokenOptions &options, const TextDescriptions &texts, const TextOwner &owner, int64_t ranks,
                  bool complete) {
  const TiktokenRules *rules = texts.tiktoken(owner);
  if (const auto *specials = texts.specialTokens(owner); specials && options.specials.empty())
    for (const auto &[content, id] : *specials)
      options.specials.push_back({content, id});
  if (!rules)
    return;
  if (options.pattern.empty())
    options.pattern = rules->pattern;
  options.prefix = rules->prefix;
  options.maxCharacters = static_cast<size_t>(rules->cutCharacters);
  options.maxRunCharacters = static_cast<size_t>(rules->cutRunCharacters);
  if (!complete)
    fillUp(options, *rules, ranks);
}

} // namespace

StatusOr<TiktokenOptions> tiktokenOptionsFor(std::string_view ranks, const std::string &path, const std::string &config,
                                             const std::string &pattern) {
  TiktokenOptions options;
  options.pattern = pattern;
  TextOwner owner;
  bool complete = false; // all special ids are named
  std::string folder = path.substr(0, path.find_last_of('/') + 1);
  for (const char *name : {"tokenizer_config.json", "about.json"}) {
    std::string file = folder + name;
    if (!fileExists(file))
      continue;
    LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(file, limits::configBytes));
    if (options.pattern.empty()) {
      LLMC_ASSIGN_OR_RETURN(options.pattern, textAt(file, json, "pattern"));
    }
    if (owner.tokenizerClass.empty()) {
      LLMC_ASSIGN_OR_RETURN(owner.tokenizerClass, textAt(file, json, "tokenizer_class"));
    }
    LLMC_RETURN_IF_ERROR(readAddedTokens(options, json, file));
    LLMC_RETURN_IF_ERROR(readSpecialIds(options, json, file));
    complete |= find(json, "special") != nullptr;
  }
  if (fileExists(config)) {
    LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(config, limits::configBytes));
    LLMC_ASSIGN_OR_RETURN(owner.modelType, textAt(config, json, "model_type"));
  }
  LLMC_ASSIGN_OR_RETURN(TextDescriptions texts, TextDescriptions::load());
  addDescribed(options, texts, owner, countRanks(ranks), complete);
  if (options.pattern.empty())
    return Status::error(
        path +
        ": a tiktoken file does not hold the regular expression that cuts text; no file beside it states a "
        "\"pattern\", and tokenizer_class " +
        inQuotes(owner.tokenizerClass) + " is not described (known = " + texts.knownTokenizerClasses() +
        "); give --pattern, or add \"pattern\" to tokenizer_config.json");
  return options;
}

} // namespace llmc
