#include "runtime/support/MachineMemory.h"
#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace llmc {
namespace {

constexpr uint64_t none = UINT64_MAX;

// The number behind `key` in lines of "key number", or of a file that is a number; `fallback` where it is not there
// ("max" is no number).
uint64_t readNumber(const std::string &path, uint64_t fallback) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : fallback;
}
uint64_t readKey(const std::string &path, const std::string &key) {
  std::ifstream file(path);
  uint64_t number = 0;
  for (std::string name; file >> name >> number;)
    if (name == key)
      return number;
  return 0;
}

MachineMemory readMeminfo(const std::string &path) {
  MachineMemory memory;
  std::ifstream file(path);
  for (std::string name, rest; file >> name;) {
    uint64_t kilobytes = 0;
    file >> kilobytes;
    std::getline(file, rest);
    if (name == "MemTotal:")
      memory.totalBytes = kilobytes << 10;
    if (name == "MemAvailable:")
      memory.availableBytes = kilobytes << 10;
  }
  return memory;
}

// The names of the files differ between the two versions.
struct CgroupFiles {
  const char *limit, *used, *inactive, *active;
};
constexpr CgroupFiles version1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                                  "total_active_file"};
constexpr CgroupFiles version2 = {"memory.max", "memory.current", "inactive_file", "active_file"};

void narrow(MachineMemory &memory, const std::string &folder, const CgroupFiles &files) {
  uint64_t limit = readNumber(folder + "/" + files.limit, none);
  if (limit >= memory.totalBytes)
    return;
  const std::string statistics = folder + "/memory.stat";
  uint64_t cached = readKey(statistics, files.inactive) + readKey(statistics, files.active);
  uint64_t used = readNumber(folder + "/" + files.used, 0);
  used -= std::min(used, cached);
  memory.totalBytes = limit;
  memory.availableBytes = std::min(memory.availableBytes, limit - std::min(limit, used));
}

bool listHas(const std::string &list, const std::string &word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');)
    if (each == word)
      return true;
  return false;
}

// Where the hierarchy with the memory controller is mounted, and which of its groups lies there.
struct CgroupMount {
  std::string root, folder;
  bool isVersion2;
};
std::vector<CgroupMount> cgroupMounts(const std::string &path) {
  std::vector<CgroupMount> mounts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    // "35 31 0:32 ROOT FOLDER rw,relatime [more ...] - cgroup SOURCE rw,memory"
    std::istringstream words(line);
    std::string skipped, type, options;
    CgroupMount mount;
    words >> skipped >> skipped >> skipped >> mount.root >> mount.folder;
    while (words >> skipped && skipped != "-") {
    }
    words >> type >> skipped >> options;
    mount.isVersion2 = type == "cgroup2";
    if (mount.isVersion2 || (type == "cgroup" && listHas(options, "memory")))
      mounts.push_back(mount);
  }
  return mounts;
}

} // namespace

MachineMemory machineMemory(const std::string &root) {
  MachineMemory memory = readMeminfo(root + "/proc/meminfo");
  const std::vector<CgroupMount> mounts = cgroupMounts(root + "/proc/self/mountinfo");
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // "4:memory:/path" in version 1, "0::/path" in version 2
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    for (const CgroupMount &mount : mounts) {
      if (mount.isVersion2 ? !controllers.empty() : !listHas(controllers, "memory"))
        continue;
      // In a container the mount may begin below the group's own root; then what is mounted is the group.
      bool isInside = mount.root == "/" || group.rfind(mount.root, 0) == 0;
      std::string below = isInside ? group.substr(mount.root == "/" ? 0 : mount.root.size()) : "";
      // A limit of any group around counts.
      for (;; below = below.substr(0, below.rfind('/'))) {
        narrow(memory, root + mount.folder + below, mount.isVersion2 ? version2 : version1);
        if (below.empty() || below.find('/') == std::string::npos)
          break;
      }
    }
  }
  return memory;
}

} // namespace llmc
