// Joins the weight files to the resolution of facts.
#include "lib/importer/ReadModel.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <cstring>
#include <filesystem>

namespace llmc {
namespace {

// Longer arrays are no facts (merges, scores); the tokens are counted and named.
constexpr uint64_t longestFactArray = limits::layers;
constexpr const char *tokensKey = "tokenizer.ggml.tokens";

template <typename T> StatusOr<Json> asJson(StatusOr<T> value) {
  if (!value.ok())
    return value.status();
  return Json(std::move(*value));
}

bool isFloat(GgufType type) { return type == GgufType::F32 || type == GgufType::F64; }

StatusOr<Json> arrayAsJson(const GgufMetadata &metadata, const std::string &key) {
  LLMC_ASSIGN_OR_RETURN(GgufType type, metadata.elementType(key));
  LLMC_ASSIGN_OR_RETURN(uint64_t length, metadata.arrayLength(key));
  if ((length > longestFactArray && key != tokensKey) || type == GgufType::Array)
    return Json();
  if (type == GgufType::String)
    return asJson(metadata.strings(key));
  if (type == GgufType::Bool)
    return asJson(metadata.booleans(key));
  if (isFloat(type))
    return asJson(metadata.numbers(key));
  return asJson(metadata.integers(key, INT64_MIN, INT64_MAX));
}

StatusOr<Json> valueAsJson(const GgufMetadata &metadata, const std::string &key) {
  LLMC_ASSIGN_OR_RETURN(GgufType type, metadata.type(key));
  if (type == GgufType::Array)
    return arrayAsJson(metadata, key);
  if (type == GgufType::String)
    return asJson(metadata.string(key));
  if (type == GgufType::Bool)
    return asJson(metadata.boolean(key));
  if (isFloat(type))
    return asJson(metadata.number(key));
  return asJson(metadata.integer(key, INT64_MIN, INT64_MAX));
}

std::set<std::string> tensorNames(const ModelFiles &files) {
  std::set<std::string> names;
  for (const ModelTensor &tensor : files.tensors())
    names.insert(tensor.name);
  return names;
}

// Divisors of a rope are one number per pair of channels.
StatusOr<std::vector<float>> readSmallTensor(const ModelFiles &files, const std::string &name) {
  const ModelTensor *tensor = files.find(name);
  if (!tensor || tensor->shape.size() != 1 || tensor->shape[0] > limits::heads)
    return Status::error("tensor '" + name + "' is " + (tensor ? printShape(tensor->shape) : "absent") +
                         ", expected a short list of numbers");
  std::vector<float> values(tensor->shape[0]);
  LLMC_RETURN_IF_ERROR(files.readRows(*tensor, 0, 1, values));
  return values;
}

// float32 has one value per weight of every stored type, so comparing there is comparing what the model computes with.
StatusOr<bool> sameValues(const ModelFiles &files, const std::string &left, const std::string &right) {
  const ModelTensor *a = files.find(left), *b = files.find(right);
  if (!a || !b || a->shape != b->shape)
    return false;
  std::vector<float> x(a->rowValues()), y(b->rowValues());
  for (uint64_t row = 0; row < a->numRows(); ++row) {
    LLMC_RETURN_IF_ERROR(files.readRows(*a, row, 1, x));
    LLMC_RETURN_IF_ERROR(files.readRows(*b, row, 1, y));
    if (std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

// Sentences about a value name its key; only some name the file as well.
Status saidInside(const std::string &file, const Status &status) {
  return status.message().find(file) == std::string::npos ? status.inside(file) : status;
}

} // namespace

StatusOr<std::unique_ptr<ConfigSource>> openConfig(const ModelFiles &files) {
  if (const GgufMetadata *metadata = files.gguf()) {
    std::vector<std::pair<std::string, Json>> values;
    for (const std::string &key : metadata->keys()) {
      LLMC_ASSIGN_OR_RETURN(Json value, valueAsJson(*metadata, key));
      values.emplace_back(key, std::move(value));
    }
    auto read = [&files](const std::string &name) { return readSmallTensor(files, name); };
    return std::unique_ptr<ConfigSource>(
        std::make_unique<GgufConfig>(std::move(values), tensorNames(files), read, files.path()));
  }
  std::string path = files.configPath();
  if (path.empty())
    return Status::error(files.path() + " has no config.json");
  LLMC_ASSIGN_OR_RETURN(Json config, readJsonFile(path, limits::configBytes));
  auto source = std::make_unique<HuggingFaceConfig>(std::move(config), path);
  if (files.hasWeights())
    source->setTensors(tensorNames(files));
  return std::unique_ptr<ConfigSource>(std::move(source));
}

std::vector<StoredTensor> storedTensors(const ModelFiles &files) {
  std::vector<StoredTensor> stored;
  for (const ModelTensor &tensor : files.tensors())
    stored.push_back({tensor.name, std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()),
                      std::string(nameOf(tensor.type)), tensor.bytes});
  return stored;
}

StatusOr<ModelSpec> readModel(const ModelDescriptions &descriptions, const ModelFiles &files, UnknownKeys unknownKeys) {
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<ConfigSource> config, openConfig(files));
  StatusOr<ModelSpec> resolved = resolveModel(descriptions, *config, unknownKeys);
  if (!resolved.ok())
    return saidInside(config->file(), resolved.status());
  ModelSpec spec = std::move(*resolved);
  if (!files.hasWeights())
    return spec;
  auto equal = [&files](const std::string &left, const std::string &right) { return sameValues(files, left, right); };
  if (Status status = checkWeights(spec, storedTensors(files), equal); !status.ok())
    return saidInside(files.path(), status);
  return spec;
}

StatusOr<GenerationFacts> readGenerationFacts(const ModelFiles &files) {
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<ConfigSource> config, openConfig(files));
  std::filesystem::path path = files.configPath();
  return readGenerationFacts(*config, path.parent_path().string());
}

} // namespace llmc
