// Parses and checks the head of a GGUF file. Every count is compared with the bytes that are left before it is used.
#include "lib/importer/files/Gguf.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

namespace llmc {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie in the file");

// Walks the head of one file. A read past `head_` but inside the file sets needsMore: the caller may come back with
// more.
class GgufParser {
public:
  GgufParser(std::span<const uint8_t> head, uint64_t fileBytes, const std::string &name)
      : head_(head), fileBytes_(fileBytes), name_(name) {}
  StatusOr<GgufHeader> parse();
  bool needsMore() const { return needsMore_; }

private:
  Status parseCounts();
  Status parseMetadata();
  Status parseValue(const std::string &key);
  Status skipElements(const std::string &where, GgufType type, uint64_t count, int nesting);
  Status parseAlignment();
  Status parseTensors();
  StatusOr<GgufTensor> parseTensor(uint64_t index);
  Status placeTensors();

  Status error(const std::string &message) const { return Status::error(name_ + ": " + message); }
  uint64_t left() const { return fileBytes_ - at_; }
  // A count of things that take at least `each` bytes.
  Status checkCount(const std::string &what, uint64_t count, uint64_t each) const;
  Status need(uint64_t bytes, const std::string &what);
  template <typename T> StatusOr<T> read(const std::string &what);
  StatusOr<GgufType> readType(const std::string &where);
  StatusOr<std::string_view> readString(const std::string &what);
  StatusOr<std::string> readName(const std::string &what);

  std::span<const uint8_t> head_;
  uint64_t fileBytes_;
  const std::string &name_;
  uint64_t at_ = 0;
  bool needsMore_ = false;
  uint64_t numTensors_ = 0;
  uint64_t numKeys_ = 0;
  GgufHeader header_;
};

Status GgufParser::need(uint64_t bytes, const std::string &what) {
  if (bytes > left())
    return error(what + " at byte " + std::to_string(at_) + " takes " + std::to_string(bytes) + " bytes, but " +
                 std::to_string(left()) + " follow; the download is incomplete");
  if (bytes > head_.size() - at_) {
    needsMore_ = true;
    return error("its head goes beyond the first " + std::to_string(head_.size()) + " bytes");
  }
  return {};
}

template <typename T> StatusOr<T> GgufParser::read(const std::string &what) {
  LLMC_RETURN_IF_ERROR(need(sizeof(T), what));
  T value;
  std::memcpy(&value, head_.data() + at_, sizeof(T));
  at_ += sizeof(T);
  return value;
}

StatusOr<std::string_view> GgufParser::readString(const std::string &what) {
  LLMC_ASSIGN_OR_RETURN(uint64_t length, read<uint64_t>("the length of " + what));
  LLMC_RETURN_IF_ERROR(checkCount("length of " + what, length, 1));
  if (length > limits::ggufStringBytes)
    return error(what + " has " + std::to_string(length) + " bytes, limit " + std::to_string(limits::ggufStringBytes));
  LLMC_RETURN_IF_ERROR(need(length, what));
  std::string_view text(reinterpret_cast<const char *>(head_.data()) + at_, length);
  at_ += length;
  return text;
}

// A key or a tensor's name: text that messages, JSON and IR can hold.
StatusOr<std::string> GgufParser::readName(const std::string &what) {
  uint64_t at = at_;
  LLMC_ASSIGN_OR_RETURN(std::string_view text, readString(what));
  if (text.size() > 65535)
    return error(what + " at byte " + std::to_string(at) + " has " + std::to_string(text.size()) +
                 " bytes, limit 65535");
  if (findInvalidUtf8(text) || text.find('\0') != std::string_view::npos)
    return error(what + " at byte " + std::to_string(at) + " is " + inQuotes(text) + ", expected UTF-8");
  return std::string(text);
}

StatusOr<GgufType> GgufParser::readType(const std::string &where) {
  LLMC_ASSIGN_OR_RETURN(uint32_t number, read<uint32_t>("the type of " + where));
  if (number > static_cast<uint32_t>(GgufType::F64))
    return error(where + " has value type " + std::to_string(number) + ", expected 0 to 12");
  return static_cast<GgufType>(number);
}

Status GgufParser::checkCount(const std::string &what, uint64_t count, uint64_t each) const {
  if (count > left() / each)
    return error(what + " " + std::to_string(count) + " cannot fit in the " + std::to_string(left()) +
                 " bytes that follow");
  return {};
}

Status GgufParser::parseCounts() {
  if (fileBytes_ < 24)
    return error("file has " + std::to_string(fileBytes_) +
                 " bytes, but the head of a GGUF file takes 24; download it "
                 "again");
  LLMC_ASSIGN_OR_RETURN(uint32_t magic, read<uint32_t>("magic"));
  if (magic != 0x46554747)
    return error("not a GGUF file: it starts with " +
                 inQuotes({reinterpret_cast<const char *>(head_.data()), sizeof(magic)}) + ", expected 'GGUF'");
  LLMC_ASSIGN_OR_RETURN(header_.version, read<uint32_t>("version"));
  if (header_.version == 0x02000000 || header_.version == 0x03000000)
    return error("is a big-endian GGUF file; convert it to little endian");
  if (header_.version != 2 && header_.version != 3)
    return error("GGUF version " + std::to_string(header_.version) + ", expected 2 or 3; convert the model again");
  LLMC_ASSIGN_OR_RETURN(numTensors_, read<uint64_t>("n_tensors"));
  LLMC_ASSIGN_OR_RETURN(numKeys_, read<uint64_t>("n_kv"));
  // A tensor: name length, number of dimensions, type, offset. A pair: key length, type, one byte.
  LLMC_RETURN_IF_ERROR(checkCount("n_tensors", numTensors_, 24));
  LLMC_RETURN_IF_ERROR(checkCount("n_kv", numKeys_, 13));
  if (numTensors_ > limits::tensorsPerFile)
    return error(std::to_string(numTensors_) + " tensors, limit " + std::to_string(limits::tensorsPerFile));
  if (numKeys_ > limits::ggufKeys)
    return error(std::to_string(numKeys_) + " keys, limit " + std::to_string(limits::ggufKeys));
  return {};
}

Status GgufParser::skipElements(const std::string &where, GgufType type, uint64_t count, int nesting) {
  LLMC_RETURN_IF_ERROR(checkCount("length of " + where, count, ggufValueBytes(type)));
  if (type == GgufType::String) {
    for (uint64_t i = 0; i < count; ++i)
      if (StatusOr<std::string_view> text = readString(where); !text.ok())
        return text.status();
    return {};
  }
  if (type == GgufType::Array) {
    if (nesting >= limits::ggufArrayNesting)
      return error("arrays of " + where + " nest deeper than " + std::to_string(limits::ggufArrayNesting));
    for (uint64_t i = 0; i < count; ++i) {
      LLMC_ASSIGN_OR_RETURN(GgufType inner, readType(where));
      LLMC_ASSIGN_OR_RETURN(uint64_t innerCount, read<uint64_t>("the length of " + where));
      LLMC_RETURN_IF_ERROR(skipElements(where, inner, innerCount, nesting + 1));
    }
    return {};
  }
  LLMC_RETURN_IF_ERROR(need(count * ggufValueBytes(type), where));
  if (type == GgufType::Bool)
    for (uint64_t i = 0; i < count; ++i)
      if (head_[at_ + i] > 1)
        return error(where + " holds " + std::to_string(head_[at_ + i]) + ", expected a bool of 0 or 1");
  at_ += count * ggufValueBytes(type);
  return {};
}

Status GgufParser::parseValue(const std::string &key) {
  std::string where = inQuotes(key);
  GgufMetadata::Value value = {};
  LLMC_ASSIGN_OR_RETURN(value.type, readType(where));
  value.elementType = value.type;
  value.count = 1;
  if (value.type == GgufType::Array) {
    LLMC_ASSIGN_OR_RETURN(value.elementType, readType(where));
    LLMC_ASSIGN_OR_RETURN(value.count, read<uint64_t>("the length of " + where));
  }
  value.offset = at_;
  LLMC_RETURN_IF_ERROR(skipElements(where, value.elementType, value.count, value.type == GgufType::Array ? 1 : 0));
  header_.metadata.values_.emplace(key, value);
  header_.metadata.keys_.push_back(key);
  return {};
}

Status GgufParser::parseMetadata() {
  for (uint64_t i = 0; i < numKeys_; ++i) {
    LLMC_ASSIGN_OR_RETURN(std::string key, readName("key " + std::to_string(i)));
    if (header_.metadata.has(key))
      return error("key " + inQuotes(key) + " appears twice");
    LLMC_RETURN_IF_ERROR(parseValue(key));
  }
  header_.metadata.file_ = name_;
  header_.metadata.bytes_.assign(reinterpret_cast<const char *>(head_.data()), at_);
  return parseAlignment();
}

Status GgufParser::parseAlignment() {
  constexpr const char *key = "general.alignment";
  if (!header_.metadata.has(key))
    return {};
  LLMC_ASSIGN_OR_RETURN(int64_t alignment, header_.metadata.integer(key, 1, int64_t{1} << 31));
  if (!std::has_single_bit(static_cast<uint64_t>(alignment)))
    return error("'general.alignment' is " + std::to_string(alignment) + ", expected a power of two");
  header_.alignment = static_cast<uint64_t>(alignment);
  return {};
}

StatusOr<GgufTensor> GgufParser::parseTensor(uint64_t index) {
  GgufTensor tensor = {};
  LLMC_ASSIGN_OR_RETURN(tensor.name, readName("name of tensor " + std::to_string(index)));
  std::string which = "tensor " + inQuotes(tensor.name);
  LLMC_ASSIGN_OR_RETURN(uint32_t rank, read<uint32_t>("the rank of " + which));
  if (rank > static_cast<uint32_t>(limits::tensorRank))
    return error(which + " has " + std::to_string(rank) + " dimensions, limit " + std::to_string(limits::tensorRank));
  for (uint32_t i = 0; i < rank; ++i) {
    LLMC_ASSIGN_OR_RETURN(uint64_t dimension, read<uint64_t>("the shape of " + which));
    if (dimension > static_cast<uint64_t>(INT64_MAX)) // the format's own readers take it for negative
      return error(which + " has dimension " + std::to_string(dimension) + ", limit " + std::to_string(INT64_MAX));
    tensor.shape.insert(tensor.shape.begin(), dimension);
  }
  LLMC_ASSIGN_OR_RETURN(uint32_t number, read<uint32_t>("the type of " + which));
  std::optional<TensorType> type = ggmlType(number);
  if (!type)
    return error(which + " has the unknown type " + std::to_string(number));
  tensor.type = *type;
  StatusOr<uint64_t> bytes = tensorBytes(*type, tensor.shape);
  if (!bytes.ok())
    return bytes.status().inside(name_ + ": " + which);
  tensor.bytes = *bytes;
  LLMC_ASSIGN_OR_RETURN(tensor.offset, read<uint64_t>("the offset of " + which));
  if (tensor.offset % header_.alignment != 0)
    return error(which + " is at offset " + std::to_string(tensor.offset) + ", no multiple of the alignment " +
                 std::to_string(header_.alignment));
  return tensor;
}

Status GgufParser::parseTensors() {
  header_.tensors.reserve(numTensors_);
  for (uint64_t i = 0; i < numTensors_; ++i) {
    LLMC_ASSIGN_OR_RETURN(GgufTensor tensor, parseTensor(i));
    header_.tensors.push_back(std::move(tensor));
  }
  return placeTensors();
}

// Turns offsets into those of the file, and checks that no byte is claimed twice or lies behind the end.
Status GgufParser::placeTensors() {
  uint64_t padding = (header_.alignment - at_ % header_.alignment) % header_.alignment;
  header_.dataOffset = at_ + padding;
  for (GgufTensor &tensor : header_.tensors) {
    CheckedSize begin = CheckedSize(header_.dataOffset) + tensor.offset, end = begin + tensor.bytes;
    if (!end.fits(fileBytes_))
      return error("tensor " + inQuotes(tensor.name) + " of " + std::to_string(tensor.bytes) +
                   " bytes at data offset " + std::to_string(tensor.offset) + " ends behind the file of " +
                   std::to_string(fileBytes_) + " bytes; the download is incomplete");
    tensor.offset = *begin.value();
  }
  std::vector<const GgufTensor *> order;
  for (const GgufTensor &tensor : header_.tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const GgufTensor *a, const GgufTensor *b) { return std::tie(a->name, a) < std::tie(b->name, b); });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->name == order[i - 1]->name)
      return error("tensor " + inQuotes(order[i]->name) + " appears twice");
  std::sort(order.begin(), order.end(), [](const GgufTensor *a, const GgufTensor *b) {
    return std::tie(a->offset, a->bytes, a->name) < std::tie(b->offset, b->bytes, b->name);
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
      return error("tensors " + inQuotes(order[i - 1]->name) + " and " + inQuotes(order[i]->name) +
                   " overlap at byte " + std::to_string(order[i]->offset));
  return {};
}

StatusOr<GgufHeader> GgufParser::parse() {
  LLMC_RETURN_IF_ERROR(parseCounts());
  LLMC_RETURN_IF_ERROR(parseMetadata());
  LLMC_RETURN_IF_ERROR(parseTensors());
  return std::move(header_);
}

StatusOr<GgufHeader> parseGguf(std::span<const uint8_t> head, uint64_t fileBytes, const std::string &name) {
  return GgufParser(head.first(std::min<uint64_t>(head.size(), fileBytes)), fileBytes, name).parse();
}

StatusOr<GgufHeader> readGgufHeader(const std::string &path) {
  for (uint64_t headBytes = 1u << 20;; headBytes *= 4) {
    LLMC_ASSIGN_OR_RETURN(FilePart part, readFilePart(path, 0, std::min(headBytes, limits::ggufHeaderBytes)));
    std::span head(reinterpret_cast<const uint8_t *>(part.bytes.data()), part.bytes.size());
    GgufParser parser(head, part.file.bytes, path);
    StatusOr<GgufHeader> header = parser.parse();
    if (!parser.needsMore() || headBytes >= limits::ggufHeaderBytes)
      return header;
  }
}

} // namespace llmc
