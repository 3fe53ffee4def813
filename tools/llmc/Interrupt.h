// Ctrl-C and SIGTERM while files are written: nothing unfinished stays on the disk. And crashes, which say what to do.
#pragma once
#include <atomic>
#include <csignal>
#include <thread>

namespace llmc {

// While it lives, SIGINT and SIGTERM remove the unfinished outputs of this process and end it with code 130. Make it
// before other threads start: those inherit that the signals are blocked and leave them to the thread that waits here.
class CleanUpOnInterrupt {
public:
  CleanUpOnInterrupt();
  ~CleanUpOnInterrupt();
  CleanUpOnInterrupt(const CleanUpOnInterrupt &) = delete;
  CleanUpOnInterrupt &operator=(const CleanUpOnInterrupt &) = delete;

private:
  void wait() const;

  sigset_t signals_, before_;
  std::atomic<bool> done_ = false;
  std::thread waiting_;
};

// From now on a crash of the program prints how to report it and ends with code 70, and a mapped file that was cut
// while it is read is a fault of the environment, code 1.
void reportCrashes();

} // namespace llmc
