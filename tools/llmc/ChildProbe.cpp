#include "tools/llmc/ChildProbe.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc {
namespace {

// What a child says through the pipe: a figure, or why there is none.
struct Answer {
  double value = 0;
  bool failed = false;
  char message[240] = {};
};

[[noreturn]] void answerInChild(int pipe, const std::function<StatusOr<double>()> &measure, unsigned seconds) {
  // The handlers of this program would report a bug of ours; a signal shall just end the child.
  for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGTRAP, SIGALRM})
    std::signal(signal, SIG_DFL);
  const rlimit noCore = {0, 0};
  ::setrlimit(RLIMIT_CORE, &noCore);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(seconds);
  Answer answer;
  if (StatusOr<double> value = measure(); value.ok()) {
    answer.value = *value;
  } else {
    answer.failed = true;
    const std::string &message = value.status().message();
    std::memcpy(answer.message, message.data(), std::min(message.size(), sizeof answer.message - 1));
  }
  ::_exit(::write(pipe, &answer, sizeof answer) == sizeof answer ? 0 : 1);
}

std::string endOf(int status) {
  if (!WIFSIGNALED(status))
    return "ended without an answer, exit code " + std::to_string(WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM)
    return "took too long";
  const char *name = ::sigabbrev_np(WTERMSIG(status));
  return "stops with SIG" + (name ? std::string(name) : std::to_string(WTERMSIG(status)));
}

} // namespace

StatusOr<double> measureInChild(const std::function<StatusOr<double>()> &measure, unsigned seconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Status::error(std::string("cannot measure: ") + std::strerror(errno));
  pid_t child = ::fork();
  if (child == 0)
    answerInChild(ends[1], measure, seconds);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return Status::error(std::string("cannot start a process to measure in: ") + std::strerror(errno));
  }
  Answer answer;
  ssize_t got = 0;
  while ((got = ::read(ends[0], &answer, sizeof answer)) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (got != sizeof answer)
    return Status::error(endOf(status));
  if (answer.failed)
    return Status::error(answer.message);
  return answer.value;
}

} // namespace llmc
