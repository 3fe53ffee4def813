#include "tools/llmc/Model.h"
#include "lib/importer/ResolveModel.h"
#include "runtime/support/Limits.h"
#include <cstring>

namespace llmc {
namespace {

template <typename T> Json listOf(const std::vector<T> &values) {
  Json list = Json::array();
  for (const T &value : values)
    list.push_back(value);
  return list;
}

StatusOr<Json> scalarOf(const GgufMetadata &metadata, const std::string &key, GgufType type) {
  switch (type) {
  case GgufType::String: {
    LLMC_ASSIGN_OR_RETURN(std::string value, metadata.string(key));
    return Json(value);
  }
  case GgufType::Bool: {
    LLMC_ASSIGN_OR_RETURN(bool value, metadata.boolean(key));
    return Json(value);
  }
  case GgufType::F32:
  case GgufType::F64: {
    LLMC_ASSIGN_OR_RETURN(double value, metadata.number(key));
    return Json(value);
  }
  default: {
    LLMC_ASSIGN_OR_RETURN(int64_t value, metadata.integer(key, INT64_MIN, INT64_MAX));
    return Json(value);
  }
  }
}

StatusOr<Json> arrayOf(const GgufMetadata &metadata, const std::string &key) {
  LLMC_ASSIGN_OR_RETURN(GgufType element, metadata.elementType(key));
  switch (element) {
  case GgufType::String: {
    LLMC_ASSIGN_OR_RETURN(std::vector<std::string> values, metadata.strings(key));
    return listOf(values);
  }
  case GgufType::Bool: {
    LLMC_ASSIGN_OR_RETURN(std::vector<bool> values, metadata.booleans(key));
    return listOf(values);
  }
  case GgufType::F32:
  case GgufType::F64: {
    LLMC_ASSIGN_OR_RETURN(std::vector<double> values, metadata.numbers(key));
    return listOf(values);
  }
  case GgufType::Array: // no key that anybody reads nests
    return Json(nullptr);
  default: {
    LLMC_ASSIGN_OR_RETURN(std::vector<int64_t> values, metadata.integers(key, INT64_MIN, INT64_MAX));
    return listOf(values);
  }
  }
}

StatusOr<std::unique_ptr<ConfigSource>> ggufConfig(const ModelFiles &files) {
  std::vector<std::pair<std::string, Json>> metadata;
  for (const std::string &key : files.gguf()->keys()) {
    LLMC_ASSIGN_OR_RETURN(GgufType type, files.gguf()->type(key));
    LLMC_ASSIGN_OR_RETURN(Json value, type == GgufType::Array ? arrayOf(*files.gguf(), key)
                                                               : scalarOf(*files.gguf(), key, type));
    metadata.emplace_back(key, std::move(value));
  }
  std::set<std::string> names;
  for (const ModelTensor &tensor : files.tensors())
    names.insert(tensor.name);
  auto read = [&files](const std::string &name) -> StatusOr<std::vector<float>> {
    const ModelTensor *tensor = files.find(name);
    if (!tensor)
      return Status::error("no tensor '" + name + "'");
    std::vector<float> values(tensor->numRows() * tensor->rowValues());
    LLMC_RETURN_IF_ERROR(files.readRows(*tensor, 0, tensor->numRows(), values));
    return values;
  };
  return std::unique_ptr<ConfigSource>(
      std::make_unique<GgufConfig>(std::move(metadata), std::move(names), read, files.path()));
}

StatusOr<std::unique_ptr<ConfigSource>> configOf(const ModelFiles &files) {
  if (files.gguf())
    return ggufConfig(files);
  if (files.configPath().empty())
    return Status::error(files.path() + ": holds no config.json; give the folder of a model, a .gguf file or a config.json");
  LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(files.configPath(), limits::configBytes));
  auto config = std::make_unique<HuggingFaceConfig>(std::move(json), files.configPath());
  if (files.hasWeights()) {
    std::set<std::string> names;
    for (const ModelTensor &tensor : files.tensors())
      names.insert(tensor.name);
    config->setTensors(std::move(names));
  }
  return std::unique_ptr<ConfigSource>(std::move(config));
}

std::vector<StoredTensor> storedTensors(const ModelFiles &files) {
  std::vector<StoredTensor> stored;
  for (const ModelTensor &tensor : files.tensors())
    stored.push_back({tensor.name, std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()),
                      std::string(nameOf(tensor.type)), tensor.bytes});
  return stored;
}

StatusOr<bool> sameBytes(const ModelFiles &files, const std::string &a, const std::string &b) {
  const ModelTensor *first = files.find(a), *second = files.find(b);
  if (!first || !second || first->type != second->type || first->bytes != second->bytes)
    return false;
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> firstBytes, files.bytes(*first));
  LLMC_ASSIGN_OR_RETURN(std::span<const uint8_t> secondBytes, files.bytes(*second));
  return std::memcmp(firstBytes.data(), secondBytes.data(), firstBytes.size()) == 0;
}

} // namespace

StatusOr<Model> openModel(const std::string &path, const std::string &descriptionsFolder) {
  LLMC_ASSIGN_OR_RETURN(ModelDescriptions descriptions, loadModelDescriptions(descriptionsFolder));
  LLMC_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(path));
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<ConfigSource> config, configOf(files));
  LLMC_ASSIGN_OR_RETURN(ModelSpec spec, resolveModel(descriptions, *config));
  std::string configPath = files.configPath();
  size_t slash = configPath.rfind('/');
  std::string folder = slash == std::string::npos ? "." : configPath.substr(0, slash);
  LLMC_ASSIGN_OR_RETURN(GenerationFacts generation, readGenerationFacts(*config, folder));
  std::vector<StoredTensor> stored = storedTensors(files);
  if (files.hasWeights()) {
    TensorsEqual equal = [&](const std::string &a, const std::string &b) { return sameBytes(files, a, b); };
    if (Status status = checkWeights(spec, stored, equal); !status.ok())
      return status.inside(path);
  }
  spec.notes.insert(spec.notes.end(), files.warnings().begin(), files.warnings().end());
  return Model{std::move(files), std::move(spec), std::move(generation), std::move(stored)};
}

} // namespace llmc
