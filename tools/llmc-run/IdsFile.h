// The file behind --ids: {"sequences": [[1, 2, 3], [4, 5]]}.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

// Ids are checked to be integers from 0 on; whether the vocabulary has them is the engine's question.
StatusOr<std::vector<std::vector<int32_t>>> readIdsFile(const std::string &path);

} // namespace llmc
