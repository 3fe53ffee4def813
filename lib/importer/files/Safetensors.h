// The header of a safetensors file: 8 bytes of length, JSON, then the data. Everything the format forbids is refused
// here, and more: a repeated key, a shape that hides an overflow, files of other kinds under this name. No data is
// read.
#pragma once
#include "lib/importer/files/TensorType.h"
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

struct SafetensorsTensor {
  std::string name;
  TensorType type;
  std::vector<uint64_t> shape;
  uint64_t offset; // in the file
  uint64_t bytes;
};

struct SafetensorsHeader {
  uint64_t dataOffset = 0;                // where the data begins in the file
  std::vector<SafetensorsTensor> tensors; // by offset; together they cover the data without gap or overlap
  std::vector<std::pair<std::string, std::string>> metadata;
};

// The length of the header, from the first bytes of a file (16 are enough to tell files of other kinds apart).
StatusOr<uint64_t> safetensorsHeaderLength(std::span<const uint8_t> head, uint64_t fileBytes, const std::string &name);
// `head` holds at least the 8 bytes of the length and the header; messages start with `name`.
StatusOr<SafetensorsHeader> parseSafetensorsHeader(std::span<const uint8_t> head, uint64_t fileBytes,
                                                   const std::string &name);
// Reads the header of the file at `path`, and nothing behind it.
StatusOr<SafetensorsHeader> readSafetensorsHeader(const std::string &path);

// What a file that holds `tensors`, their data in this order, begins with: length, JSON, and blanks up to a multiple of
// eight. `offset` is not read.
std::string safetensorsHead(std::span<const SafetensorsTensor> tensors,
                            const std::vector<std::pair<std::string, std::string>> &metadata = {});

// Why a file that starts with `head` is no model we read although its name says so ("this is a Git LFS pointer, ..."),
// or nothing. Where the first bytes could also be a header's length, a '{' behind them decides.
std::string foreignContent(std::span<const uint8_t> head);

} // namespace llmc
