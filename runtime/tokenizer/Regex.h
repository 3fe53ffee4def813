// Regular expressions of tokenizer files: Oniguruma behind an interface that bounds the work of any pattern.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace llmc {

// How much back-tracking one encoding may still use. Shared by all patterns of one text, so that even a pattern that is
// quadratic in the text ends with an error within seconds.
struct RegexBudget {
  uint64_t retries = uint64_t(1) << 28;
};

class Regex {
public:
  // `pointer` names the pattern in messages.
  static StatusOr<Regex> compile(std::string_view pattern, const std::string &pointer);

  // Walks over the matches in a text: leftmost first, no overlap, no empty match directly after another match. One
  // object walks over many texts, one after the other; it belongs to one thread.
  class Matches {
  public:
    Matches(const Regex &regex, RegexBudget &budget);
    ~Matches();
    Matches(const Matches &) = delete;
    Matches &operator=(const Matches &) = delete;
    // Starts at the beginning of `text`, which must be valid UTF-8 and outlive the walk.
    void reset(std::string_view text);
    // The next match as [begin, end), or false at the end of the text; a failure when the limits do not suffice.
    StatusOr<bool> next(size_t &begin, size_t &end);

  private:
    StatusOr<bool> search(size_t from, size_t &begin, size_t &end);
    const Regex &regex_;
    std::string_view text_;
    std::string standIns_;
    RegexBudget &budget_;
    struct State;
    std::unique_ptr<State> state_;
    size_t at_ = 0;
    size_t lastEnd_ = SIZE_MAX;
  };

private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

} // namespace llmc
