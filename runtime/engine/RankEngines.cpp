#include "runtime/engine/RankEngines.h"
#include "runtime/collective/MpiTransport.h"
#include "runtime/collective/SimulatedRanks.h"
#include "runtime/support/UsableCores.h"
#include <algorithm>

namespace llmc {
namespace {

Status runRank(const std::string &artifact, EngineOptions options, Transport *transport,
               const std::function<Status(Engine &)> &body) {
  options.transport = transport;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact, options));
  return body(*engine);
}

} // namespace

Status withEngines(const std::string &artifact, const EngineOptions &options,
                   const std::function<Status(Engine &)> &body) {
  RankGrid grid;
  {
    LLMC_ASSIGN_OR_RETURN(LoadedArtifact inspected,
                          LoadedArtifact::openForInspection(artifact, WeightsCheck::ByCaller));
    grid = inspected.manifest().grid();
  }
  const bool hasLink = options.link.latency.count() > 0 || options.link.bytesPerSecond > 0;
  if (hasLink && (grid.size() == 1 || MpiTransport::isLaunched()))
    return Status::error(artifact + ": a link was described, but " +
                         (grid.size() == 1 ? "one rank has none" : "those of mpirun's ranks are what they are") +
                         "; leave --link-latency and --link-bandwidth out");
  if (MpiTransport::isLaunched()) {
    LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, MpiTransport::create(grid));
    Status status = runRank(artifact, options, transport.get(), body);
    if (!status.ok())
      transport->fail(status.message());
    return status;
  }
  if (grid.size() == 1)
    return runRank(artifact, options, nullptr, body);
  EngineOptions ofRank = options;
  ofRank.threads = std::max(1, (options.threads > 0 ? options.threads : usableCores()) / grid.size());
  return SimulatedRanks(grid, defaultPatience, options.link).run([&](Transport &transport) { return runRank(artifact, ofRank, &transport, body); });
}

} // namespace llmc
