#include "runtime/support/File.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace llmc {
namespace {

Status systemError(const std::string &path, const char *doing) {
  return Status::error(path + ": cannot " + doing + ": " + std::strerror(errno));
}

FileIdentity identityOf(const struct stat &st) {
  return {static_cast<uint64_t>(st.st_size),
          static_cast<int64_t>(st.st_mtim.tv_sec) * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_ino};
}

struct OpenFile {
  int fd = -1;
  struct stat st = {};
  ~OpenFile() {
    if (fd >= 0)
      ::close(fd);
  }
};

// A path from a file may hold a NUL, which the system would take for its end.
bool holdsNul(const std::string &path) { return path.find('\0') != std::string::npos; }

// O_NONBLOCK: opening a FIFO must not hang; only regular files pass.
Status openRegular(const std::string &path, OpenFile &file) {
  if (holdsNul(path))
    return Status::error(std::string(path.c_str()) + ": the path holds a NUL byte at " +
                         std::to_string(path.find('\0')));
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0)
    return systemError(path, "open");
  if (::fstat(file.fd, &file.st) != 0)
    return systemError(path, "read");
  if (S_ISDIR(file.st.st_mode))
    return Status::error(path + ": is a folder, expected a file");
  if (!S_ISREG(file.st.st_mode))
    return Status::error(path + ": not a regular file");
  return {};
}

Status changedSize(const std::string &path, uint64_t atOpen, uint64_t now) {
  return Status::error(path + ": changed while it was read: " + std::to_string(atOpen) + " bytes at open, " +
                       std::to_string(now) + " now");
}

// Fills `bytes` from `offset` of a file that had all of it at open.
Status readFully(const std::string &path, const OpenFile &file, uint64_t offset, std::string &bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = ::pread(file.fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return systemError(path, "read");
    if (n == 0)
      return changedSize(path, static_cast<uint64_t>(file.st.st_size), offset + done);
    done += static_cast<size_t>(n);
  }
  return {};
}

} // namespace

Status FileIdentity::checkSame(const FileIdentity &now, const std::string &path) const {
  if (now.bytes != bytes)
    return changedSize(path, bytes, now.bytes);
  if (now.inode != inode)
    return Status::error(path + ": was replaced while it was read");
  if (now.modifiedNanoseconds != modifiedNanoseconds)
    return Status::error(path + ": changed while it was read");
  return {};
}

StatusOr<std::string> readFile(const std::string &path, uint64_t maxBytes) {
  OpenFile file;
  LLMC_RETURN_IF_ERROR(openRegular(path, file));
  auto size = static_cast<uint64_t>(file.st.st_size);
  if (size > maxBytes)
    return Status::error(path + ": file has " + std::to_string(size) + " bytes, limit " + std::to_string(maxBytes));
  std::string text(size, '\0');
  LLMC_RETURN_IF_ERROR(readFully(path, file, 0, text));
  return text;
}

StatusOr<FilePart> readFilePart(const std::string &path, uint64_t offset, uint64_t maxBytes) {
  OpenFile file;
  LLMC_RETURN_IF_ERROR(openRegular(path, file));
  FilePart part;
  part.file = identityOf(file.st);
  if (offset < part.file.bytes)
    part.bytes.resize(std::min(maxBytes, part.file.bytes - offset));
  LLMC_RETURN_IF_ERROR(readFully(path, file, offset, part.bytes));
  return part;
}

bool fileExists(const std::string &path) {
  struct stat st = {};
  return !holdsNul(path) && ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

bool isFolder(const std::string &path) {
  struct stat st = {};
  return !holdsNul(path) && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  OpenFile file;
  LLMC_RETURN_IF_ERROR(openRegular(path, file));
  MappedFile mapped;
  mapped.path_ = path;
  mapped.size_ = static_cast<size_t>(file.st.st_size);
  mapped.identity_ = identityOf(file.st);
  if (mapped.size_ > 0) {
    void *data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED)
      return systemError(path, "map");
    mapped.data_ = static_cast<const uint8_t *>(data);
  }
  return mapped;
}

MappedFile::MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(identity_, other.identity_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(const_cast<uint8_t *>(data_), size_);
}

void MappedFile::dropPages(size_t offset, size_t size) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t first = (offset + page - 1) / page * page, end = (offset + size) / page * page;
  if (offset + size == size_)
    end = size_;
  if (first < end) // advice only
    ::madvise(const_cast<uint8_t *>(data_) + first, end - first, MADV_DONTNEED);
}

void MappedFile::populatePages(size_t offset, size_t size) const {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t first = offset / page * page;
  if (size > 0 && ::madvise(const_cast<uint8_t *>(data_) + first, offset + size - first, MADV_POPULATE_READ) != 0)
    errno = 0; // advice only
#endif
}

Status MappedFile::checkUnchanged() const {
  struct stat st = {};
  if (::stat(path_.c_str(), &st) != 0)
    return systemError(path_, "read");
  return identity_.checkSame(identityOf(st), path_);
}

} // namespace llmc
