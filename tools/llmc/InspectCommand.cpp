#include "lib/importer/Inspect.h"
#include "runtime/artifact/Loader.h"
#include "runtime/support/Json.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/MemoryReport.h"
#include "tools/llmc/Model.h"
#include <cstdio>

namespace llmc {
namespace {

// The manifest and the memory plan of an artifact.
Status inspectArtifact(const InspectCommand &command) {
  LLMC_ASSIGN_OR_RETURN(LoadedArtifact artifact, LoadedArtifact::openForInspection(command.model));
  const Manifest &manifest = artifact.manifest();
  LLMC_ASSIGN_OR_RETURN(std::string text, artifact.readSection(memoryFile));
  LLMC_ASSIGN_OR_RETURN(Json memory, parseJson(text, command.model + "/" + memoryFile));
  if (command.json) {
    LLMC_ASSIGN_OR_RETURN(Json root, parseJson(manifestText(manifest), command.model + "/" + manifestFile));
    root["memory"] = std::move(memory);
    std::printf("%s\n", root.dump().c_str());
    return {};
  }
  LLMC_ASSIGN_OR_RETURN(std::string arena, arenaText(memory, command.model + "/" + memoryFile));
  LLMC_ASSIGN_OR_RETURN(std::string state, stateText(memory, command.model + "/" + memoryFile));
  std::printf("%s%s%s%s%s", planText(manifest, command.model).c_str(), stopText(manifest).c_str(),
              perplexityText(manifest).c_str(), state.c_str(), arena.c_str());
  return {};
}

} // namespace

int runInspect(const InspectCommand &command) {
  if (fileExists(command.model + "/" + manifestFile)) {
    Status inspected = inspectArtifact(command);
    return inspected.ok() ? exitDone : reportFault(inspected);
  }
  StatusOr<Model> model = openModel(command.model, command.models, UnknownKeys::Report);
  if (!model.ok())
    return reportFault(model.status());
  if (command.verbose)
    for (const std::string &note : model->spec.notes)
      std::fprintf(stderr, "note: %s\n", note.c_str());
  if (command.json)
    std::printf("%s\n", inspectToJsonText(model->spec, model->stored).c_str());
  else
    std::printf("%s", inspectToText(model->spec, model->stored).c_str());
  return exitDone;
}

} // namespace llmc
