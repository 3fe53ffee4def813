// Status and StatusOr: how a failure travels in everything that does not see MLIR. A failure is one sentence for the
// user (what, where, both numbers, what to do): lower case, no final period.
#pragma once
#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace llmc {

class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message) {
    Status s;
    s.message_ = std::move(message);
    return s;
  }
  bool ok() const { return !message_.has_value(); }
  const std::string &message() const {
    assert(message_ && "a success has no message");
    return *message_;
  }
  // The same failure, said to be inside `where` ("file.gguf"): "where: message".
  Status inside(const std::string &where) const { return ok() ? *this : error(where + ": " + *message_); }

private:
  std::optional<std::string> message_;
};

template <typename T> class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : value_(std::move(value)) {}
  StatusOr(Status status) : status_(std::move(status)) { assert(!status_.ok() && "a success needs a value"); }
  bool ok() const { return value_.has_value(); }
  const Status &status() const { return status_; }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }

private:
  std::optional<T> value_;
  Status status_;
};

} // namespace llmc

#define LLMC_CONCAT_INNER(a, b) a##b
#define LLMC_CONCAT(a, b) LLMC_CONCAT_INNER(a, b)
// Returns from the enclosing function when `expr` (a Status) failed.
#define LLMC_RETURN_IF_ERROR(expr)                                                                                     \
  do {                                                                                                                 \
    if (::llmc::Status llmcStatus = (expr); !llmcStatus.ok())                                                          \
      return llmcStatus;                                                                                               \
  } while (false)
// Declares or assigns `lhs` from a StatusOr, or returns its failure.
#define LLMC_ASSIGN_OR_RETURN(lhs, expr)                                                                               \
  auto LLMC_CONCAT(llmcResult, __LINE__) = (expr);                                                                     \
  if (!LLMC_CONCAT(llmcResult, __LINE__).ok())                                                                         \
    return LLMC_CONCAT(llmcResult, __LINE__).status();                                                                 \
  lhs = std::move(*LLMC_CONCAT(llmcResult, __LINE__))
