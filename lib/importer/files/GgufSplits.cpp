#include "lib/importer/files/GgufSplits.h"
#include "runtime/support/File.h"
#include "runtime/support/Json.h"

namespace llmc {
namespace {

// "-00002-of-00003.gguf", as gguf-split writes it.
std::string splitSuffix(int64_t number, int64_t count) {
  auto five = [](int64_t n) {
    std::string digits = std::to_string(n);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "-" + five(number) + "-of-" + five(count) + ".gguf";
}

} // namespace

StatusOr<std::vector<std::string>> ggufSplits(const std::string &path, const GgufMetadata &metadata) {
  std::vector<std::string> splits = {path};
  if (!metadata.has("split.count"))
    return splits;
  LLMC_ASSIGN_OR_RETURN(int64_t count, metadata.integer("split.count", 0, 65535));
  if (count <= 1)
    return splits;
  int64_t number = 0;
  if (metadata.has("split.no")) {
    LLMC_ASSIGN_OR_RETURN(number, metadata.integer("split.no", 0, count - 1));
  }
  std::string suffix = splitSuffix(number + 1, count);
  if (!path.ends_with(suffix))
    return Status::error(path + ": is split " + std::to_string(number + 1) + " of " + std::to_string(count) +
                         ", so its name must end in " + inQuotes(suffix));
  if (number != 0)
    return Status::error(path + ": is split " + std::to_string(number + 1) + " of " + std::to_string(count) +
                         "; give the first, which ends in " + inQuotes(splitSuffix(1, count)));
  std::string stem = path.substr(0, path.size() - suffix.size());
  for (int64_t i = 2; i <= count; ++i) {
    splits.push_back(stem + splitSuffix(i, count));
    if (!fileExists(splits.back()))
      return Status::error(path + ": split " + inQuotes(splits.back()) + " of " + std::to_string(count) +
                           " does not exist");
  }
  return splits;
}

} // namespace llmc
