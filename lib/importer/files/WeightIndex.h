// model.safetensors.index.json: which shard holds which tensor. Parsing checks the text; whether the shards exist and
// hold what the index says is ModelFiles' affair, which reads their headers.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace llmc {

struct WeightIndex {
  std::map<std::string, std::string> shardOf; // tensor name -> file name, relative to the folder
  std::optional<uint64_t> totalBytes;         // what /metadata/total_size claims
};

// `name` is the index's own path. Shard names that leave the folder (absolute, '..', NUL) or name an index are refused.
StatusOr<WeightIndex> parseWeightIndex(std::string_view text, const std::string &name);

// The path of `shard` in `folder`, after symbolic links: an error if it ends outside the folder. The one exception is
// the layout of the Hugging Face cache, where snapshots/REVISION/FILE links to blobs/HASH of the same model.
StatusOr<std::string> resolveShard(const std::string &folder, const std::string &shard, const std::string &pointer);

} // namespace llmc
