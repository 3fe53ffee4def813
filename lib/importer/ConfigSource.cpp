// The two sources of facts: lookups in config.json and in GGUF metadata.
#include "lib/importer/ConfigSource.h"
#include "lib/importer/CheckWeights.h"
#include <algorithm>

namespace llmc {
namespace {

bool anyMatches(const std::string &pattern, const std::set<std::string> &names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string &name) { return matchesPattern(pattern, name); });
}

} // namespace

std::string HuggingFaceConfig::architecture() const {
  const Json *list = find(config_, "architectures");
  if (list && list->is_array() && !list->empty() && list->front().is_string())
    return list->front().get<std::string>();
  return "";
}

std::vector<std::string> HuggingFaceConfig::keys() const {
  std::vector<std::string> names;
  if (config_.is_object())
    for (auto it = config_.begin(); it != config_.end(); ++it)
      names.push_back(it.key());
  return names;
}

const Json *HuggingFaceConfig::get(const std::string &key) const {
  const Json *value = &config_;
  for (size_t begin = 0; value && begin <= key.size();) {
    size_t end = std::min(key.find('/', begin), key.size());
    value = find(*value, std::string_view(key).substr(begin, end - begin));
    begin = end + 1;
  }
  return value;
}

std::optional<bool> HuggingFaceConfig::hasTensor(const std::string &name) const {
  if (!tensors_)
    return std::nullopt;
  return tensors_->count(name) != 0;
}

std::optional<bool> HuggingFaceConfig::hasMatch(const std::string &pattern) const {
  return tensors_ ? std::optional(anyMatches(pattern, *tensors_)) : std::nullopt;
}

std::optional<bool> GgufConfig::hasMatch(const std::string &pattern) const { return anyMatches(pattern, tensors_); }

StatusOr<std::vector<float>> HuggingFaceConfig::readTensor(const std::string &name) const {
  return Status::error("tensor '" + name + "' cannot be read from " + file_);
}

GgufConfig::GgufConfig(std::vector<std::pair<std::string, Json>> metadata, std::set<std::string> tensors,
                       TensorReader reader, std::string file)
    : tensors_(std::move(tensors)), reader_(std::move(reader)), file_(std::move(file)) {
  for (auto &[key, value] : metadata) {
    order_.push_back(key);
    metadata_.emplace(key, std::move(value));
  }
  auto it = metadata_.find("general.architecture");
  if (it != metadata_.end() && it->second.is_string())
    architecture_ = it->second.get<std::string>();
}

std::vector<std::string> GgufConfig::keys() const {
  std::vector<std::string> names;
  std::string prefix = architecture_ + ".";
  for (const std::string &key : order_)
    names.push_back(key.rfind(prefix, 0) == 0 ? key.substr(prefix.size()) : key);
  return names;
}

const Json *GgufConfig::get(const std::string &key) const {
  auto it = metadata_.find(architecture_ + "." + key);
  if (it == metadata_.end())
    it = metadata_.find(key);
  return it == metadata_.end() ? nullptr : &it->second;
}

std::string GgufConfig::pointer(const std::string &key) const {
  return metadata_.count(key) != 0 || key.rfind("tokenizer.", 0) == 0 ? key : architecture_ + "." + key;
}

} // namespace llmc
