// XXH3-128: the checksum of artifacts and caches. It finds accidents (a flipped bit, a cut file), not forgeries.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace llmc {

// 32 lower-case hexadecimal digits, most significant first, as `xxhsum -H2` prints them.
std::string hashHex(std::span<const uint8_t> bytes);
std::string hashHex(std::string_view text);
// Of a file's content, read in pieces.
StatusOr<std::string> hashFileHex(const std::string &path);

// The same over bytes that arrive in pieces; where they are cut makes no difference.
class Hasher {
public:
  Hasher();
  Hasher(const Hasher &); // goes on from the same bytes
  Hasher(Hasher &&) noexcept;
  Hasher &operator=(Hasher &&) noexcept;
  ~Hasher();
  void add(std::span<const uint8_t> bytes);
  // Of everything added so far; more may be added after.
  std::string hex() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace llmc
