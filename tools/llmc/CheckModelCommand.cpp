// llmc check-model: a description by itself, against a config and against the names of a weight index.
#include "lib/importer/CompareNames.h"
#include "lib/importer/ResolveModel.h"
#include "runtime/support/Limits.h"
#include "tools/llmc/Commands.h"
#include <cstdio>
#include <filesystem>

namespace llmc {
namespace {

StatusOr<ModelSpec> resolveWith(ModelDescription description, const std::string &config) {
  std::string path = std::filesystem::is_directory(config) ? config + "/config.json" : config;
  LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(path, limits::configBytes));
  ModelDescriptions only;
  only.families.push_back(std::move(description));
  return resolveModel(only, HuggingFaceConfig(std::move(json), path), UnknownKeys::Report);
}

StatusOr<std::set<std::string>> namesOfIndex(const std::string &path) {
  LLMC_ASSIGN_OR_RETURN(Json index, readJsonFile(path, limits::weightIndexBytes));
  const Json *map = find(index, "weight_map");
  if (!map || !map->is_object())
    return Status::error(path + ": /weight_map is " + (map ? brief(*map) : "absent") +
                         ", expected an object of tensor names");
  std::set<std::string> names;
  for (auto it = map->begin(); it != map->end(); ++it)
    names.insert(it.key());
  return names;
}

std::string sentence(const NameDifference &difference) {
  std::string name = difference.count == 1 ? inQuotes(difference.example)
                                           : inQuotes(difference.pattern) + " (" + std::to_string(difference.count) +
                                                 " tensors, first " + inQuotes(difference.example) + ")";
  return name + (difference.isExpected ? " is expected and not in the index" : " is in the index and not expected");
}

// Findings against config and index; an error where these cannot be read.
StatusOr<std::vector<std::string>> findingsOf(const CheckModelCommand &command, ModelDescription description) {
  std::vector<std::string> findings;
  if (command.config.empty())
    return findings;
  StatusOr<ModelSpec> spec = resolveWith(std::move(description), command.config);
  if (!spec.ok())
    return std::vector<std::string>{spec.status().message()};
  for (const std::string &key : spec->unknownKeys)
    findings.push_back(command.config + ": " + key + " may change the maths and is neither used nor ignored");
  if (command.index.empty())
    return findings;
  LLMC_ASSIGN_OR_RETURN(std::set<std::string> names, namesOfIndex(command.index));
  for (const NameDifference &difference : compareNames(*spec, names))
    findings.push_back(command.index + ": " + sentence(difference));
  return findings;
}

} // namespace

int runCheckModel(const CheckModelCommand &command) {
  std::error_code code;
  for (const std::string &path : {command.description, command.config, command.index})
    if (!path.empty() && !std::filesystem::exists(path, code))
      return reportFault(Status::error(path + ": does not exist"));
  ModelDescription description;
  std::vector<std::string> findings = checkModelDescription(command.description, &description);
  if (findings.empty()) {
    StatusOr<std::vector<std::string>> more = findingsOf(command, std::move(description));
    if (!more.ok())
      return reportFault(more.status());
    findings = std::move(*more);
  }
  for (const std::string &finding : findings)
    std::fprintf(stderr, "error: %s\n", finding.c_str());
  return findings.empty() ? exitDone : exitCheckFailed;
}

} // namespace llmc
