// RankEngines: engines for all ranks that share an artifact.
#pragma once
#include "runtime/engine/Engine.h"

namespace llmc {

// Loads the artifact and runs `body` with it. Where several ranks share the artifact, `body` runs for each and must ask
// every engine for the same: in a process that mpirun started for this process's rank, else on a thread for each rank,
// which share the threads of `options` (0: the usable cores). Fails with the first failure of any rank.
Status withEngines(const std::string &artifact, const EngineOptions &options,
                   const std::function<Status(Engine &)> &body);

} // namespace llmc
