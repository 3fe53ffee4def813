// The table of byte letters: visible Latin-1 stands for itself, the other 68 bytes are U+0100 and up in order.
#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Unicode.h"
#include <array>

namespace llmc::bytelevel {
namespace {

struct Table {
  std::array<std::string, 256> letters;
  std::array<int16_t, 324> bytes; // by code point, -1 where no letter
};

const Table &table() {
  static const Table instance = [] {
    Table t;
    t.bytes.fill(-1);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      uint32_t code = visible ? byte : next++;
      unicode::append(t.letters[byte], code);
      t.bytes[code] = static_cast<int16_t>(byte);
    }
    return t;
  }();
  return instance;
}

} // namespace

std::string_view letter(uint8_t byte) { return table().letters[byte]; }

std::string toLetters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char byte : bytes)
    out += letter(static_cast<uint8_t>(byte));
  return out;
}

bool appendBytes(std::string_view letters, std::string &out) {
  const Table &t = table();
  size_t before = out.size();
  for (size_t i = 0; i < letters.size();) {
    unicode::Decoded character = unicode::decode(letters, i);
    if (character.code >= t.bytes.size() || t.bytes[character.code] < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(t.bytes[character.code]);
    i += character.size;
  }
  return true;
}

} // namespace llmc::bytelevel
