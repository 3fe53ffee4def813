#include "lib/codegen/cpu/KernelCache.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/File.h"
#include "runtime/support/Hash.h"
#include <algorithm>
#include <filesystem>
#include <link.h>
#include <vector>

namespace fs = std::filesystem;

namespace llmc::cpu {
namespace {

constexpr uint64_t mostEntryBytes = uint64_t(64) << 20;

// An entry is this line and the object: what it is, whose, and the hash of the object.
std::string headerOf(const std::string &key, std::string_view object) {
  return "llmc kernel 1 " + key + " " + hashHex(object) + "\n";
}

struct Entry {
  fs::path path;
  fs::file_time_type used;
  uint64_t bytes;
};

std::vector<Entry> entriesOf(const std::string &folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone; // another process may remove it meanwhile
    if (at->path().extension() != ".kernel" || !at->is_regular_file(gone))
      continue;
    Entry entry{at->path(), at->last_write_time(gone), 0};
    if (!gone)
      entry.bytes = at->file_size(gone);
    if (!gone)
      entries.push_back(std::move(entry));
  }
  return entries;
}

int describeLibrary(dl_phdr_info *info, size_t, void *text) {
  std::error_code error;
  fs::path path(info->dlpi_name);
  if (path.empty() || !fs::is_regular_file(path, error))
    return 0; // the program itself, or the kernel's own
  auto changed = fs::last_write_time(path, error).time_since_epoch().count();
  *static_cast<std::string *>(text) +=
      path.string() + " " + std::to_string(fs::file_size(path, error)) + " " + std::to_string(changed) + "\n";
  return 0;
}

std::string describeBuild() {
  StatusOr<MappedFile> program = MappedFile::open("/proc/self/exe");
  if (!program.ok())
    return "";
  std::string text = hashHex(program->bytes()) + "\n";
  ::dl_iterate_phdr(describeLibrary, &text);
  return hashHex(text);
}

} // namespace

KernelCache::KernelCache(std::string folder, uint64_t maxBytes) : folder_(std::move(folder)), maxBytes_(maxBytes) {}

std::optional<std::string> KernelCache::find(const std::string &key) const {
  if (folder_.empty())
    return std::nullopt;
  StatusOr<std::string> entry = readFile(pathOf(key), mostEntryBytes);
  size_t headerBytes = headerOf(key, "").size();
  if (!entry.ok() || entry->size() < headerBytes)
    return std::nullopt;
  std::string object = entry->substr(headerBytes);
  if (entry->substr(0, headerBytes) != headerOf(key, object))
    return std::nullopt;
  std::error_code ignored; // then it is only removed earlier than it should
  fs::last_write_time(pathOf(key), fs::file_time_type::clock::now(), ignored);
  return object;
}

Status KernelCache::store(const std::string &key, const std::string &object) const {
  std::string entry = headerOf(key, object) + object;
  if (folder_.empty() || entry.size() > mostEntryBytes)
    return {};
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    return Status::error(folder_ + ": cannot make the folder for kernels: " + error.message());
  return writeFileAtomically(pathOf(key), entry);
}

void KernelCache::trim() const {
  std::vector<Entry> entries = entriesOf(folder_);
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.used > b.used; });
  uint64_t kept = 0;
  for (const Entry &entry : entries) {
    kept += entry.bytes;
    std::error_code ignored; // the next compilation tries again
    if (kept > maxBytes_)
      fs::remove(entry.path, ignored);
  }
}

const std::string &compilerBuildId() {
  static const std::string id = describeBuild();
  return id;
}

} // namespace llmc::cpu
