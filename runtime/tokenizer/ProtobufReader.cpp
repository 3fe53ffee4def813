// Every length is compared with the bytes left before it is used.
#include "runtime/tokenizer/ProtobufReader.h"
#include <bit>

namespace llmc {

float ProtobufReader::Field::asFloat() const { return std::bit_cast<float>(static_cast<uint32_t>(integer)); }

Status ProtobufReader::error(const std::string &what) const {
  return Status::error("byte " + std::to_string(base_ + at_) + ": " + what);
}

StatusOr<uint64_t> ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size())
      return error("the data ends inside a number; the file is incomplete");
    auto byte = static_cast<uint8_t>(bytes_[at_++]);
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80)
      return value;
  }
  return error("a number has more than ten bytes");
}

StatusOr<bool> ProtobufReader::next(Field &field) {
  if (at_ == bytes_.size())
    return false;
  LLMC_ASSIGN_OR_RETURN(uint64_t tag, varint());
  if (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF)
    return error("field number " + std::to_string(tag >> 3) + " is not valid");
  field = {};
  field.number = static_cast<uint32_t>(tag >> 3);
  uint64_t wireType = tag & 7;
  if (wireType == 0) {
    LLMC_ASSIGN_OR_RETURN(field.integer, varint());
    return true;
  }
  uint64_t size = wireType == 1 ? 8 : 4;
  if (wireType == 2) {
    LLMC_ASSIGN_OR_RETURN(size, varint());
  } else if (wireType != 1 && wireType != 5) {
    return error("wire type " + std::to_string(wireType) + " is unknown (known = 0, 1, 2, 5)");
  }
  if (size > bytes_.size() - at_)
    return error("a field of " + std::to_string(size) + " bytes does not fit in the " +
                 std::to_string(bytes_.size() - at_) + " that follow");
  field.offset = base_ + at_;
  field.bytes = bytes_.substr(at_, size);
  at_ += size;
  field.kind = wireType == 1 ? Field::Kind::Fixed64 : wireType == 5 ? Field::Kind::Fixed32 : Field::Kind::Bytes;
  if (field.kind != Field::Kind::Bytes)
    for (size_t i = size; i-- > 0;)
      field.integer = field.integer << 8 | static_cast<uint8_t>(field.bytes[i]);
  return true;
}

} // namespace llmc
