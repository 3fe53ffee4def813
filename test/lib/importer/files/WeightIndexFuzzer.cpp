// Any bytes as a weight index: names that stay in the folder, or one line of text.
#include "lib/importer/files/WeightIndex.h"
#include <cstdlib>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StatusOr<WeightIndex> index = parseWeightIndex({reinterpret_cast<const char *>(data), size}, "i");
  if (!index.ok()) {
    if (index.status().message().find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  for (const auto &[tensor, shard] : index->shardOf)
    if (shard.starts_with("/") || shard.starts_with("../") || shard.find("/../") != std::string::npos ||
        shard.find('\0') != std::string::npos)
      std::abort();
  return 0;
}
