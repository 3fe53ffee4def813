#include "runtime/engine/KvPages.h"
#include <cassert>
#include <string>

namespace llmc {

KvPages::KvPages(int32_t numPages, int32_t slots, int32_t pagesPerSlot)
    : pagesPerSlot_(pagesPerSlot), owner_(static_cast<size_t>(numPages), noSlot),
      tables_(static_cast<size_t>(slots) * static_cast<size_t>(pagesPerSlot)), counts_(static_cast<size_t>(slots)) {
  free_.reserve(owner_.size());
  for (int32_t page = numPages - 1; page >= 0; --page)
    free_.push_back(page);
}

bool KvPages::assign(int32_t slot, int32_t count) {
  auto s = static_cast<size_t>(slot);
  assert(counts_[s] == 0 && "the slot still owns pages");
  assert(count <= pagesPerSlot_ && "a sequence cannot be longer than the context");
  if (count > freePages())
    return false;
  int32_t *table = tables_.data() + s * static_cast<size_t>(pagesPerSlot_);
  for (int32_t p = 0; p < count; ++p) {
    table[p] = free_.back();
    free_.pop_back();
    assert(owner_[static_cast<size_t>(table[p])] == noSlot && "a page was free and owned");
    owner_[static_cast<size_t>(table[p])] = slot;
  }
  counts_[s] = count;
  return true;
}

void KvPages::release(int32_t slot) {
  std::span<const int32_t> pages = table(slot);
  // Backwards, so that the next sequence of this length gets the same pages in the same order.
  for (size_t p = pages.size(); p-- > 0;) {
    assert(owner_[static_cast<size_t>(pages[p])] == slot && "a page was released by another slot");
    owner_[static_cast<size_t>(pages[p])] = noSlot;
    free_.push_back(pages[p]);
  }
  counts_[static_cast<size_t>(slot)] = 0;
}

std::span<const int32_t> KvPages::table(int32_t slot) const {
  auto s = static_cast<size_t>(slot);
  return {tables_.data() + s * static_cast<size_t>(pagesPerSlot_), static_cast<size_t>(counts_[s])};
}

Status KvPages::check() const {
  std::vector<int32_t> found(owner_.size(), noSlot);
  size_t used = 0;
  for (int32_t slot = 0; slot < static_cast<int32_t>(counts_.size()); ++slot)
    for (int32_t page : table(slot)) {
      if (page < 0 || page >= numPages())
        return Status::error("slot " + std::to_string(slot) + " lists page " + std::to_string(page) + " of " +
                             std::to_string(numPages()));
      if (found[static_cast<size_t>(page)] != noSlot)
        return Status::error("page " + std::to_string(page) + " is in two tables");
      found[static_cast<size_t>(page)] = slot;
      ++used;
    }
  if (found != owner_)
    return Status::error("owners and page tables disagree");
  if (used + free_.size() != owner_.size())
    return Status::error(std::to_string(used) + " pages used and " + std::to_string(free_.size()) + " free, of " +
                         std::to_string(owner_.size()));
  for (int32_t page : free_)
    if (owner_[static_cast<size_t>(page)] != noSlot)
      return Status::error("page " + std::to_string(page) + " is free and owned");
  return {};
}

} // namespace llmc
