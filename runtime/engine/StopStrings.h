// StopStrings: finds the first stop string in text that arrives in pieces, and lets through what cannot be part of one.
#pragma once
#include "runtime/support/Status.h"
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class StopStrings {
public:
  // At most limits::stopStrings of limits::stopStringBytes bytes each, none empty. No stop strings: all passes at once.
  static StatusOr<StopStrings> create(std::vector<std::string> stops);

  // The text that can be shown after `piece`: it ends before the first stop string and before anything that more text
  // could make one. Where several end at the same byte, the one that starts first counts. Nothing after stopped().
  std::string push(std::string_view piece);
  bool stopped() const { return stopped_; }
  // The text held back, when no more comes.
  std::string flush();

private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

} // namespace llmc
