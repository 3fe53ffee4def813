// Typed reading of GGUF metadata. The parser has checked that every value lies within bytes_.
#include "lib/importer/files/Gguf.h"
#include "runtime/support/Json.h"
#include <cstring>

namespace llmc {
namespace {

template <typename T> T load(const std::string &bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

} // namespace

std::string_view nameOf(GgufType type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<size_t>(type)];
}

uint64_t ggufValueBytes(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
  case GgufType::String: // its length
    return 8;
  case GgufType::Array: // its element type and length
    return 12;
  }
  return 1;
}

const GgufMetadata::Value *GgufMetadata::find(std::string_view key) const {
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

std::string GgufMetadata::where(std::string_view key) const { return file_ + ": key " + inQuotes(key); }

Status GgufMetadata::wrong(std::string_view key, const Value &value, std::string_view what) const {
  std::string is = value.type == GgufType::Array
                       ? "an array of " + std::to_string(value.count) + " " + std::string(nameOf(value.elementType))
                       : "of type " + std::string(nameOf(value.type));
  return Status::error(where(key) + " is " + is + ", expected " + std::string(what));
}

StatusOr<const GgufMetadata::Value *> GgufMetadata::scalar(std::string_view key, std::string_view what) const {
  const Value *value = find(key);
  if (!value)
    return Status::error(where(key) + " is missing, expected " + std::string(what));
  if (value->type == GgufType::Array)
    return wrong(key, *value, what);
  return value;
}

StatusOr<const GgufMetadata::Value *> GgufMetadata::array(std::string_view key, std::string_view what) const {
  const Value *value = find(key);
  if (!value)
    return Status::error(where(key) + " is missing, expected " + std::string(what));
  if (value->type != GgufType::Array)
    return wrong(key, *value, what);
  return value;
}

StatusOr<GgufType> GgufMetadata::type(std::string_view key) const {
  const Value *value = find(key);
  if (!value)
    return Status::error(where(key) + " is missing");
  return value->type;
}

StatusOr<GgufType> GgufMetadata::elementType(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, array(key, "an array"));
  return value->elementType;
}

StatusOr<uint64_t> GgufMetadata::arrayLength(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, array(key, "an array"));
  return value->count;
}

bool GgufMetadata::isInteger(GgufType type) const {
  switch (type) {
  case GgufType::F32:
  case GgufType::F64:
  case GgufType::Bool:
  case GgufType::String:
  case GgufType::Array:
    return false;
  default:
    return true;
  }
}

StatusOr<int64_t> GgufMetadata::integerAt(std::string_view key, GgufType type, uint64_t offset, int64_t min,
                                          int64_t max) const {
  int64_t value = 0;
  switch (type) {
  case GgufType::U8:
    value = load<uint8_t>(bytes_, offset);
    break;
  case GgufType::I8:
    value = load<int8_t>(bytes_, offset);
    break;
  case GgufType::U16:
    value = load<uint16_t>(bytes_, offset);
    break;
  case GgufType::I16:
    value = load<int16_t>(bytes_, offset);
    break;
  case GgufType::U32:
    value = load<uint32_t>(bytes_, offset);
    break;
  case GgufType::I32:
    value = load<int32_t>(bytes_, offset);
    break;
  default:
    value = load<int64_t>(bytes_, offset);
    break;
  }
  bool beyond = type == GgufType::U64 && value < 0;
  if (!beyond && value >= min && value <= max)
    return value;
  std::string is = beyond ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
  return Status::error(where(key) + " is " + is + ", expected " + std::to_string(min) + " to " + std::to_string(max));
}

StatusOr<int64_t> GgufMetadata::integer(std::string_view key, int64_t min, int64_t max) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, scalar(key, "an integer"));
  if (!isInteger(value->type))
    return wrong(key, *value, "an integer");
  return integerAt(key, value->type, value->offset, min, max);
}

// Of a floating-point or integer type.
double GgufMetadata::numberAt(GgufType type, uint64_t offset) const {
  if (type == GgufType::F32)
    return load<float>(bytes_, offset);
  if (type == GgufType::F64)
    return load<double>(bytes_, offset);
  if (type == GgufType::U64)
    return static_cast<double>(load<uint64_t>(bytes_, offset));
  return static_cast<double>(*integerAt("", type, offset, INT64_MIN, INT64_MAX));
}

StatusOr<double> GgufMetadata::number(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, scalar(key, "a number"));
  if (!isInteger(value->type) && value->type != GgufType::F32 && value->type != GgufType::F64)
    return wrong(key, *value, "a number");
  return numberAt(value->type, value->offset);
}

StatusOr<bool> GgufMetadata::boolean(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, scalar(key, "a bool"));
  if (value->type != GgufType::Bool)
    return wrong(key, *value, "a bool");
  return bytes_[value->offset] != 0;
}

std::string GgufMetadata::stringAt(uint64_t offset) const {
  return bytes_.substr(offset + 8, load<uint64_t>(bytes_, offset));
}

StatusOr<std::string> GgufMetadata::string(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, scalar(key, "a string"));
  if (value->type != GgufType::String)
    return wrong(key, *value, "a string");
  return stringAt(value->offset);
}

StatusOr<std::vector<int64_t>> GgufMetadata::integers(std::string_view key, int64_t min, int64_t max) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, array(key, "an array of integers"));
  if (!isInteger(value->elementType))
    return wrong(key, *value, "an array of integers");
  std::vector<int64_t> out;
  out.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    uint64_t offset = value->offset + i * ggufValueBytes(value->elementType);
    StatusOr<int64_t> element = integerAt(key, value->elementType, offset, min, max);
    if (!element.ok())
      return Status::error(element.status().message() + " at index " + std::to_string(i));
    out.push_back(*element);
  }
  return out;
}

StatusOr<std::vector<double>> GgufMetadata::numbers(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, array(key, "an array of numbers"));
  GgufType type = value->elementType;
  if (!isInteger(type) && type != GgufType::F32 && type != GgufType::F64)
    return wrong(key, *value, "an array of numbers");
  std::vector<double> out;
  out.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i)
    out.push_back(numberAt(type, value->offset + i * ggufValueBytes(type)));
  return out;
}

StatusOr<std::vector<bool>> GgufMetadata::booleans(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, array(key, "an array of bools"));
  if (value->elementType != GgufType::Bool)
    return wrong(key, *value, "an array of bools");
  std::vector<bool> out;
  out.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i)
    out.push_back(bytes_[value->offset + i] != 0);
  return out;
}

StatusOr<std::vector<std::string>> GgufMetadata::strings(std::string_view key) const {
  LLMC_ASSIGN_OR_RETURN(const Value *value, array(key, "an array of strings"));
  if (value->elementType != GgufType::String)
    return wrong(key, *value, "an array of strings");
  std::vector<std::string> out;
  out.reserve(value->count);
  uint64_t offset = value->offset;
  for (uint64_t i = 0; i < value->count; ++i) {
    out.push_back(stringAt(offset));
    offset += 8 + out.back().size();
  }
  return out;
}

} // namespace llmc
