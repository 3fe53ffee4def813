#include "runtime/support/File.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Interrupt.h"
#include <cinttypes>
#include <cstdio>

namespace llmc {
namespace {

// Every byte that a run of the artifact will use.
void printPlan(const Manifest &manifest, const std::string &output) {
  std::printf("%s: %s for %s; context %d, at most %d rows and %d sequences a step\n", output.c_str(),
              manifest.architecture.c_str(), manifest.target.c_str(), manifest.context, manifest.maxTokens,
              manifest.maxSequences);
  for (const MemoryPlanEntry &entry : manifest.memoryPlan)
    std::printf("  %-20s %14" PRIu64 " bytes  = %s\n", entry.name.c_str(), entry.bytes, entry.expression.c_str());
}

} // namespace

int runCompile(const CompileCommand &command) {
  if (command.output.empty() && command.options.stopAfter.empty()) {
    std::fprintf(stderr, "error: no output; give -o ARTIFACT, or --stop-after PHASE\n");
    return exitUsage;
  }
  StatusOr<Model> model = openModel(command.model, command.options.models);
  if (!model.ok())
    return reportFault(model.status());
  for (const std::string &note : model->spec.notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
  if (!command.options.stopAfter.empty()) {
    StatusOr<CompiledModule> lowered = buildAndLower(*model, command.options);
    return lowered.ok() ? exitDone : reportFault(lowered.status());
  }
  CleanUpOnInterrupt cleanUp;
  StatusOr<Manifest> manifest = compileModel(*model, command.options, command.output);
  if (!manifest.ok())
    return reportFault(manifest.status());
  printPlan(*manifest, command.output);
  return exitDone;
}

} // namespace llmc
