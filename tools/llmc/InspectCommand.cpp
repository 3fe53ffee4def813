#include "lib/importer/Inspect.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Model.h"
#include <cstdio>

namespace llmc {

int runInspect(const InspectCommand &command) {
  StatusOr<Model> model = openModel(command.model, command.models);
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

} // namespace llmc
