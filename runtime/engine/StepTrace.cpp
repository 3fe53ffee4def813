#include "runtime/engine/StepTrace.h"
#include <algorithm>
#include <chrono>

namespace llmc {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

StepTrace::StepTrace(int32_t workers, const TraceRoom &room, size_t steps)
    : maxLaunches_(room.launches), maxSteps_(steps), lanes_(static_cast<size_t>(workers)) {
  for (int32_t block = -1; block < room.blocks; ++block)
    blocks_.push_back({this, block});
  for (Lane &lane : lanes_)
    lane.spans.resize(room.launches * steps);
  exchanges_.spans.reserve(room.exchanges * steps);
  steps_.reserve(steps);
}

std::span<const LaunchSpan> StepTrace::launches(const TracedStep &step, int32_t worker) const {
  return std::span(lanes_[static_cast<size_t>(worker)].spans).subspan(step.firstLaunch, step.numLaunches);
}

std::span<const ExchangeSpan> StepTrace::exchanges(const TracedStep &step) const {
  return std::span(exchanges_.spans).subspan(step.firstExchange, step.numExchanges);
}

bool StepTrace::begin(ThreadPool &pool, int32_t rows, int32_t promptRows) {
  if (full())
    return false;
  pool_ = &pool;
  size_t first = steps_.empty() ? 0 : steps_.back().firstLaunch + steps_.back().numLaunches;
  for (Lane &lane : lanes_) {
    lane.used = first;
    lane.open = false;
  }
  steps_.push_back({rows, promptRows, now(), 0, first, 0, exchanges_.spans.size(), 0});
  return true;
}

void StepTrace::end() {
  if (!pool_)
    return;
  pool_ = nullptr;
  TracedStep &step = steps_.back();
  step.finish = now();
  size_t used = lanes_.front().used;
  for (Lane &lane : lanes_) {
    used = std::min(used, lane.used);
    if (lane.open && lane.spans[lane.used - 1].joined == 0) // a program that ends without a barrier
      lane.spans[lane.used - 1].finish = lane.spans[lane.used - 1].joined = step.finish;
  }
  step.numLaunches = used - step.firstLaunch;
  step.numExchanges = exchanges_.spans.size() - step.firstExchange;
}

void StepTrace::launchOfTrace(void *block, int32_t worker, int32_t task) {
  auto [self, number] = *static_cast<const Block *>(block);
  Lane &lane = self->lanes_[static_cast<size_t>(worker)];
  lane.open = lane.used < self->steps_.back().firstLaunch + self->maxLaunches_;
  if (lane.open)
    lane.spans[lane.used++] = {task, number, now(), 0, 0, 0};
}

void StepTrace::barrierOfTrace(void *trace, int32_t worker) {
  auto *self = static_cast<StepTrace *>(trace);
  Lane &lane = self->lanes_[static_cast<size_t>(worker)];
  int64_t finish = now();
  self->pool_->barrier();
  if (!lane.open)
    return;
  // The last barrier of a task ends it; what was the last one until now was inside.
  LaunchSpan &span = lane.spans[lane.used - 1];
  span.waited += span.joined - span.finish;
  span.finish = finish;
  span.joined = now();
}

} // namespace llmc
