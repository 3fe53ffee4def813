// The two-way map between tokens and ids. Ids may have gaps; the text of all tokens lies in one block.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class Vocabulary {
public:
  static constexpr int32_t maxId = (1 << 24) - 1;

  void reserve(size_t tokens, size_t bytes);
  // Fails when the id is out of range or taken, or the token is there already; `pointer` names the list in messages.
  Status add(std::string_view token, int64_t id, std::string_view pointer);
  // The id decodes to the token, but looking the token up does not find it (an entry that encoding must not give).
  Status addHidden(std::string_view token, int64_t id, std::string_view pointer);

  std::optional<int32_t> id(std::string_view token) const;
  // The token, or nothing for an id that is not given.
  std::optional<std::string_view> token(int64_t id) const;
  // One more than the highest id.
  int32_t size() const { return static_cast<int32_t>(places_.size()); }
  size_t longestToken() const { return longest_; }

private:
  struct Place {
    uint64_t begin = 0;
    int64_t size = -1; // -1: no such id
  };
  Status place(std::string_view token, int64_t id, std::string_view pointer);
  size_t slot(std::string_view token) const;
  void grow(size_t slots);

  std::string block_;
  std::vector<Place> places_;
  struct Slot {
    int32_t id = -1;
    uint32_t hash = 0;
  };
  std::vector<Slot> slots_; // a power of two, at most half full
  size_t used_ = 0;
  size_t longest_ = 0;
};

// Differs from process to process: a file cannot be written so that its tokens collide.
uint64_t hashSeed();
// A quick hash with good low bits, for tables in memory only.
uint64_t hashBytes(std::string_view bytes);

} // namespace llmc
