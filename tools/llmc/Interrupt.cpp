#include "tools/llmc/Interrupt.h"
#include "runtime/support/AtomicOutput.h"
#include "tools/llmc/Commands.h"
#include <string_view>
#include <unistd.h>

namespace llmc {
namespace {

constexpr int exitInterrupted = 130;

// Whoever started us with a signal ignored (nohup, a background job) wants it ignored; blocking would undo that.
bool isIgnored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Nothing but write is safe here.
void reportCrash(int signal) {
  constexpr std::string_view bug =
      "error: internal: the program crashed, which is a bug of llmc; please report the command "
      "line, the model and the output of `llmc doctor`\n";
  constexpr std::string_view cut =
      "error: a file was cut, or its disk failed, while it was read; check the model and the "
      "artifact\n";
  std::string_view message = signal == SIGBUS ? cut : bug;
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0)
    ::_exit(exitBug);
  ::_exit(signal == SIGBUS ? exitFault : exitBug);
}

} // namespace

void reportCrashes() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return; // it says more than we can
#endif
#endif
  // A stack of its own, for when the program's is what ran out.
  static char stack[1 << 14];
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  ::sigaltstack(&own, nullptr);
  struct sigaction action = {};
  action.sa_handler = reportCrash;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    ::sigaction(signal, &action, nullptr);
}

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
