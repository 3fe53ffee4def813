// A recorded trace as the JSON that Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show.
#pragma once
#include "runtime/artifact/Dispatch.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/engine/StepTrace.h"
#include <string>

namespace llmc {

// What a step may do: the launches of the dispatch manifest for every block of rows, and exchanges with other ranks.
TraceRoom traceRoomFor(const DispatchManifest &dispatch, const Manifest &manifest);

// A lane for each worker, with an event for each task it ran (named after the task, with step, launch and layer) and
// for each time it waited, a lane for the steps and, where ranks exchange rows, one for what each block of them does.
// Microseconds from the first step on.
std::string chromeTrace(const StepTrace &trace, const DispatchManifest &manifest);

} // namespace llmc
