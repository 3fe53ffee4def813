#include "runtime/collective/SimulatedRanks.h"
#include <algorithm>
#include <cstring>
#include <thread>

namespace llmc {

class SimulatedRanks::End final : public Transport {
public:
  End(SimulatedRanks &ranks, int32_t number, size_t channel = 0)
      : Transport(ranks.grid_, number), channel_(channel), ranks_(ranks) {}
  Status exchange(int32_t label, std::span<const OutgoingMessage> outgoing,
                  std::span<const IncomingMessage> incoming) override {
    return ranks_.exchange(*this, label, outgoing, incoming);
  }
  void fail(const std::string &why) override { ranks_.fail(why); }
  StatusOr<std::unique_ptr<Transport>> openChannel() override {
    ranks_.openChannel(++opened_);
    return std::unique_ptr<Transport>(new End(ranks_, number(), opened_));
  }
  size_t channel() const { return channel_; }

private:
  size_t channel_, opened_ = 0;
  SimulatedRanks &ranks_;
};

SimulatedRanks::SimulatedRanks(RankGrid grid, std::chrono::milliseconds patience, const SimulatedLink &link)
    : grid_(grid), patience_(patience), link_(link),
      linkIsFree_(static_cast<size_t>(grid.size()) * static_cast<size_t>(grid.size())),
      ended_(static_cast<size_t>(grid.size())) {
  openChannel(0);
}

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

// Boxes stay where they are when others are added.
void SimulatedRanks::openChannel(size_t channel) {
  std::lock_guard lock(mutex_);
  while (mailboxes_.size() <= channel)
    mailboxes_.emplace_back(linkIsFree_.size());
}

SimulatedRanks::Mailbox &SimulatedRanks::mailbox(const End &end, int32_t from, int32_t to) {
  return mailboxes_[end.channel()][pairOf(from, to)];
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

void SimulatedRanks::post(const End &end, int32_t label, const OutgoingMessage &message) {
  Mailbox &box = mailbox(end, end.number(), message.to);
  box.label = label;
  box.message = message.bytes;
  std::chrono::duration<double> takes{
      link_.bytesPerSecond > 0 ? static_cast<double>(message.bytes.size()) / link_.bytesPerSecond : 0};
  Clock::time_point &isFree = linkIsFree_[pairOf(end.number(), message.to)];
  isFree = std::max(Clock::now(), isFree) + std::chrono::duration_cast<Clock::duration>(takes);
  box.arrives = isFree + link_.latency;
}

Status SimulatedRanks::take(std::unique_lock<std::mutex> &lock, const End &end, int32_t label,
                            const IncomingMessage &message) {
  const int32_t number = end.number();
  Mailbox &box = mailbox(end, message.from, number);
  LLMC_RETURN_IF_ERROR(waitFor(lock, number, message.from, [&] { return box.message.has_value(); }));
  if (changed_.wait_until(lock, box.arrives, [&] { return failure_.has_value(); }))
    return Status::error(*failure_);
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

Status SimulatedRanks::exchange(const End &end, int32_t label, std::span<const OutgoingMessage> outgoing,
                                std::span<const IncomingMessage> incoming) {
  std::unique_lock lock(mutex_);
  if (failure_)
    return Status::error(*failure_);
  const int32_t number = end.number();
  for (const OutgoingMessage &message : outgoing)
    post(end, label, message);
  changed_.notify_all();
  Status status;
  for (const IncomingMessage &message : incoming)
    if (status.ok())
      status = take(lock, end, label, message);
  for (const OutgoingMessage &message : outgoing) {
    Mailbox &box = mailbox(end, number, message.to);
    if (status.ok())
      status = waitFor(lock, number, message.to, [&] { return !box.message; });
    // After a failure too: the memory is the caller's again.
    changed_.wait(lock, [&] { return !box.isRead; });
    box.message.reset();
  }
  return status;
}

} // namespace llmc
