// Finds the weights of a folder: by its index, as one file, or as numbered shards without an index, in this order.
#include "lib/importer/files/ModelFolder.h"
#include "lib/importer/files/GgufSplits.h"
#include "lib/importer/files/Safetensors.h"
#include "lib/importer/files/WeightIndex.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

namespace llmc {
namespace {

namespace fs = std::filesystem;

constexpr const char *indexName = "model.safetensors.index.json";

std::string nameOf(const std::string &path) { return fs::path(path).filename().string(); }

bool holdsPickle(const std::string &name) {
  for (std::string_view suffix : {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
    if (name.ends_with(suffix))
      return true;
  return false;
}

// What the folder holds beside folders, sorted.
StatusOr<std::vector<std::string>> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (!isFolder(it->path().string()))
      names.push_back(it->path().filename().string());
  if (error)
    return Status::error(folder + ": cannot be listed: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// Whether there is anything of that name, a dangling link too: what is there but cannot be read must not be passed
// over.
bool exists(const std::string &path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

// Reads the header of one more weight file.
Status addShard(ModelListing &listing, const std::string &path) {
  LLMC_ASSIGN_OR_RETURN(FilePart part, readFilePart(path, 0, 0));
  LLMC_ASSIGN_OR_RETURN(SafetensorsHeader header, readSafetensorsHeader(path));
  auto file = static_cast<uint32_t>(listing.weightFiles.size());
  listing.weightFiles.push_back(path);
  listing.identities.push_back(part.file);
  for (SafetensorsTensor &tensor : header.tensors)
    listing.tensors.push_back(
        {std::move(tensor.name), std::move(tensor.shape), tensor.type, file, tensor.offset, tensor.bytes});
  if (listing.tensors.size() > limits::tensorsPerModel)
    return Status::error(listing.path + ": more than " + std::to_string(limits::tensorsPerModel) + " tensors");
  return {};
}

Status sortTensors(ModelListing &listing) {
  std::sort(listing.tensors.begin(), listing.tensors.end(), [](const ModelTensor &a, const ModelTensor &b) {
    return std::tie(a.name, a.file) < std::tie(b.name, b.file);
  });
  for (size_t i = 1; i < listing.tensors.size(); ++i) {
    const ModelTensor &a = listing.tensors[i - 1], &b = listing.tensors[i];
    if (a.name == b.name)
      return Status::error(listing.path + ": tensor " + inQuotes(a.name) + " is in " +
                           inQuotes(nameOf(listing.weightFiles[a.file])) + " and in " +
                           inQuotes(nameOf(listing.weightFiles[b.file])));
  }
  return {};
}

// Every tensor of the index must be in the shard that it names; what else the shards hold is a warning.
Status checkIndex(ModelListing &listing, const WeightIndex &index, const std::string &indexPath) {
  uint64_t unnamed = 0;
  std::string firstUnnamed;
  CheckedSize total(0);
  auto entry = index.shardOf.begin(); // both are sorted by name
  for (const ModelTensor &tensor : listing.tensors) {
    total = total + tensor.bytes;
    if (entry != index.shardOf.end() && entry->first < tensor.name)
      break;
    std::string shard = nameOf(listing.weightFiles[tensor.file]);
    if (entry == index.shardOf.end() || entry->first != tensor.name) {
      firstUnnamed = unnamed++ ? firstUnnamed : inQuotes(tensor.name) + " of " + inQuotes(shard);
      continue;
    }
    if (listing.folder + "/" + entry->second != listing.weightFiles[tensor.file])
      return Status::error(indexPath + ": tensor " + inQuotes(tensor.name) + " is named in " + inQuotes(entry->second) +
                           " but lies in " + inQuotes(shard));
    ++entry;
  }
  if (entry != index.shardOf.end())
    return Status::error(indexPath + ": tensor " + inQuotes(entry->first) + " is not in its shard " +
                         inQuotes(entry->second));
  if (unnamed)
    listing.warnings.push_back(indexPath + ": does not name " + std::to_string(unnamed) +
                               " tensors that its shards hold, first " + firstUnnamed);
  if (index.totalBytes && !(total.ok() && *total.value() == *index.totalBytes))
    listing.warnings.push_back(indexPath + ": /metadata/total_size is " + std::to_string(*index.totalBytes) +
                               ", the tensors take " + std::to_string(total.value().value_or(0)));
  return {};
}

// A shard as the index speaks of it.
struct NamedShard {
  uint64_t tensors = 0;
  std::string firstTensor;
};

Status addIndexed(ModelListing &listing) {
  std::string indexPath = listing.folder + "/" + indexName;
  LLMC_ASSIGN_OR_RETURN(std::string text, readFile(indexPath, limits::weightIndexBytes));
  LLMC_ASSIGN_OR_RETURN(WeightIndex index, parseWeightIndex(text, indexPath));
  std::map<std::string, NamedShard> shards;
  for (const auto &[tensor, shardName] : index.shardOf) {
    NamedShard &shard = shards[shardName];
    if (shard.tensors++ == 0)
      shard.firstTensor = tensor;
  }
  size_t missing = 0;
  for (const auto &[name, shard] : shards)
    if (!exists(listing.folder + "/" + name) && missing++ == 0)
      listing.weights = Status::error(indexPath + ": shard " + inQuotes(name) + " is named for " +
                                      std::to_string(shard.tensors) + " tensors but does not exist");
  if (missing > 0 && missing < shards.size())
    return listing.weights;
  if (missing > 0) { // somebody fetched the small files only: enough for whatever reads no weights
    for (const auto &[tensor, shardName] : index.shardOf)
      listing.namesWithoutWeights.push_back(tensor);
    return {};
  }
  for (const auto &[name, shard] : shards) {
    std::string tensor = inQuotes(shard.firstTensor);
    std::string pointer = indexPath + ": /weight_map/" + tensor.substr(1, tensor.size() - 2);
    LLMC_ASSIGN_OR_RETURN(std::string path, resolveShard(listing.folder, name, pointer));
    LLMC_RETURN_IF_ERROR(addShard(listing, path));
  }
  LLMC_RETURN_IF_ERROR(sortTensors(listing));
  return checkIndex(listing, index, indexPath);
}

// "model-00002-of-00004.safetensors" -> 2 and 4.
struct ShardNumber {
  uint32_t index;
  uint32_t count;
};

std::optional<ShardNumber> shardNumber(std::string_view name) {
  constexpr std::string_view prefix = "model-", middle = "-of-", suffix = ".safetensors";
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size())
    return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  size_t at = name.find(middle);
  if (at == std::string_view::npos)
    return std::nullopt;
  auto number = [](std::string_view digits) -> std::optional<uint32_t> {
    uint32_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
  };
  std::optional<uint32_t> index = number(name.substr(0, at)), count = number(name.substr(at + middle.size()));
  if (!index || !count)
    return std::nullopt;
  return ShardNumber{*index, *count};
}

// Shards that number themselves must all be there.
Status addNumbered(ModelListing &listing, const std::vector<std::string> &shards) {
  uint32_t count = shardNumber(shards.front())->count, expected = 1;
  for (const std::string &name : shards) {
    ShardNumber number = *shardNumber(name);
    if (number.count != count)
      return Status::error(listing.path + ": holds " + inQuotes(shards.front()) + " and " + inQuotes(name) +
                           ", which belong to different sets; remove one set");
    if (number.index != expected++)
      break;
    LLMC_RETURN_IF_ERROR(addShard(listing, listing.folder + "/" + name));
  }
  if (listing.weightFiles.size() != count)
    return Status::error(listing.path + ": holds " + std::to_string(shards.size()) + " of " + std::to_string(count) +
                         " shards, number " + std::to_string(listing.weightFiles.size() + 1) + " is missing");
  return sortTensors(listing);
}

Status addUnindexed(ModelListing &listing) {
  LLMC_ASSIGN_OR_RETURN(std::vector<std::string> names, namesIn(listing.folder));
  std::vector<std::string> weights, numbered, pickles, ggufs;
  for (const std::string &name : names) {
    if (name.ends_with(".safetensors"))
      weights.push_back(name);
    if (shardNumber(name))
      numbered.push_back(name);
    if (holdsPickle(name))
      pickles.push_back(name);
    if (name.ends_with(".gguf"))
      ggufs.push_back(name);
  }
  if (!numbered.empty())
    return addNumbered(listing, numbered);
  if (weights.size() > 1)
    return Status::error(listing.path + ": holds " + std::to_string(weights.size()) + " .safetensors files, first " +
                         inQuotes(weights[0]) + " and " + inQuotes(weights[1]) + ", and no " + indexName +
                         " to say what is where");
  if (weights.size() == 1 && ggufs.empty()) {
    LLMC_RETURN_IF_ERROR(addShard(listing, listing.folder + "/" + weights[0]));
    return sortTensors(listing);
  }
  if (!ggufs.empty())
    return Status::error(listing.path + ": holds " + std::to_string(ggufs.size()) +
                         " .gguf files and no model.safetensors; give the file itself, such as " + inQuotes(ggufs[0]));
  if (!pickles.empty())
    return Status::error(listing.path + ": holds " + inQuotes(pickles[0]) +
                         " and no .safetensors; pickled weights can run code, convert them to safetensors");
  return {};
}

// What an adapter changes is not published with it.
Status refuseAdapter(const std::string &folder) {
  const std::string path = folder + "/adapter_config.json";
  if (exists(folder + "/config.json") || !exists(path))
    return {};
  LLMC_ASSIGN_OR_RETURN(Json config, readJsonFile(path, limits::configBytes));
  const Json *base = find(config, "base_model_name_or_path");
  return Status::error(folder + ": is an adapter; the base model" +
                       (base && base->is_string() ? " " + inQuotes(base->get<std::string>()) : std::string()) +
                       " is missing, merge the adapter into it");
}

StatusOr<ModelListing> listFolder(const std::string &path) {
  LLMC_RETURN_IF_ERROR(refuseAdapter(path));
  ModelListing listing;
  listing.path = path;
  listing.folder = path;
  if (exists(path + "/config.json"))
    listing.configPath = path + "/config.json";
  bool indexed = exists(path + "/" + indexName), whole = exists(path + "/model.safetensors");
  if (indexed)
    LLMC_RETURN_IF_ERROR(addIndexed(listing));
  if (whole && !listing.weights.ok()) { // shards merged into one file, their index forgotten
    listing.warnings.push_back(listing.weights.message() + "; model.safetensors is read instead");
    listing.weights = {};
    listing.namesWithoutWeights.clear();
  }
  if (whole && listing.weightFiles.empty()) {
    LLMC_RETURN_IF_ERROR(addShard(listing, path + "/model.safetensors"));
    LLMC_RETURN_IF_ERROR(sortTensors(listing));
  }
  if (!indexed && !whole)
    LLMC_RETURN_IF_ERROR(addUnindexed(listing));
  if (!listing.weightFiles.empty() || !listing.configPath.empty())
    return listing;
  return listing.weights.ok() ? Status::error(path + ": holds neither config.json nor weights") : listing.weights;
}

StatusOr<ModelListing> listGguf(const std::string &path) {
  ModelListing listing;
  listing.path = path;
  LLMC_ASSIGN_OR_RETURN(GgufHeader first, readGgufHeader(path));
  LLMC_ASSIGN_OR_RETURN(std::vector<std::string> splits, ggufSplits(path, first.metadata));
  for (const std::string &split : splits) {
    LLMC_ASSIGN_OR_RETURN(FilePart part, readFilePart(split, 0, 0));
    LLMC_ASSIGN_OR_RETURN(GgufHeader header, readGgufHeader(split));
    auto file = static_cast<uint32_t>(listing.weightFiles.size());
    listing.weightFiles.push_back(split);
    listing.identities.push_back(part.file);
    for (GgufTensor &tensor : header.tensors)
      listing.tensors.push_back(
          {std::move(tensor.name), std::move(tensor.shape), tensor.type, file, tensor.offset, tensor.bytes});
    if (file == 0)
      listing.gguf = std::move(header.metadata);
  }
  LLMC_RETURN_IF_ERROR(sortTensors(listing));
  if (splits.size() > 1 && listing.gguf->has("split.tensors.count")) {
    LLMC_ASSIGN_OR_RETURN(int64_t count, listing.gguf->integer("split.tensors.count", 0, limits::tensorsPerModel));
    if (static_cast<uint64_t>(count) != listing.tensors.size())
      return Status::error(path + ": 'split.tensors.count' is " + std::to_string(count) + ", the splits hold " +
                           std::to_string(listing.tensors.size()) + " tensors");
  }
  return listing;
}

} // namespace

StatusOr<ModelListing> listModel(const std::string &path) {
  if (isFolder(path))
    return listFolder(path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path);
  LLMC_ASSIGN_OR_RETURN(FilePart head, readFilePart(path, 0, 64));
  std::span bytes(reinterpret_cast<const uint8_t *>(head.bytes.data()), head.bytes.size());
  if (head.bytes.starts_with("GGUF"))
    return listGguf(path);
  if (path.ends_with(".json")) {
    // Beside a config.json lie the other small files of its model; another name says that it stands alone.
    ModelListing listing;
    listing.path = path;
    listing.configPath = path;
    if (nameOf(path) == "config.json")
      listing.folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path().string() : ".";
    return listing;
  }
  if (std::string foreign = foreignContent(bytes); !foreign.empty())
    return Status::error(path + ": " + foreign);
  if (path.ends_with(".gguf"))
    return listGguf(path); // for its message
  if (path.ends_with(".safetensors"))
    return Status::error(path + ": is one weight file; give its folder, which holds the config too");
  return Status::error(path + ": not a model; expected a Hugging Face folder, a .gguf file or a config.json");
}

} // namespace llmc
