// KernelCache: objects of compiled units, kept in a folder from one compilation to the next. An entry is believed only
// when it names its key and its bytes have the hash that it states; any other is ignored and written again.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <string>

namespace llmc::cpu {

// Any thread, and any number of processes on one folder.
class KernelCache {
public:
  static constexpr uint64_t defaultMaxBytes = uint64_t(64) << 20;

  // Without a folder ("") nothing is found and nothing is kept.
  explicit KernelCache(std::string folder, uint64_t maxBytes = defaultMaxBytes);

  // `key` is 32 lower-case hex digits. A found entry counts as used now.
  std::optional<std::string> find(const std::string &key) const;
  // Makes the folder where it is missing; the entry appears whole or not at all.
  Status store(const std::string &key, const std::string &object) const;
  // Removes the entries that were used longest ago, down to the most bytes.
  void trim() const;

  const std::string &folder() const { return folder_; }

private:
  std::string pathOf(const std::string &key) const { return folder_ + "/" + key + ".kernel"; }

  std::string folder_;
  uint64_t maxBytes_;
};

// What tells this compiler from another one that may make other code of the same unit: the bytes of the program, and
// name, size and time of change of the libraries that it has loaded. "" where the system does not say.
const std::string &compilerBuildId();

} // namespace llmc::cpu
