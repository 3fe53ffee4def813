// A ring of buffers between producing threads and one consumer.
#include "lib/weights/OrderedWork.h"
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace llmc {
namespace {

using Produce = std::function<Status(int64_t, std::vector<uint8_t> &)>;
using Consume = std::function<Status(std::span<const uint8_t>)>;

class Ring {
public:
  Ring(int64_t count, size_t slots, const Produce &produce) : count_(count), slots_(slots), produce_(produce) {}

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopped_ || next_ == count_ || next_ - consumed_ < numSlots(); });
      if (stopped_ || next_ == count_)
        return;
      Slot &slot = slotOf(next_);
      int64_t item = next_++;
      lock.unlock();
      Status made = produce_(item, slot.buffer);
      lock.lock();
      slot.status = std::move(made);
      slot.full = true;
      changed_.notify_all();
    }
  }

  Status drain(const Consume &consume) {
    for (int64_t item = 0; item < count_; ++item) {
      Slot &slot = slotOf(item);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return slot.full; });
      lock.unlock();
      LLMC_RETURN_IF_ERROR(slot.status);
      LLMC_RETURN_IF_ERROR(consume(slot.buffer));
      lock.lock();
      slot.full = false;
      ++consumed_;
      changed_.notify_all();
    }
    return {};
  }

  void stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

private:
  struct Slot {
    std::vector<uint8_t> buffer;
    Status status;
    bool full = false;
  };
  int64_t numSlots() const { return static_cast<int64_t>(slots_.size()); }
  Slot &slotOf(int64_t item) { return slots_[static_cast<size_t>(item % numSlots())]; }

  const int64_t count_;
  std::vector<Slot> slots_;
  const Produce &produce_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t next_ = 0, consumed_ = 0; // the next item to claim; items done with
  bool stopped_ = false;
};

} // namespace

Status runInOrder(int64_t count, int threads, const Produce &produce, const Consume &consume) {
  if (threads <= 1 || count <= 1) {
    std::vector<uint8_t> buffer;
    for (int64_t item = 0; item < count; ++item) {
      LLMC_RETURN_IF_ERROR(produce(item, buffer));
      LLMC_RETURN_IF_ERROR(consume(buffer));
    }
    return {};
  }
  int64_t workers = std::min<int64_t>(threads, count);
  Ring ring(count, static_cast<size_t>(2 * workers), produce);
  std::vector<std::thread> pool;
  for (int64_t i = 0; i < workers; ++i)
    pool.emplace_back([&] { ring.work(); });
  Status status = ring.drain(consume);
  ring.stop();
  for (std::thread &thread : pool)
    thread.join();
  return status;
}

} // namespace llmc
