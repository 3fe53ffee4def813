// The head of a GGUF file (versions 2 and 3, little endian): typed metadata and tensor infos. No tensor data is read.
#pragma once
#include "lib/importer/files/TensorType.h"
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// The numbers of the format.
enum class GgufType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
std::string_view nameOf(GgufType type);
// Bytes of one value in the file; for strings and arrays the fewest that one takes.
uint64_t ggufValueBytes(GgufType type);

// The key-value pairs. Values stay as the bytes of the file, checked while parsing, and are decoded when asked for: an
// array of 10^6 tokens costs nothing until somebody reads it. A wrong type, a missing key or a value out of range is an
// error that names the file and the key.
class GgufMetadata {
public:
  // In the order of the file.
  const std::vector<std::string> &keys() const { return keys_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Array for an array; elementType and arrayLength say of what and how many.
  StatusOr<GgufType> type(std::string_view key) const;
  StatusOr<GgufType> elementType(std::string_view key) const;
  StatusOr<uint64_t> arrayLength(std::string_view key) const;

  StatusOr<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  StatusOr<double> number(std::string_view key) const;
  StatusOr<bool> boolean(std::string_view key) const;
  StatusOr<std::string> string(std::string_view key) const;
  StatusOr<std::vector<int64_t>> integers(std::string_view key, int64_t min, int64_t max) const;
  StatusOr<std::vector<double>> numbers(std::string_view key) const;
  StatusOr<std::vector<bool>> booleans(std::string_view key) const;
  StatusOr<std::vector<std::string>> strings(std::string_view key) const;

private:
  friend class GgufParser;
  struct Value {
    GgufType type;
    GgufType elementType; // the type itself where it is no array
    uint64_t count;       // elements; 1 where it is no array
    uint64_t offset;      // of the first element in bytes_
  };
  const Value *find(std::string_view key) const;
  StatusOr<const Value *> scalar(std::string_view key, std::string_view what) const;
  StatusOr<const Value *> array(std::string_view key, std::string_view what) const;
  Status wrong(std::string_view key, const Value &value, std::string_view what) const;
  std::string where(std::string_view key) const;
  bool isInteger(GgufType type) const;
  StatusOr<int64_t> integerAt(std::string_view key, GgufType type, uint64_t offset, int64_t min, int64_t max) const;
  double numberAt(GgufType type, uint64_t offset) const;
  std::string stringAt(uint64_t offset) const;

  std::string file_;
  std::string bytes_;
  std::vector<std::string> keys_;
  std::map<std::string, Value, std::less<>> values_;
};

struct GgufTensor {
  std::string name;
  TensorType type;
  std::vector<uint64_t> shape; // as torch has it: the file's dimensions reversed, the last one runs fastest
  uint64_t offset;             // in the file
  uint64_t bytes;
};

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t dataOffset = 0; // where the data begins in the file
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors; // in the order of the file
};

// `head` is the start of the file: all of it, or at least up to the data. Messages start with `name`.
StatusOr<GgufHeader> parseGguf(std::span<const uint8_t> head, uint64_t fileBytes, const std::string &name);
// Reads as much of the file at `path` as its head takes.
StatusOr<GgufHeader> readGgufHeader(const std::string &path);

} // namespace llmc
