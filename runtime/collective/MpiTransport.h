// Ranks as processes that mpirun started. Open MPI is loaded when it is asked for: neither a build nor a run of one
// rank needs it.
#pragma once
#include "runtime/collective/Transport.h"
#include <memory>

namespace llmc {

class MpiTransport {
public:
  // Whether mpirun started this process.
  static bool isLaunched();
  // Starts MPI; once in a process. Fails where the library is missing or mpirun started another number of ranks.
  static StatusOr<std::unique_ptr<Transport>> create(RankGrid grid,
                                                     std::chrono::milliseconds patience = defaultPatience);
};

} // namespace llmc
