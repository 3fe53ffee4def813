#include "runtime/tokenizer/TiktokenOptions.h"
#include "runtime/support/Json.h"
#include <algorithm>
#include <cctype>

namespace llmc {
namespace {

StatusOr<TiktokenOptions::Special> readSpecial(const Json &entry, const std::string &pointer) {
  const Json *content = find(entry, "content"), *id = find(entry, "id"), *isSpecial = find(entry, "special");
  if (!content || !id)
    return Status::error(pointer + " is " + brief(entry) + ", expected an object with content and id");
  TiktokenOptions::Special special;
  LLMC_ASSIGN_OR_RETURN(special.content, asString(*content, pointer + "/content"));
  LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(*id, pointer + "/id", 0, INT32_MAX));
  special.id = static_cast<int32_t>(number);
  if (isSpecial) {
    LLMC_ASSIGN_OR_RETURN(special.special, asBool(*isSpecial, pointer + "/special"));
  }
  return special;
}

Status readCut(const Json &root, const char *key, const std::string &file, size_t &cut) {
  const Json *value = find(root, key);
  if (!value)
    return {};
  LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(*value, file + ": /" + key, 0, INT32_MAX));
  cut = static_cast<size_t>(number);
  return {};
}

} // namespace

std::string tiktokenOptionsToJson(const TiktokenOptions &options) {
  Json specials = Json::array();
  for (const TiktokenOptions::Special &special : options.specials)
    specials.push_back({{"content", special.content}, {"id", special.id}, {"special", special.special}});
  Json root = {{"pattern", options.pattern},
               {"cut_characters", options.maxCharacters},
               {"cut_run_characters", options.maxRunCharacters},
               {"prefix", options.prefix},
               {"specials", std::move(specials)}};
  return root.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

StatusOr<TiktokenOptions> tiktokenOptionsFromJson(std::string_view json, const std::string &file) {
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(json, file));
  TiktokenOptions options;
  const Json *pattern = find(root, "pattern"), *specials = find(root, "specials"), *prefix = find(root, "prefix");
  if (!pattern)
    return Status::error(file + ": /pattern is missing");
  LLMC_ASSIGN_OR_RETURN(options.pattern, asString(*pattern, file + ": /pattern"));
  LLMC_RETURN_IF_ERROR(readCut(root, "cut_characters", file, options.maxCharacters));
  LLMC_RETURN_IF_ERROR(readCut(root, "cut_run_characters", file, options.maxRunCharacters));
  if (prefix && !prefix->is_array())
    return Status::error(file + ": /prefix is " + brief(*prefix) + ", expected a list");
  for (size_t i = 0; prefix && i < prefix->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(std::string content, asString((*prefix)[i], file + ": /prefix/" + std::to_string(i)));
    options.prefix.push_back(std::move(content));
  }
  if (specials && !specials->is_array())
    return Status::error(file + ": /specials is " + brief(*specials) + ", expected a list");
  for (size_t i = 0; specials && i < specials->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(TiktokenOptions::Special special,
                          readSpecial((*specials)[i], file + ": /specials/" + std::to_string(i)));
    options.specials.push_back(std::move(special));
  }
  return options;
}

bool looksLikeTiktoken(std::string_view bytes) {
  std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  size_t blank = line.find(' ');
  if (blank == line.npos || blank == 0 || blank + 1 == line.size())
    return false;
  auto isBase64 = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '/' || c == '='; };
  auto isDigit = [](unsigned char c) { return std::isdigit(c) || c == '\r'; };
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(blank), isBase64) &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(blank) + 1, line.end(), isDigit);
}

} // namespace llmc
