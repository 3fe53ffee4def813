#include "tools/llmc-run/RunCommand.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include <chrono>
#include <iostream>

namespace llmc {

int runRun(const RunCommand &command) {
  auto start = std::chrono::steady_clock::now();
  StatusOr<std::string> artifact = artifactFor(
      command.model, command.compile, command.options.idsFile ? ArtifactNeeds::Nothing : ArtifactNeeds::Tokenizer);
  if (!artifact.ok())
    return reportFault(artifact.status());
  RunOptions options = command.options;
  options.artifact = *artifact;
  options.compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return runArtifact(options, std::cout, std::cerr);
}

} // namespace llmc
