// What every command ends with: an answer on stdout or one line of error.
#include "tools/llmc/Commands.h"
#include <cstdio>

namespace llmc {

int reportFault(const Status &status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return exitFault;
}

int writeAnswer(const std::string &answer) {
  std::fwrite(answer.data(), 1, answer.size(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return exitDone;
  return reportFault(Status::error("cannot write the answer to standard output"));
}

} // namespace llmc
