// Parses and checks a safetensors header. Offsets in messages are those of the file's own fields: data_offsets count
// from the start of the data.
#include "lib/importer/files/Safetensors.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <string_view>
#include <tuple>

namespace llmc {
namespace {

constexpr uint64_t lengthBytes = 8;
// The format counts in doubles' exact integers.
constexpr uint64_t largestOffset = uint64_t{1} << 53;

uint64_t littleEndian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

std::string hexByte(uint8_t byte) {
  const char *digits = "0123456789ABCDEF";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

Status checkFirstByte(uint8_t byte, const std::string &name) {
  if (byte == '{')
    return {};
  return Status::error(name + ": header must start with '{' at byte 8, found " + hexByte(byte) +
                       (byte == 0xEF ? " (byte order mark)" : ""));
}

// A tensor while the header is checked; offsets from the start of the data.
struct Entry {
  SafetensorsTensor tensor;
  uint64_t begin;
  uint64_t end;
};

std::string range(const Entry &entry) {
  return inQuotes(entry.tensor.name) + " [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + ")";
}

Status checkKeys(const Json &value, const std::string &which) {
  for (auto it = value.begin(); it != value.end(); ++it)
    if (it.key() != "dtype" && it.key() != "shape" && it.key() != "data_offsets")
      return Status::error(which + " has the key " + inQuotes(it.key()) +
                           ", expected dtype, shape and data_offsets only");
  return {};
}

StatusOr<TensorType> parseType(const Json &value, const std::string &which) {
  const Json *dtype = find(value, "dtype");
  if (!dtype)
    return Status::error(which + " has no dtype");
  LLMC_ASSIGN_OR_RETURN(std::string spelling, asString(*dtype, which + ": dtype"));
  if (std::optional<TensorType> type = safetensorsType(spelling))
    return *type;
  return Status::error(which + ": unknown dtype " + inQuotes(spelling) + " (known = " + knownSafetensorsTypes() + ")");
}

StatusOr<std::vector<uint64_t>> parseShape(const Json &value, const std::string &which) {
  const Json *shape = find(value, "shape");
  if (!shape || !shape->is_array())
    return Status::error(which + " has no shape, expected an array");
  if (shape->size() > static_cast<size_t>(limits::tensorRank))
    return Status::error(which + " has " + std::to_string(shape->size()) + " dimensions, limit " +
                         std::to_string(limits::tensorRank));
  std::vector<uint64_t> dimensions;
  for (const Json &element : *shape) {
    std::string pointer = which + ": shape/" + std::to_string(dimensions.size());
    LLMC_ASSIGN_OR_RETURN(uint64_t dimension, asUnsigned(element, pointer, UINT64_MAX));
    dimensions.push_back(dimension);
  }
  return dimensions;
}

Status parseOffsets(const Json &value, const std::string &which, Entry &entry) {
  const Json *offsets = find(value, "data_offsets");
  if (!offsets || !offsets->is_array() || offsets->size() != 2)
    return Status::error(which + " has data_offsets " + (offsets ? brief(*offsets) : "missing") +
                         ", expected [begin, end]");
  LLMC_ASSIGN_OR_RETURN(entry.begin, asUnsigned((*offsets)[0], which + ": data_offsets/0", largestOffset));
  LLMC_ASSIGN_OR_RETURN(entry.end, asUnsigned((*offsets)[1], which + ": data_offsets/1", largestOffset));
  if (entry.begin > entry.end)
    return Status::error(which + ": data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) +
                         "] are reversed");
  return {};
}

StatusOr<Entry> parseEntry(const std::string &key, const Json &value) {
  Entry entry = {};
  std::string which = "tensor " + inQuotes(key);
  if (!value.is_object())
    return Status::error(which + " is " + brief(value) + ", expected an object");
  LLMC_RETURN_IF_ERROR(checkKeys(value, which));
  LLMC_ASSIGN_OR_RETURN(TensorType type, parseType(value, which));
  LLMC_ASSIGN_OR_RETURN(std::vector<uint64_t> shape, parseShape(value, which));
  LLMC_RETURN_IF_ERROR(parseOffsets(value, which, entry));
  StatusOr<uint64_t> bytes = tensorBytes(type, shape);
  if (!bytes.ok())
    return bytes.status().inside(which);
  if (*bytes != entry.end - entry.begin)
    return Status::error(which + ": shape " + printShape(shape) + " of " + std::string(nameOf(type)) + " takes " +
                         std::to_string(*bytes) + " bytes, data_offsets give " +
                         std::to_string(entry.end - entry.begin));
  entry.tensor = {key, type, std::move(shape), 0, *bytes};
  return entry;
}

Status parseMetadata(const Json &value, SafetensorsHeader &header) {
  if (!value.is_object())
    return Status::error("/__metadata__ is " + brief(value) + ", expected an object");
  for (auto it = value.begin(); it != value.end(); ++it) {
    LLMC_ASSIGN_OR_RETURN(std::string text, asString(it.value(), "/__metadata__/" + it.key()));
    header.metadata.emplace_back(it.key(), std::move(text));
  }
  return {};
}

// The tensors must cover the data from its first byte to its last, each byte once.
Status checkLayout(std::vector<Entry> &entries, uint64_t dataOffset, uint64_t fileBytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  const Entry *previous = nullptr;
  uint64_t covered = 0;
  for (const Entry &entry : entries) {
    if (entry.begin < covered)
      return Status::error("tensors " + range(*previous) + " and " + range(entry) + " overlap");
    if (entry.begin > covered)
      return Status::error("bytes " + std::to_string(covered) + " to " + std::to_string(entry.begin - 1) +
                           " belong to no tensor");
    covered = entry.end;
    previous = &entry;
  }
  CheckedSize end = CheckedSize(dataOffset) + covered;
  if (!end.fits(fileBytes))
    return Status::error("data ends at " + std::to_string(dataOffset + covered) + ", the file at " +
                         std::to_string(fileBytes) + "; the download is incomplete");
  if (*end.value() != fileBytes)
    return Status::error("data ends at " + std::to_string(*end.value()) + ", the file at " + std::to_string(fileBytes));
  return {};
}

} // namespace

std::string foreignContent(std::span<const uint8_t> head) {
  std::string_view text(reinterpret_cast<const char *>(head.data()), head.size());
  if (text.starts_with("version https://git-lfs"))
    return "this is a Git LFS pointer, not the weights; run git lfs pull";
  // These first bytes could be the length of a header; then byte 8 opens it.
  if (text.size() > lengthBytes && text[lengthBytes] == '{')
    return "";
  if (text.starts_with("PK\x03\x04"))
    return "this is a PyTorch archive (PK 03 04), which can run code; convert it to safetensors";
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5)
    return "this is a Python pickle (80 0" + std::to_string(text[1]) +
           "), which can run code; convert it to safetensors";
  if (text.starts_with("\x89HDF\r\n"))
    return "this is an HDF5 file; convert it to safetensors";
  if (text.starts_with("<!DOCTYPE") || text.starts_with("<!doctype") || text.starts_with("<html"))
    return "this is a web page, not the weights; download it again";
  return "";
}

StatusOr<uint64_t> safetensorsHeaderLength(std::span<const uint8_t> head, uint64_t fileBytes, const std::string &name) {
  if (fileBytes < lengthBytes || head.size() < lengthBytes)
    return Status::error(name + ": file has " + std::to_string(std::min<uint64_t>(fileBytes, head.size())) +
                         " bytes, but the header length alone takes 8; download it again");
  if (std::string foreign = foreignContent(head); !foreign.empty())
    return Status::error(name + ": " + foreign);
  if (std::string_view(reinterpret_cast<const char *>(head.data()), 4) == "GGUF")
    return Status::error(name + ": this is a GGUF file; rename it to .gguf");
  uint64_t length = littleEndian(head);
  if (length > limits::safetensorsHeaderBytes)
    return Status::error(name + ": header length " + std::to_string(length) + " exceeds the limit " +
                         std::to_string(limits::safetensorsHeaderBytes));
  if (lengthBytes + length > fileBytes)
    return Status::error(name + ": header ends at byte " + std::to_string(lengthBytes + length) + ", the file at " +
                         std::to_string(fileBytes) + "; the download is incomplete");
  if (length == 0)
    return Status::error(name + ": header length is 0, but '{}' is the shortest header");
  return length;
}

StatusOr<SafetensorsHeader> parseSafetensorsHeader(std::span<const uint8_t> head, uint64_t fileBytes,
                                                   const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(uint64_t length, safetensorsHeaderLength(head, fileBytes, name));
  if (head.size() - lengthBytes < length)
    return Status::error(name + ": header ends at byte " + std::to_string(lengthBytes + length) + ", but only " +
                         std::to_string(head.size()) + " bytes were read");
  LLMC_RETURN_IF_ERROR(checkFirstByte(head[lengthBytes], name));
  std::string_view text(reinterpret_cast<const char *>(head.data()) + lengthBytes, length);
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(text, name, JsonRoot::Object, "tensor"));

  SafetensorsHeader header;
  header.dataOffset = lengthBytes + length;
  uint64_t tensors = root.size() - (find(root, "__metadata__") ? 1 : 0);
  if (tensors > limits::tensorsPerFile)
    return Status::error(name + ": " + std::to_string(tensors) + " tensors, limit " +
                         std::to_string(limits::tensorsPerFile));
  std::vector<Entry> entries;
  entries.reserve(tensors);
  for (auto it = root.begin(); it != root.end(); ++it) {
    if (it.key() == "__metadata__") {
      if (Status status = parseMetadata(it.value(), header); !status.ok())
        return status.inside(name);
      continue;
    }
    StatusOr<Entry> entry = parseEntry(it.key(), it.value());
    if (!entry.ok())
      return entry.status().inside(name);
    entries.push_back(std::move(*entry));
  }
  if (Status status = checkLayout(entries, header.dataOffset, fileBytes); !status.ok())
    return status.inside(name);
  for (Entry &entry : entries) {
    entry.tensor.offset = header.dataOffset + entry.begin;
    header.tensors.push_back(std::move(entry.tensor));
  }
  return header;
}

std::string safetensorsHead(std::span<const SafetensorsTensor> tensors,
                            const std::vector<std::pair<std::string, std::string>> &metadata) {
  Json header = Json::object();
  for (const auto &[key, value] : metadata)
    header["__metadata__"][key] = value;
  uint64_t offset = 0;
  for (const SafetensorsTensor &tensor : tensors) {
    header[tensor.name] = {{"dtype", std::string(nameOf(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + lengthBytes - 1) / lengthBytes * lengthBytes, ' ');
  std::string head;
  for (size_t i = 0; i < lengthBytes; ++i)
    head.push_back(static_cast<char>(text.size() >> (8 * i)));
  return head + text;
}

StatusOr<SafetensorsHeader> readSafetensorsHeader(const std::string &path) {
  LLMC_ASSIGN_OR_RETURN(FilePart start, readFilePart(path, 0, 64));
  auto bytes = [](const std::string &text) {
    return std::span(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  };
  LLMC_ASSIGN_OR_RETURN(uint64_t length, safetensorsHeaderLength(bytes(start.bytes), start.file.bytes, path));
  LLMC_ASSIGN_OR_RETURN(FilePart head, readFilePart(path, 0, lengthBytes + length));
  LLMC_RETURN_IF_ERROR(start.file.checkSame(head.file, path));
  return parseSafetensorsHeader(bytes(head.bytes), head.file.bytes, path);
}

} // namespace llmc
