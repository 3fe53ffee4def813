// Files: bounded reading and read-only maps. Writing is in AtomicOutput.h.
#pragma once
#include "runtime/support/Status.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace llmc {

// The whole file as bytes; an error when it holds more than `maxBytes` or is not a regular file.
StatusOr<std::string> readFile(const std::string &path, uint64_t maxBytes);
// What tells a file from the same path a moment later.
struct FileIdentity {
  uint64_t bytes = 0;
  int64_t modifiedNanoseconds = 0;
  uint64_t inode = 0;
  // An error when `now` is another file or another state of it: "changed while it was read: 8192 bytes at open, 4096
  // now".
  Status checkSame(const FileIdentity &now, const std::string &path) const;
};
// At most `maxBytes` bytes from `offset` on (fewer where the file ends), and whose they are.
struct FilePart {
  std::string bytes;
  FileIdentity file;
};
StatusOr<FilePart> readFilePart(const std::string &path, uint64_t offset, uint64_t maxBytes);
bool fileExists(const std::string &path);
bool isFolder(const std::string &path);

// A read-only map of a regular file. Movable; unmapped on destruction. The size is fixed at open: checkUnchanged says
// whether the file was cut or replaced since, which must be asked before the bytes are trusted (a cut file faults).
class MappedFile {
public:
  static StatusOr<MappedFile> open(const std::string &path);
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  const std::string &path() const { return path_; }
  const FileIdentity &identity() const { return identity_; }
  Status checkUnchanged() const;
  // Gives the memory of whole pages in this range back; their bytes are read anew when they are wanted.
  void dropPages(size_t offset, size_t size) const;
  // Maps the pages of this range all at once, where the kernel can; they are mapped when they are touched, too.
  void populatePages(size_t offset, size_t size) const;

private:
  MappedFile() = default;
  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
  std::string path_;
};

} // namespace llmc
