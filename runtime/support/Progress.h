// Progress: one line on stderr that says how far a long piece of work is. Silent unless stderr is a terminal and the
// work takes longer than a second. One thread.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace llmc {

class Progress {
public:
  enum class When { OnTerminal, Never };
  // `what` ("prefill"), `total` in `unit` ("tokens"; "bytes" are printed in MiB), of which `before` were done before.
  Progress(std::string what, std::string unit, uint64_t total, When when = When::OnTerminal, uint64_t before = 0);
  // Removes the line.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  // Draws at most ten times a second.
  void update(uint64_t done);
  void finish();

private:
  using Clock = std::chrono::steady_clock;
  std::string what_, unit_;
  uint64_t total_, before_;
  bool enabled_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

// The line for `done` of `total`, all but `before` in `seconds`; bar of 30 columns, rate and time left.
std::string progressLine(const std::string &what, const std::string &unit, uint64_t done, uint64_t total,
                         double seconds, uint64_t before = 0);

} // namespace llmc
