#include "lib/artifact/KeptBytes.h"
#include "runtime/support/File.h"
#include "runtime/support/Progress.h"
#include <algorithm>
#include <charconv>

namespace llmc {
namespace {

constexpr uint64_t pieceBytes = 4u << 20;

// "kept BYTES HASH FILE"
std::optional<Section> parseKept(std::string_view line) {
  constexpr std::string_view word = "kept ";
  constexpr size_t hashDigits = 32;
  if (!line.starts_with(word))
    return std::nullopt;
  line.remove_prefix(word.size());
  Section kept;
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), kept.bytes);
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (error != std::errc() || line.size() < hashDigits + 3 || line[0] != ' ' || line[hashDigits + 1] != ' ')
    return std::nullopt;
  kept.hash = line.substr(1, hashDigits);
  kept.file = line.substr(hashDigits + 2);
  return kept;
}

// By number of bytes. Where a writer was continued before and began again further ahead, later notes replace earlier.
std::vector<Section> notesOf(const std::string &file, const std::vector<std::string> &notes) {
  std::vector<Section> kept;
  for (const std::string &line : notes) {
    std::optional<Section> note = parseKept(line);
    if (!note || note->file != file)
      continue;
    while (!kept.empty() && kept.back().bytes >= note->bytes)
      kept.pop_back();
    kept.push_back(std::move(*note));
  }
  return kept;
}

} // namespace

std::string formatKept(const Section &first) {
  return "kept " + std::to_string(first.bytes) + " " + first.hash + " " + first.file;
}

StatusOr<KeptFile> verifyKept(const std::string &folder, const std::string &file,
                              const std::vector<std::string> &notes) {
  KeptFile kept;
  const std::vector<Section> claims = notesOf(file, notes);
  if (claims.empty())
    return kept;
  Progress progress("checking " + file, "bytes", claims.back().bytes);
  Hasher hash;
  uint64_t read = 0;
  for (const Section &claim : claims) {
    while (read < claim.bytes) {
      StatusOr<FilePart> part = readFilePart(folder + "/" + file, read, std::min(pieceBytes, claim.bytes - read));
      if (!part.ok() || part->bytes.empty())
        return kept;
      hash.add({reinterpret_cast<const uint8_t *>(part->bytes.data()), part->bytes.size()});
      read += part->bytes.size();
      progress.update(read);
    }
    if (hash.hex() != claim.hash)
      return kept;
    kept.bytes = read;
    kept.hash = Hasher(hash);
  }
  return kept;
}

} // namespace llmc
