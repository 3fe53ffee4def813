// Oniguruma with its limits set. Its tables are of Unicode 14; text with newer letters is matched through stand-ins.
#include "runtime/tokenizer/Regex.h"
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/Unicode.h"
#include <mutex>
#include <oniguruma.h>

namespace llmc {
namespace {

// A pattern of a few kilobytes is the longest seen; nesting is bounded by Oniguruma itself (4096 levels).
constexpr size_t maxPatternBytes = 64 << 10;
// Entries of the back-tracking stack, about 40 bytes each: a run of four million characters that may be given back.
constexpr unsigned maxStackEntries = 1u << 22;
// The first try of a search; each further try may go back eight times as often and is charged to the budget.
constexpr uint64_t firstRetries = 1u << 10;

const OnigUChar *bytes(std::string_view text, size_t at = 0) {
  return reinterpret_cast<const OnigUChar *>(text.data()) + at;
}

std::string errorText(int code, OnigErrorInfo *info) {
  OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN];
  int length = onig_error_code_to_str(buffer, code, info);
  return {reinterpret_cast<char *>(buffer), static_cast<size_t>(length)};
}

bool isLimit(int code) {
  return code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
}

} // namespace

struct Regex::Program {
  regex_t *handle = nullptr;
  std::string pointer;
  ~Program() {
    if (handle)
      onig_free(handle);
  }
};

struct Regex::Matches::State {
  OnigRegion *region = onig_region_new();
  OnigMatchParam *limits = onig_new_match_param();
  ~State() {
    onig_region_free(region, 1);
    onig_free_match_param(limits);
  }
};

StatusOr<Regex> Regex::compile(std::string_view pattern, const std::string &pointer) {
  if (pattern.size() > maxPatternBytes)
    return Status::error(pointer + " has " + std::to_string(pattern.size()) + " bytes, a pattern takes up to " +
                         std::to_string(maxPatternBytes));
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
  });
  auto program = std::make_shared<Program>();
  program->pointer = pointer;
  OnigErrorInfo info;
  int code = onig_new(&program->handle, bytes(pattern), bytes(pattern, pattern.size()), ONIG_OPTION_NONE,
                      ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    program->handle = nullptr;
    return Status::error(pointer + " is not a valid pattern: " + errorText(code, &info));
  }
  Regex regex;
  regex.program_ = std::move(program);
  return regex;
}

Regex::Matches::Matches(const Regex &regex, RegexBudget &budget)
    : regex_(regex), budget_(budget), state_(std::make_unique<State>()) {
  onig_initialize_match_param(state_->limits);
  onig_set_match_stack_limit_size_of_match_param(state_->limits, maxStackEntries);
}

void Regex::Matches::reset(std::string_view text) {
  text_ = unicode::replaceByStandIns(text, standIns_) ? std::string_view(standIns_) : text;
  at_ = 0;
  lastEnd_ = SIZE_MAX;
}

Regex::Matches::~Matches() = default;

StatusOr<bool> Regex::Matches::next(size_t &begin, size_t &end) {
  while (at_ <= text_.size()) {
    LLMC_ASSIGN_OR_RETURN(bool found, search(at_, begin, end));
    if (!found)
      return false;
    if (begin == end && lastEnd_ == end) {
      at_ = end < text_.size() ? end + unicode::decode(text_, end).size : end + 1;
      continue;
    }
    at_ = lastEnd_ = end;
    return true;
  }
  return false;
}

StatusOr<bool> Regex::Matches::search(size_t from, size_t &begin, size_t &end) {
  for (uint64_t retries = firstRetries;; retries *= 8) {
    onig_set_retry_limit_in_match_of_match_param(state_->limits, retries);
    onig_set_retry_limit_in_search_of_match_param(state_->limits, retries);
    int code =
        onig_search_with_param(regex_.program_->handle, bytes(text_), bytes(text_, text_.size()), bytes(text_, from),
                               bytes(text_, text_.size()), state_->region, ONIG_OPTION_NONE, state_->limits);
    if (code >= 0) {
      begin = static_cast<size_t>(state_->region->beg[0]);
      end = static_cast<size_t>(state_->region->end[0]);
      return true;
    }
    if (code == ONIG_MISMATCH)
      return false;
    std::string where = regex_.program_->pointer + " on the text from byte " + std::to_string(from);
    if (!isLimit(code))
      return Status::error(where + ": " + errorText(code, nullptr));
    if (budget_.retries < retries * 8)
      return Status::error(where + " goes back too often; give up after " + std::to_string(retries) + " tries");
    budget_.retries -= retries * 8;
  }
}

} // namespace llmc
