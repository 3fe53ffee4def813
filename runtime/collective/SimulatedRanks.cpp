#include "runtime/collective/SimulatedRanks.h"
#include <cstring>
#include <thread>

namespace llmc {

class SimulatedRanks::End final : public Transport {
public:
  End(SimulatedRanks &ranks, int32_t number) : Transport(ranks.grid_, number), ranks_(ranks) {}
  Status exchange(int32_t label, std::span<const OutgoingMessage> outgoing,
                  std::span<const IncomingMessage> incoming) override {
    return ranks_.exchange(number(), label, outgoing, incoming);
  }
  void fail(const std::string &why) override { ranks_.fail(why); }

private:
  SimulatedRanks &ranks_;
};

SimulatedRanks::SimulatedRanks(RankGrid grid, std::chrono::milliseconds patience)
    : grid_(grid), patience_(patience), mailboxes_(static_cast<size_t>(grid.size()) * static_cast<size_t>(grid.size())),
      ended_(static_cast<size_t>(grid.size())) {}

SimulatedRanks::~SimulatedRanks() = default;

Status SimulatedRanks::run(const Body &body) {
  std::vector<std::thread> threads;
  for (int32_t number = 0; number < grid_.size(); ++number)
    threads.emplace_back([this, &body, number] {
      End end(*this, number);
      leave(number, body(end));
    });
  for (std::thread &thread : threads)
    thread.join();
  return failure_ ? Status::error(*failure_) : Status();
}

void SimulatedRanks::fail(const std::string &why) {
  std::lock_guard lock(mutex_);
  if (!failure_)
    failure_ = why;
  changed_.notify_all();
}

void SimulatedRanks::leave(int32_t number, const Status &status) {
  if (!status.ok())
    fail(status.message());
  std::lock_guard lock(mutex_);
  ended_[static_cast<size_t>(number)] = true;
  changed_.notify_all();
}

template <typename F>
Status SimulatedRanks::waitFor(std::unique_lock<std::mutex> &lock, int32_t number, int32_t peer, F isDone) {
  auto hasEnded = [&] { return ended_[static_cast<size_t>(peer)]; };
  bool inTime = changed_.wait_for(lock, patience_, [&] { return failure_ || isDone() || hasEnded(); });
  if (!failure_ && isDone())
    return {};
  if (!failure_) {
    failure_ = inTime
                   ? "rank " + std::to_string(peer) + " has ended, but rank " + std::to_string(number) + " waits for it"
                   : lostPatienceText(number, peer, patience_);
    changed_.notify_all();
  }
  return Status::error(*failure_);
}

Status SimulatedRanks::take(std::unique_lock<std::mutex> &lock, int32_t number, int32_t label,
                            const IncomingMessage &message) {
  Mailbox &box = mailbox(message.from, number);
  LLMC_RETURN_IF_ERROR(waitFor(lock, number, message.from, [&] { return box.message.has_value(); }));
  std::span<const uint8_t> bytes = *box.message;
  if (bytes.size() != message.bytes.size() || box.label != label) {
    failure_ = box.label == label ? wrongSizeText(message.from, bytes.size(), number, message.bytes.size())
                                  : wrongLabelText(message.from, number);
    changed_.notify_all();
    return Status::error(*failure_);
  }
  box.isRead = true;
  lock.unlock();
  std::memcpy(message.bytes.data(), bytes.data(), bytes.size());
  lock.lock();
  box.isRead = false;
  box.message.reset();
  changed_.notify_all();
  return {};
}

Status SimulatedRanks::exchange(int32_t number, int32_t label, std::span<const OutgoingMessage> outgoing,
                                std::span<const IncomingMessage> incoming) {
  std::unique_lock lock(mutex_);
  if (failure_)
    return Status::error(*failure_);
  for (const OutgoingMessage &message : outgoing) {
    mailbox(number, message.to).label = label;
    mailbox(number, message.to).message = message.bytes;
  }
  changed_.notify_all();
  Status status;
  for (const IncomingMessage &message : incoming)
    if (status.ok())
      status = take(lock, number, label, message);
  for (const OutgoingMessage &message : outgoing) {
    Mailbox &box = mailbox(number, message.to);
    if (status.ok())
      status = waitFor(lock, number, message.to, [&] { return !box.message; });
    // After a failure too: the memory is the caller's again.
    changed_.wait(lock, [&] { return !box.isRead; });
    box.message.reset();
  }
  return status;
}

} // namespace llmc
