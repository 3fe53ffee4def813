// Joins the weight files to the resolution of facts.
#include "lib/importer/ReadModel.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
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
  StatusOr<const LogicalTensors *> logical = files.logical();
  for (const ModelTensor &tensor : files.tensors())
    if (!logical.ok()) // whoever reads weights says what is wrong with them
      names.insert(tensor.name);
  if (logical.ok())
    for (const LogicalTensor &tensor : (*logical)->all())
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
  LLMC_ASSIGN_OR_RETURN(const LogicalTensors *tensors, files.logical());
  const LogicalTensor *a = tensors->find(left), *b = tensors->find(right);
  if (!a || !b || a->shape != b->shape)
    return false;
  const uint64_t total = numElements(a->shape).value_or(0), piece = 1 << 16;
  std::vector<float> x(piece), y(piece);
  for (uint64_t first = 0; first < total; first += piece) {
    uint64_t count = std::min(piece, total - first);
    LLMC_RETURN_IF_ERROR(readLogical(files, *a, first, {x.data(), count}));
    LLMC_RETURN_IF_ERROR(readLogical(files, *b, first, {y.data(), count}));
    if (std::memcmp(x.data(), y.data(), count * sizeof(float)) != 0)
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
  StatusOr<const LogicalTensors *> logical = files.logical();
  if (!logical.ok())
    return stored; // readModel says why
  for (const LogicalTensor &tensor : (*logical)->all())
    stored.push_back(
        {tensor.name, std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()), tensor.format, tensor.bytes});
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
  LLMC_ASSIGN_OR_RETURN([[maybe_unused]] const LogicalTensors *logical, files.logical());
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
