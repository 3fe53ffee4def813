// Weight files made in memory, right or wrong in every way a test asks for.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::test {

inline std::span<const uint8_t> asBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

template <typename T> std::string littleEndian(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(T));
}

// A safetensors file of the given header text and `dataBytes` of zeros.
inline std::string safetensorsBytes(std::string_view header, uint64_t dataBytes = 0) {
  return littleEndian(uint64_t{header.size()}) + std::string(header) + std::string(dataBytes, '\0');
}

// Appends what it is told, in the format's encoding.
class GgufBytes {
public:
  GgufBytes(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    magic("GGUF").u32(version).u64(tensors).u64(keys);
  }
  GgufBytes &magic(std::string_view text) { return raw(text); }
  GgufBytes &raw(std::string_view text) {
    bytes += text;
    return *this;
  }
  GgufBytes &u8(uint8_t value) { return raw(littleEndian(value)); }
  GgufBytes &u32(uint32_t value) { return raw(littleEndian(value)); }
  GgufBytes &u64(uint64_t value) { return raw(littleEndian(value)); }
  GgufBytes &string(std::string_view text) { return u64(text.size()).raw(text); }
  // A pair of key and value.
  GgufBytes &key(std::string_view name, uint32_t type) { return string(name).u32(type); }
  GgufBytes &keyU32(std::string_view name, uint32_t value) { return key(name, 4).u32(value); }
  GgufBytes &tensor(std::string_view name, const std::vector<uint64_t> &dimensions, uint32_t type, uint64_t offset) {
    string(name).u32(static_cast<uint32_t>(dimensions.size()));
    for (uint64_t dimension : dimensions)
      u64(dimension);
    return u32(type).u64(offset);
  }
  // The padding before the data, and the data.
  GgufBytes &data(uint64_t dataBytes, uint64_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment + dataBytes);
    return *this;
  }
  std::string bytes;
};

} // namespace llmc::test
