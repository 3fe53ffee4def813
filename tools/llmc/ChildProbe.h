// A measurement in a process of its own: some virtual machines stop with SIGILL at an instruction that they advertise.
#pragma once
#include "runtime/support/Status.h"
#include <functional>

namespace llmc {

// What `measure` gives, computed in a forked child. A child that a signal ends ("stops with SIGILL"), that fails, or
// that takes longer than `seconds` is an error; nothing that it does reaches this process. `measure` may start threads.
StatusOr<double> measureInChild(const std::function<StatusOr<double>()> &measure, unsigned seconds = 30);

} // namespace llmc
