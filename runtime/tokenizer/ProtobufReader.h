// Reads the wire format of protocol buffers: fields in order, nothing more.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string_view>

namespace llmc {

class ProtobufReader {
public:
  // `base` is the offset of `bytes` in the file, for messages.
  explicit ProtobufReader(std::string_view bytes, size_t base = 0) : bytes_(bytes), base_(base) {}

  struct Field {
    uint32_t number = 0;
    enum class Kind { Varint, Fixed64, Bytes, Fixed32 } kind = Kind::Varint;
    uint64_t integer = 0;   // Varint, Fixed32 and Fixed64
    std::string_view bytes; // Bytes
    size_t offset = 0;      // of the field's content in the file
    float asFloat() const;
  };
  // The next field; false at the end.
  StatusOr<bool> next(Field &field);

private:
  StatusOr<uint64_t> varint();
  Status error(const std::string &what) const;
  std::string_view bytes_;
  size_t base_;
  size_t at_ = 0;
};

} // namespace llmc
