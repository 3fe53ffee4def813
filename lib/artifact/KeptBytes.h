// What a killed writer left of a file: it noted now and then how many bytes there were and their hash, and its
// successor reads them back as far as that is so.
#pragma once
#include "runtime/artifact/Manifest.h"
#include "runtime/support/Hash.h"

namespace llmc {

// A note costs nothing beside this, and a killed writer loses about as much.
inline constexpr uint64_t bytesBetweenNotes = 16u << 20;

// The first `bytes` bytes of a file have the hash.
std::string formatKept(const Section &first);

struct KeptFile {
  uint64_t bytes = 0; // of the file's beginning, as the last note that holds says; 0 where none does
  Hasher hash;        // of these
};
// Lines that are no notes of this file are ignored. A file that cannot be read has nothing to keep.
StatusOr<KeptFile> verifyKept(const std::string &folder, const std::string &file,
                              const std::vector<std::string> &notes);

} // namespace llmc
