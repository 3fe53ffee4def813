// Any bytes as the head of a GGUF file: all metadata reads as every type without a crash, tensors lie in the file
// apart.
#include "lib/importer/files/Gguf.h"
#include <cstdlib>

using namespace llmc;

namespace {

void readAsEveryType(const GgufMetadata &metadata, const std::string &key) {
  bool read = metadata.integer(key, INT64_MIN, INT64_MAX).ok();
  read |= metadata.number(key).ok();
  read |= metadata.boolean(key).ok();
  read |= metadata.string(key).ok();
  read |= metadata.integers(key, INT64_MIN, INT64_MAX).ok();
  read |= metadata.numbers(key).ok();
  read |= metadata.booleans(key).ok();
  read |= metadata.strings(key).ok();
  // What no reader takes: integers that do not fit int64_t, and arrays of arrays.
  StatusOr<GgufType> type = metadata.type(key), element = metadata.elementType(key);
  bool isLarge = *type == GgufType::U64 || (element.ok() && *element == GgufType::U64);
  if (!read && !isLarge && !(element.ok() && *element == GgufType::Array))
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Sometimes the file goes on behind the head.
  uint64_t fileBytes = size + (size && data[size - 1] % 2 ? 4096 : 0);
  StatusOr<GgufHeader> header = parseGguf({data, size}, fileBytes, "m");
  if (!header.ok()) {
    if (header.status().message().find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  for (const std::string &key : header->metadata.keys())
    readAsEveryType(header->metadata, key);
  for (const GgufTensor &tensor : header->tensors)
    if (tensor.offset < header->dataOffset || tensor.offset > fileBytes || tensor.bytes > fileBytes - tensor.offset)
      std::abort();
  return 0;
}
