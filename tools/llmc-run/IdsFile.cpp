#include "tools/llmc-run/IdsFile.h"
#include "runtime/support/Json.h"
#include "runtime/support/Limits.h"

namespace llmc {

StatusOr<std::vector<std::vector<int32_t>>> readIdsFile(const std::string &path) {
  LLMC_ASSIGN_OR_RETURN(Json root, readJsonFile(path, limits::idsFileBytes));
  const Json *sequences = find(root, "sequences");
  if (!sequences || !sequences->is_array() || sequences->empty())
    return Status::error(path + ": /sequences is " + (sequences ? brief(*sequences) : "missing") +
                         ", expected a list of lists of token ids");
  std::vector<std::vector<int32_t>> out;
  for (size_t s = 0; s < sequences->size(); ++s) {
    const Json &sequence = (*sequences)[s];
    std::string where = path + ": /sequences/" + std::to_string(s);
    if (!sequence.is_array())
      return Status::error(where + " is " + brief(sequence) + ", expected a list of token ids");
    out.emplace_back();
    for (size_t i = 0; i < sequence.size(); ++i) {
      LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(sequence[i], where + "/" + std::to_string(i), 0, INT32_MAX));
      out.back().push_back(static_cast<int32_t>(id));
    }
  }
  return out;
}

} // namespace llmc
