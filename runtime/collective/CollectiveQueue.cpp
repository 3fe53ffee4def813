#include "runtime/collective/CollectiveQueue.h"
#include <chrono>
#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmc {
namespace {

// This thread does little and often, while workers have the cores: with a short slice it is given one when it wakes
// (Linux 6.12; earlier ones take no notice). As <linux/sched/types.h> has it, which does not go with <sched.h>.
void askForShortSlices() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; // nanoseconds
  } attributes{sizeof attributes, 0, 0, 0, 0, 100'000, 0, 0};
  ::syscall(SYS_sched_setattr, 0, &attributes, 0u);
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

StatusOr<std::unique_ptr<CollectiveQueue>> CollectiveQueue::create(Transport &transport, int32_t channel,
                                                                   size_t capacity) {
  std::unique_ptr<CollectiveQueue> queue(new CollectiveQueue(transport, channel, std::max<size_t>(capacity, 1)));
  // Signals belong to the program's own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = ::pthread_create(&queue->thread_, nullptr, threadMain, queue.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return Status::error("cannot start the thread that exchanges rows with other ranks: " +
                         std::string(std::strerror(error)));
  queue->hasThread_ = true;
  return queue;
}

CollectiveQueue::~CollectiveQueue() {
  if (!hasThread_)
    return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  ::pthread_join(thread_, nullptr);
}

void *CollectiveQueue::threadMain(void *queue) {
  ::pthread_setname_np(::pthread_self(), "llmc-exchange");
  askForShortSlices();
  static_cast<CollectiveQueue *>(queue)->work();
  return nullptr;
}

void CollectiveQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (beside_ && canRun()); });
    if (stopping_)
      return;
    runNext(lock);
  }
}

void CollectiveQueue::runNext(std::unique_lock<std::mutex> &lock) {
  const Entry entry = entries_[begun_++ % entries_.size()];
  if (failure_.ok()) {
    lock.unlock();
    int64_t start = now();
    Status status = collectives_.run(*entry.what, entry.rows, entry.input, entry.result, entry.scratch);
    int64_t finish = now();
    lock.lock();
    note(entry, start, finish);
    if (!status.ok())
      failure_ = status;
  }
  ++done_;
  changed_.notify_all();
}

void CollectiveQueue::note(const Entry &entry, int64_t start, int64_t finish) const {
  if (!record_)
    return;
  std::lock_guard lock(record_->mutex);
  if (record_->spans.size() < record_->spans.capacity())
    record_->spans.push_back({entry.what->number, entry.what->kind, entry.rows, channel_, start, finish});
}

void CollectiveQueue::begin(bool beside, ExchangeRecord *record) {
  std::lock_guard lock(mutex_);
  beside_ = beside;
  record_ = record;
}

void CollectiveQueue::start(const llmc_collective &what, int64_t rows, const float *input, float *result,
                            std::span<float> scratch) {
  std::unique_lock lock(mutex_);
  if (started_ - done_ == entries_.size())
    waitUntilDone(lock, done_ + 1);
  entries_[started_++ % entries_.size()] = {&what, rows, input, result, scratch};
  if (beside_)
    changed_.notify_all();
}

Status CollectiveQueue::wait(const llmc_collective &what) {
  std::unique_lock lock(mutex_);
  for (uint64_t number = started_; number > done_; --number)
    if (entries_[(number - 1) % entries_.size()].what == &what) {
      waitUntilDone(lock, number);
      break;
    }
  return failure_;
}

Status CollectiveQueue::waitForAll() {
  std::unique_lock lock(mutex_);
  waitUntilDone(lock, started_);
  return failure_;
}

void CollectiveQueue::waitUntilDone(std::unique_lock<std::mutex> &lock, uint64_t count) {
  while (done_ < count)
    if (canRun())
      runNext(lock);
    else
      changed_.wait(lock);
}

} // namespace llmc
