#include "runtime/collective/Transport.h"

namespace llmc {

std::string wrongSizeText(int32_t from, size_t arrived, int32_t to, size_t expected) {
  return "rank " + std::to_string(from) + " sent " + std::to_string(arrived) + " bytes to rank " + std::to_string(to) +
         ", which expects " + std::to_string(expected) + "; the ranks run different programs or batches";
}

std::string wrongLabelText(int32_t from, int32_t to) {
  return "rank " + std::to_string(from) + " is at another exchange than rank " + std::to_string(to) +
         ", which waits for it; the ranks run different programs or batches";
}

std::string lostPatienceText(int32_t waiting, int32_t peer, std::chrono::milliseconds patience) {
  return "rank " + std::to_string(waiting) + " has waited " + std::to_string(patience.count()) + " ms for rank " +
         std::to_string(peer) + ", which neither answers nor ends";
}

} // namespace llmc
