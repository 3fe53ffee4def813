// Reads the index, and keeps its file names inside the model's folder.
#include "lib/importer/files/WeightIndex.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <filesystem>

namespace llmc {
namespace {

namespace fs = std::filesystem;

Status checkShardName(const std::string &shard, const std::string &pointer) {
  Status leaves = Status::error(pointer + ": " + inQuotes(shard) + " leaves the model folder");
  if (shard.empty())
    return Status::error(pointer + " is \"\", expected a file name");
  if (shard.find('\0') != std::string::npos)
    return Status::error(pointer + ": " + inQuotes(shard) + " holds a NUL byte");
  if (shard.front() == '/')
    return leaves;
  for (const fs::path &part : fs::path(shard))
    if (part == "..")
      return leaves;
  if (shard.ends_with(".index.json"))
    return Status::error(pointer + ": shard " + inQuotes(shard) + " is an index, not weights");
  if (!shard.ends_with(".safetensors"))
    return Status::error(pointer + ": shard " + inQuotes(shard) +
                         " is not a .safetensors file; convert the model to safetensors");
  return {};
}

bool isInside(const fs::path &path, const fs::path &folder) {
  auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

} // namespace

StatusOr<WeightIndex> parseWeightIndex(std::string_view text, const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(text, name));
  WeightIndex index;
  const Json *map = find(root, "weight_map");
  if (!map || !map->is_object())
    return Status::error(name + ": /weight_map is " + (map ? brief(*map) : "missing") +
                         ", expected an object of tensor and file names");
  if (map->size() > limits::tensorsPerModel)
    return Status::error(name + ": " + std::to_string(map->size()) + " tensors, limit " +
                         std::to_string(limits::tensorsPerModel));
  for (auto it = map->begin(); it != map->end(); ++it) {
    std::string tensor = inQuotes(it.key());
    std::string pointer = name + ": /weight_map/" + tensor.substr(1, tensor.size() - 2);
    LLMC_ASSIGN_OR_RETURN(std::string shard, asString(it.value(), pointer));
    LLMC_RETURN_IF_ERROR(checkShardName(shard, pointer));
    index.shardOf.emplace(it.key(), std::move(shard));
  }
  // Published totals are integers, and now and then whole floats or wrong; the reader of the shards knows better.
  const Json *metadata = find(root, "metadata");
  const Json *total = metadata ? find(*metadata, "total_size") : nullptr;
  if (total) {
    LLMC_ASSIGN_OR_RETURN(int64_t bytes, asInteger(*total, name + ": /metadata/total_size", 0, INT64_MAX));
    index.totalBytes = static_cast<uint64_t>(bytes);
  }
  return index;
}

StatusOr<std::string> resolveShard(const std::string &folder, const std::string &shard, const std::string &pointer) {
  LLMC_RETURN_IF_ERROR(checkShardName(shard, pointer));
  std::string path = folder + "/" + shard;
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error)
    return Status::error(pointer + ": " + inQuotes(shard) + " cannot be found: " + error.message());
  fs::path realFolder = fs::canonical(folder, error);
  if (error)
    return Status::error(folder + ": " + error.message());
  if (isInside(real, realFolder))
    return path;
  fs::path snapshots = realFolder.parent_path();
  if (snapshots.filename() == "snapshots" && isInside(real, snapshots.parent_path() / "blobs"))
    return path;
  return Status::error(pointer + ": " + inQuotes(shard) + " links to " + inQuotes(real.string()) +
                       " and leaves the model folder");
}

} // namespace llmc
