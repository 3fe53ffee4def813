#include "tools/llmc/Interrupt.h"
#include "runtime/support/AtomicOutput.h"
#include <unistd.h>

namespace llmc {
namespace {

constexpr int exitInterrupted = 130;

// Whoever started us with a signal ignored (nohup, a background job) wants it ignored; blocking would undo that.
bool isIgnored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

CleanUpOnInterrupt::CleanUpOnInterrupt() {
  ::sigemptyset(&signals_);
  for (int signal : {SIGINT, SIGTERM})
    if (!isIgnored(signal))
      ::sigaddset(&signals_, signal);
  // Wakes the waiting thread at the end; blocked here so that it cannot end the process.
  ::sigaddset(&signals_, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  waiting_ = std::thread([this] { wait(); });
}

CleanUpOnInterrupt::~CleanUpOnInterrupt() {
  done_ = true;
  ::pthread_kill(waiting_.native_handle(), SIGUSR1);
  waiting_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void CleanUpOnInterrupt::wait() const {
  int signal = 0;
  while (::sigwait(&signals_, &signal) == 0 && signal == SIGUSR1)
    if (done_)
      return;
  removeUnfinishedOutputs();
  ::_exit(exitInterrupted);
}

} // namespace llmc
