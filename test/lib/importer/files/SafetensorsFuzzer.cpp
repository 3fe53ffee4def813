// Any bytes as a safetensors file: a header whose tensors cover the data, or one line of text.
#include "lib/importer/files/Safetensors.h"
#include <cstdio>
#include <cstdlib>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The size of the file is input too: the last byte moves it.
  uint64_t fileBytes = size ? size + data[size - 1] % 3 : 0;
  StatusOr<SafetensorsHeader> header = parseSafetensorsHeader({data, size}, fileBytes, "w");
  if (!header.ok()) {
    if (header.status().message().find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  uint64_t end = header->dataOffset;
  for (const SafetensorsTensor &tensor : header->tensors) {
    if (tensor.offset != end || *tensorBytes(tensor.type, tensor.shape) != tensor.bytes)
      std::abort();
    end += tensor.bytes;
  }
  if (end != fileBytes)
    std::abort();
  return 0;
}
