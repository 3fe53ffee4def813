// Transport: how the ranks that share a model hand messages to each other. What is made of the messages (sums, whole
// rows) is Collectives.h: the same code, and the same order of additions, for every transport.
#pragma once
#include "runtime/support/Status.h"
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace llmc {

// Ranks are numbered stage by stage: rank r of the group of stage s is number s * ranks + r.
struct RankGrid {
  int32_t stages = 1;
  int32_t ranks = 1; // of a group, which shares the layers of a stage
  int32_t size() const { return stages * ranks; }
  bool operator==(const RankGrid &) const = default;
};

struct OutgoingMessage {
  int32_t to; // number of the rank, not its place in a group
  std::span<const uint8_t> bytes;
};

struct IncomingMessage {
  int32_t from;
  std::span<uint8_t> bytes;
};

// How long a rank waits for another before it takes it for lost. Ranks that end are noticed at once; this is for those
// that hang. A stage may compute a whole step while the next one waits.
inline constexpr std::chrono::milliseconds defaultPatience = std::chrono::minutes(5);

// Labels tell messages of one exchange from those of another; MPI promises no more of them.
inline constexpr int32_t maxLabel = 32000;

// One rank's end. All calls come from one thread at a time. After a failure anywhere every call on every rank fails,
// with the sentence of the rank that failed first.
class Transport {
public:
  Transport(RankGrid grid, int32_t number) : grid_(grid), number_(number) {}
  virtual ~Transport() = default;
  RankGrid grid() const { return grid_; }
  int32_t number() const { return number_; }
  int32_t stage() const { return number_ / grid_.ranks; }
  int32_t rank() const { return number_ % grid_.ranks; } // in its group

  // All of these messages at once, at most one to and one from each rank; returns when the last has left and arrived,
  // so that the memory is the caller's again. The n-th message from a to b is the n-th that b takes from a; another
  // size or label (0 .. maxLabel) than b expects is a failure.
  virtual Status exchange(int32_t label, std::span<const OutgoingMessage> outgoing,
                          std::span<const IncomingMessage> incoming) = 0;
  // Tells all ranks that this one cannot go on. The first failure counts.
  virtual void fail(const std::string &why) = 0;
  // Another end of this rank, for messages that do not wait for those of this one; the two may be called at the same
  // time. All ranks open as many, in the same order. It must not outlive this; failures are common to all.
  virtual StatusOr<std::unique_ptr<Transport>> openChannel() = 0;

private:
  RankGrid grid_;
  int32_t number_;
};

// What transports say of messages that do not fit, and of ranks that hang.
std::string wrongSizeText(int32_t from, size_t arrived, int32_t to, size_t expected);
std::string wrongLabelText(int32_t from, int32_t to);
std::string lostPatienceText(int32_t waiting, int32_t peer, std::chrono::milliseconds patience);

} // namespace llmc
