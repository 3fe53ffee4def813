// CheckedSize: sizes, counts and offsets whose arithmetic fails instead of wrapping. Every product, sum or narrowing of a
// number that came from a file or a request goes through it.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>

namespace llmc {

class CheckedSize {
public:
  constexpr CheckedSize(uint64_t value) : value_(value) {}
  constexpr bool ok() const { return !overflowed_; }
  // The value, or nothing when any step of the computation did not fit 64 bits.
  constexpr std::optional<uint64_t> value() const { return overflowed_ ? std::nullopt : std::optional(value_); }
  constexpr bool fits(uint64_t limit) const { return !overflowed_ && value_ <= limit; }

  friend constexpr CheckedSize operator+(CheckedSize a, CheckedSize b) {
    CheckedSize r(0);
    r.overflowed_ = __builtin_add_overflow(a.value_, b.value_, &r.value_) || a.overflowed_ || b.overflowed_;
    return r;
  }
  // A zero factor does not hide an overflow elsewhere in the product.
  friend constexpr CheckedSize operator*(CheckedSize a, CheckedSize b) {
    CheckedSize r(0);
    r.overflowed_ = __builtin_mul_overflow(a.value_, b.value_, &r.value_) || a.overflowed_ || b.overflowed_;
    return r;
  }

private:
  uint64_t value_;
  bool overflowed_ = false;
};

} // namespace llmc
