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

class SimulatedRanks {
public:
  explicit SimulatedRanks(RankGrid grid, std::chrono::milliseconds patience = defaultPatience);
  ~SimulatedRanks();
  RankGrid grid() const { return grid_; }

  // Runs `body` on a thread for each rank and waits for all of them. A rank that fails, or ends while others wait for
  // it, wakes them: they fail too. Returns the first failure. To be called once.
  using Body = std::function<Status(Transport &)>;
  Status run(const Body &body);

private:
  class End;
  // What one rank has laid out for another and that one has not taken yet.
  struct Mailbox {
    int32_t label = 0;
    std::optional<std::span<const uint8_t>> message;
    bool isRead = false; // right now, without the lock
  };

  Status exchange(int32_t number, int32_t label, std::span<const OutgoingMessage> outgoing,
                  std::span<const IncomingMessage> incoming);
  void fail(const std::string &why);
  void leave(int32_t number, const Status &status);
  Status take(std::unique_lock<std::mutex> &lock, int32_t number, int32_t label, const IncomingMessage &message);
  // Until `isDone` or a failure; a failure when `peer` has ended or patience is lost.
  template <typename F> Status waitFor(std::unique_lock<std::mutex> &lock, int32_t number, int32_t peer, F isDone);
  Mailbox &mailbox(int32_t from, int32_t to) { return mailboxes_[static_cast<size_t>(from * grid_.size() + to)]; }

  RankGrid grid_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_; // of everything below
  std::condition_variable changed_;
  std::vector<Mailbox> mailboxes_;
  std::vector<bool> ended_;
  std::optional<std::string> failure_;
};

} // namespace llmc
