// CollectiveQueue: exchanges that run beside the step that started them, on a thread of their own, one after the other
// in the order in which they were started: every rank starts the same ones in the same order.
#pragma once
#include "runtime/collective/Collectives.h"
#include <condition_variable>
#include <memory>
#include <mutex>
#include <pthread.h>

namespace llmc {

// Nanoseconds of the steady clock.
struct ExchangeSpan {
  int64_t number, kind; // of the llmc_collective
  int64_t rows;
  int32_t channel;
  int64_t start, finish;
};

// What several queues have done, as far as there is room.
struct ExchangeRecord {
  std::mutex mutex;
  std::vector<ExchangeSpan> spans;
};

class CollectiveQueue {
public:
  // With room for `capacity` exchanges that nobody has waited for. The transport must outlive this; `channel` is its
  // name in records.
  static StatusOr<std::unique_ptr<CollectiveQueue>> create(Transport &transport, int32_t channel, size_t capacity);
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue &) = delete;
  CollectiveQueue &operator=(const CollectiveQueue &) = delete;
  Transport &transport() const { return collectives_.transport(); }

  // The calls below come from one thread at a time, and allocate nothing. After a failure nothing runs any more.

  // Before a step. Without `beside` nothing runs until somebody waits for it, and then on the thread that waits: a step
  // that waits at once for what it starts saves the way to another thread. Spans are recorded while `record` has room;
  // null: none.
  void begin(bool beside, ExchangeRecord *record);
  // Input, result and scratch (collectiveScratchFloats) belong to the exchange until somebody has waited for it.
  void start(const llmc_collective &what, int64_t rows, const float *input, float *result, std::span<float> scratch);
  // Until the last one that was started as `what` is done, and all before it; the first failure of any.
  Status wait(const llmc_collective &what);
  // Until all are done.
  Status waitForAll();

private:
  struct Entry {
    const llmc_collective *what;
    int64_t rows;
    const float *input;
    float *result;
    std::span<float> scratch;
  };

  CollectiveQueue(Transport &transport, int32_t channel, size_t capacity)
      : collectives_(transport), channel_(channel), entries_(capacity) {}
  static void *threadMain(void *queue);
  void work();
  // Until `count` are done: whoever waits runs the next one where nobody does.
  void waitUntilDone(std::unique_lock<std::mutex> &lock, uint64_t count);
  void runNext(std::unique_lock<std::mutex> &lock);
  void note(const Entry &entry, int64_t start, int64_t finish) const;
  bool canRun() const { return begun_ < started_ && begun_ == done_; }

  Collectives collectives_;
  int32_t channel_;
  pthread_t thread_{};
  bool hasThread_ = false;
  std::mutex mutex_; // of everything below
  std::condition_variable changed_;
  std::vector<Entry> entries_; // a ring: number n lies at n % size
  uint64_t started_ = 0, begun_ = 0, done_ = 0;
  bool beside_ = false, stopping_ = false;
  ExchangeRecord *record_ = nullptr;
  Status failure_;
};

} // namespace llmc
