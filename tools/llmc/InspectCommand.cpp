#include "lib/importer/Inspect.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Model.h"
#include <cstdio>

namespace llmc {

int runInspect(const InspectCommand &command) {
  StatusOr<Model> model = openModel(command.model, command.models, UnknownKeys::Report);
  if (!model.ok())
    return reportFault(model.status());
  if (command.verbose)
    for (const std::string &note : model->spec.notes)
      std::fprintf(stderr, "note: %s\n", note.c_str());
  if (command.json)
    std::printf("%s\n", inspectToJson(model->spec, model->stored).dump().c_str());
  else
    std::printf("%s", inspectToText(model->spec, model->stored).c_str());
  return exitDone;
}

int runCheckModel(const CheckModelCommand &command) {
  std::vector<std::string> errors = checkModelDescription(command.description);
  for (const std::string &error : errors)
    std::fprintf(stderr, "error: %s\n", error.c_str());
  return errors.empty() ? exitDone : exitFault;
}

} // namespace llmc
