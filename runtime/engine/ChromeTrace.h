// A recorded trace as the JSON that Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show.
#pragma once
#include "runtime/artifact/Dispatch.h"
#include "runtime/engine/StepTrace.h"
#include <string>

namespace llmc {

// Launches of one step, from the dispatch manifest; at least 1.
size_t launchesPerStep(const DispatchManifest &manifest);

// A lane for each worker, with an event for each task it ran (named after the task, with step, launch and layer) and
// for each time it waited, and a lane for the steps. Microseconds from the first step on.
std::string chromeTrace(const StepTrace &trace, const DispatchManifest &manifest);

} // namespace llmc
