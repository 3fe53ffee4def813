// XXH3-128 from the header-only libxxhash.
#include "runtime/support/Hash.h"
#include "runtime/support/File.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmc {
namespace {

std::string hexOf(XXH128_hash_t hash) {
  XXH128_canonical_t canonical; // big endian: the same text on every machine
  XXH128_canonicalFromHash(&canonical, hash);
  std::string out;
  for (unsigned char byte : canonical.digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

} // namespace

// The state asks for 64-byte alignment, which new honours for the type that holds it.
struct Hasher::State {
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher::Hasher(const Hasher &other) : state_(std::make_unique<State>(*other.state_)) {}
Hasher::Hasher(Hasher &&) noexcept = default;
Hasher &Hasher::operator=(Hasher &&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::add(std::span<const uint8_t> bytes) {
  if (!bytes.empty())
    XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string Hasher::hex() const { return hexOf(XXH3_128bits_digest(&state_->xxh)); }

std::string hashHex(std::span<const uint8_t> bytes) { return hexOf(XXH3_128bits(bytes.data(), bytes.size())); }

std::string hashHex(std::string_view text) {
  return hashHex(std::span(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

StatusOr<std::string> hashFileHex(const std::string &path) {
  constexpr uint64_t pieceBytes = 4u << 20;
  Hasher hasher;
  for (uint64_t offset = 0;; offset += pieceBytes) {
    LLMC_ASSIGN_OR_RETURN(FilePart part, readFilePart(path, offset, pieceBytes));
    hasher.add(std::span(reinterpret_cast<const uint8_t *>(part.bytes.data()), part.bytes.size()));
    if (offset + part.bytes.size() >= part.file.bytes)
      return hasher.hex();
  }
}

} // namespace llmc
