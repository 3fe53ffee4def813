// The whole picture of `llmc doctor --limits`: every instruction and every level of memory, on one thread and on all.
#pragma once
#include "runtime/support/Json.h"
#include <string>

namespace llmc {

// {"threads", "disturbed", "notes": ["…"], "two_thread_ratio", "barrier_seconds", "instructions": [{"name",
// "vector_bits", "one_thread", "all_threads"} or {…, "reason"}], "read": [{"level", "bytes", "one_thread",
// "all_threads"} or {…, "reason"}]}; rates per second, null where there is none. Takes about five seconds.
Json measureLimits();

std::string measuredLimitsText(const Json &measured);

} // namespace llmc
