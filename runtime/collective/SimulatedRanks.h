// Ranks as threads of one process: messages are copied from the sender's memory to the receiver's.
#pragma once
#include "runtime/collective/Transport.h"
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace llmc {

// What lies between two ranks: a message counts as arrived `latency` after it has passed, and those from one rank to
// another pass one after the other. Whoever waits sleeps.
struct SimulatedLink {
  std::chrono::nanoseconds latency{0};
  double bytesPerSecond = 0; // 0: no limit
};

class SimulatedRanks {
public:
  explicit SimulatedRanks(RankGrid grid, std::chrono::milliseconds patience = defaultPatience,
                          const SimulatedLink &link = {});
  ~SimulatedRanks();
  RankGrid grid() const { return grid_; }

  // Runs `body` on a thread for each rank and waits for all of them. A rank that fails, or ends while others wait for
  // it, wakes them: they fail too. Returns the first failure. To be called once.
  using Body = std::function<Status(Transport &)>;
  Status run(const Body &body);

private:
  class End;
  using Clock = std::chrono::steady_clock;
  // What one rank has laid out for another and that one has not taken yet.
  struct Mailbox {
    int32_t label = 0;
    std::optional<std::span<const uint8_t>> message;
    bool isRead = false; // right now, without the lock
    Clock::time_point arrives;
  };

  Status exchange(const End &end, int32_t label, std::span<const OutgoingMessage> outgoing,
                  std::span<const IncomingMessage> incoming);
  void post(const End &end, int32_t label, const OutgoingMessage &message);
  void openChannel(size_t channel);
  void fail(const std::string &why);
  void leave(int32_t number, const Status &status);
  Status take(std::unique_lock<std::mutex> &lock, const End &end, int32_t label, const IncomingMessage &message);
  // Until `isDone` or a failure; a failure when `peer` has ended or patience is lost.
  template <typename F> Status waitFor(std::unique_lock<std::mutex> &lock, int32_t number, int32_t peer, F isDone);
  size_t pairOf(int32_t from, int32_t to) const { return static_cast<size_t>(from * grid_.size() + to); }
  Mailbox &mailbox(const End &end, int32_t from, int32_t to);

  RankGrid grid_;
  std::chrono::milliseconds patience_;
  SimulatedLink link_;
  std::mutex mutex_; // of everything below
  std::condition_variable changed_;
  std::vector<std::vector<Mailbox>> mailboxes_; // by channel and pair
  std::vector<Clock::time_point> linkIsFree_;   // by pair
  std::vector<bool> ended_;
  std::optional<std::string> failure_;
};

} // namespace llmc
