#include "runtime/engine/StopStrings.h"
#include "runtime/support/Limits.h"
#include <algorithm>
#include <utility>

namespace llmc {

StatusOr<StopStrings> StopStrings::create(std::vector<std::string> stops) {
  if (stops.size() > static_cast<size_t>(limits::stopStrings))
    return Status::error(std::to_string(stops.size()) + " stop strings, limit " + std::to_string(limits::stopStrings));
  for (size_t i = 0; i < stops.size(); ++i)
    if (stops[i].empty() || stops[i].size() > static_cast<size_t>(limits::stopStringBytes))
      return Status::error("stop string " + std::to_string(i) + " has " + std::to_string(stops[i].size()) +
                           " bytes, expected 1 to " + std::to_string(limits::stopStringBytes));
  StopStrings out;
  out.stops_ = std::move(stops);
  return out;
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_)
    return {};
  // What is held is shorter than a stop string, so every search below is over little more than the piece.
  held_ += piece;
  // The text after every byte decides, not the text after every piece: how it was cut must not matter. So of all
  // occurrences the one that ends first counts.
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string &stop : stops_) {
    size_t at = held_.find(stop);
    if (at != std::string::npos && std::pair(at + stop.size(), at) < std::pair(end, begin)) {
      begin = at;
      end = at + stop.size();
    }
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    std::string shown = held_.substr(0, begin);
    held_.clear();
    return shown;
  }
  size_t kept = 0;
  for (const std::string &stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n))
        kept = n;
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

} // namespace llmc
