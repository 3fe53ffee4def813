// KvPages: which sequence slot owns which page of the KV cache. Everything is allocated at construction; assigning and
// releasing in the step path allocate nothing. One thread.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

class KvPages {
public:
  // `slots` sequences of at most `pagesPerSlot` pages share `numPages`.
  KvPages(int32_t numPages, int32_t slots, int32_t pagesPerSlot);

  int32_t numPages() const { return static_cast<int32_t>(owner_.size()); }
  int32_t freePages() const { return static_cast<int32_t>(free_.size()); }
  int32_t pagesPerSlot() const { return pagesPerSlot_; }
  // Gives the slot, which must own none, `count` pages; false when fewer are free. Lowest page numbers first after a
  // start, last released first later: deterministic either way.
  bool assign(int32_t slot, int32_t count);
  void release(int32_t slot);
  // Page p of the slot's sequence holds positions p*P .. p*P + P-1.
  std::span<const int32_t> table(int32_t slot) const;
  // Every page is free or owned by exactly the slot whose table lists it. For tests; linear in the pages.
  Status check() const;

private:
  static constexpr int32_t noSlot = -1;
  int32_t pagesPerSlot_;
  std::vector<int32_t> free_;  // a stack
  std::vector<int32_t> owner_; // slot of each page, or noSlot
  std::vector<int32_t> tables_;
  std::vector<int32_t> counts_; // pages of each slot
};

} // namespace llmc
