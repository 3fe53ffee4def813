#include "runtime/support/File.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Interrupt.h"
#include <cstdio>

namespace llmc {

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
  Status status = compileModel(*model, command.options, command.output);
  return status.ok() ? exitDone : reportFault(status);
}

} // namespace llmc
