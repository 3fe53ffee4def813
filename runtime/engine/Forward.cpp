// Engine::forward: the logits of every position, for `llmc logits` and perplexity.
#include "runtime/engine/Engine.h"

namespace llmc {
namespace {

// Puts back what forward changes, also after a failure.
class ForwardScope {
public:
  ForwardScope(Scheduler &scheduler, int32_t chunkTokens) : scheduler_(scheduler), before_(scheduler.limits()) {
    scheduler_.setChunkTokens(chunkTokens);
  }
  ~ForwardScope() { scheduler_.setChunkTokens(before_.chunkTokens); }

private:
  Scheduler &scheduler_;
  SchedulerLimits before_;
};

} // namespace

Status Engine::forward(std::span<const std::vector<int32_t>> sequences, const ForwardOptions &options,
                       const ForwardSink &sink) {
  if (!idle())
    return Status::error("logits were asked for while sequences are being generated; wait for them");
  ForwardScope scope(scheduler_, options.chunkTokens);
  auto *record = reinterpret_cast<float *>(record_.data());
  for (llmc_step_context &context : contexts_)
    context.record = record;
  std::vector<SequenceId> ids;
  Status status;
  while (status.ok() && (ids.size() < sequences.size() || !idle())) {
    while (status.ok() && ids.size() < sequences.size() && accepts() && (options.together || idle())) {
      StatusOr<SequenceId> id = scheduler_.add({sequences[ids.size()], 0, LogitRows::All});
      if (id.ok())
        ids.push_back(*id);
      else
        status = id.status().inside("sequence " + std::to_string(ids.size()));
    }
    if (status.ok() && compute())
      status = rankFailure_.ok() ? deliver(ids.front(), sink) : rankFailure_;
  }
  for (SequenceId id : ids)
    scheduler_.cancel(id); // those that a failure left; false for the others
  for (llmc_step_context &context : contexts_)
    context.record = nullptr;
  return status;
}

// Ids of one call are consecutive, so the difference is the index of the sequence.
Status Engine::deliver(SequenceId firstId, const ForwardSink &sink) const {
  auto *record = reinterpret_cast<const float *>(record_.data());
  for (const PlannedSpan &span : scheduler_.plannedSpans()) {
    ForwardRows rows;
    rows.sequence = static_cast<size_t>(span.id - firstId);
    rows.firstPosition = span.firstPosition;
    rows.count = span.tokens;
    rows.logits = logitsOf(static_cast<size_t>(span.firstLogitRow), static_cast<size_t>(span.logitRows));
    rows.record = record ? record + static_cast<int64_t>(span.firstRow) * manifest().recordChannels : nullptr;
    rows.recordRows = manifest().maxTokens;
    const uint64_t slotBytes = manifest().stateBytes;
    rows.state = {state_.data() + static_cast<uint64_t>(span.slot) * slotBytes, slotBytes};
    LLMC_RETURN_IF_ERROR(sink(rows));
  }
  return {};
}

} // namespace llmc
