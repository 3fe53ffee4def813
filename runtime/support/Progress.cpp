#include "runtime/support/Progress.h"
#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace llmc {

Progress::Progress(std::string what, std::string unit, uint64_t total, When when, uint64_t before)
    : what_(std::move(what)), unit_(std::move(unit)), total_(total), before_(before),
      enabled_(when == When::OnTerminal && ::isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

Progress::~Progress() { finish(); }

void Progress::update(uint64_t done) {
  if (!enabled_)
    return;
  Clock::time_point now = Clock::now();
  if (now - start_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(100))
    return;
  last_ = now;
  drawn_ = true;
  double seconds = std::chrono::duration<double>(now - start_).count();
  // \r and "erase to the end of the line": the shorter line must not leave the tail of the longer one.
  std::fprintf(stderr, "\r%s\x1b[K", progressLine(what_, unit_, done, total_, seconds, before_).c_str());
  std::fflush(stderr);
}

void Progress::finish() {
  if (drawn_)
    std::fprintf(stderr, "\r\x1b[K");
  drawn_ = false;
}

std::string progressLine(const std::string &what, const std::string &unit, uint64_t done, uint64_t total,
                         double seconds, uint64_t before) {
  constexpr int columns = 30;
  double part = total == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  int full = static_cast<int>(part * columns);
  double rate = seconds > 0 && done > before ? static_cast<double>(done - before) / seconds : 0;
  double left = rate > 0 && total > done ? static_cast<double>(total - done) / rate : 0;
  char tail[160];
  if (unit == "bytes") {
    constexpr double mebi = 1 << 20;
    std::snprintf(tail, sizeof tail, "] %.0f / %.0f MiB, %.0f MiB/s, %.0f s left", static_cast<double>(done) / mebi,
                  static_cast<double>(total) / mebi, rate / mebi, left);
    return what + " [" + std::string(full, '#') + std::string(columns - full, '.') + tail;
  }
  std::snprintf(tail, sizeof tail, "] %llu / %llu %s, %.0f/s, %.0f s left", static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(total), unit.c_str(), rate, left);
  return what + " [" + std::string(full, '#') + std::string(columns - full, '.') + tail;
}

} // namespace llmc
