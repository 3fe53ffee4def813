// Scheduler: which tokens of which sequences the next step computes. A pure state machine: no clock, no threads, no
// model, no randomness; the same calls give the same batches. Planning and advancing allocate nothing; adding a
// sequence does.
//
// A sequence waits until a slot, which is also its place in the recurrent state, and the KV pages for its whole prompt
// and answer are free, in the order of arrival;
// once admitted it never loses them, so nothing is computed twice. A step takes one token of every sequence that
// generates, then, with what is left of the step's limits, chunks of prompts in the order of admission. Where the
// limits do not hold all that generate, they take turns.
#pragma once
#include "runtime/engine/BatchArrays.h"
#include "runtime/engine/KvPages.h"
#include "runtime/llmc_abi.h"
#include "runtime/support/Status.h"
#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

using SequenceId = int64_t;

struct SchedulerLimits {
  int32_t vocabulary = 0;
  int32_t context = 0;
  int32_t maxTokens = 0;    // rows per step
  int32_t maxSequences = 0; // admitted at once
  int32_t maxLogitRows = 0; // per step
  int32_t pageTokens = 0;   // 0: the model keeps no KV pages
  int32_t numPages = 0;
  int32_t chunkTokens = 0; // most prompt tokens of one sequence per step; 0 = maxTokens
  int32_t maxWaiting = 0;
};

enum class LogitRows {
  Last, // of the last token, to continue the sequence
  All   // of every token, to score it; nothing is generated
};

struct SequenceRequest {
  std::vector<int32_t> ids;
  int32_t maxNewTokens = 0; // cut to what the context leaves; 0 with LogitRows::All
  LogitRows rows = LogitRows::Last;
};

// A sequence as the scheduler sees it. 0 < promptTokens <= ids.size(), 0 <= computed <= ids.size() <= context.
struct Sequence {
  enum class State { Free, Waiting, Running };
  SequenceId id = -1;
  State state = State::Free;
  std::vector<int32_t> ids; // prompt and answer; reserved to the longest it can become
  int32_t promptTokens = 0;
  int32_t maxNewTokens = 0;
  LogitRows rows = LogitRows::Last;
  int32_t computed = 0; // positions that the KV pages and the recurrent state hold
  int32_t slot = -1;    // while running

  int32_t pending() const { return static_cast<int32_t>(ids.size()) - computed; }
  int32_t newTokens() const { return static_cast<int32_t>(ids.size()) - promptTokens; }
};

// Row r of the planned step's logits.
struct PlannedRow {
  SequenceId id;
  int32_t entry;    // index for sequence()
  int32_t position; // of the token whose logits these are
  bool samples;     // the next token is wanted
};

// The tokens of one sequence in the planned step.
struct PlannedSpan {
  SequenceId id;
  int32_t entry;
  int32_t firstRow;      // row of the batch
  int32_t firstPosition; // in the sequence
  int32_t tokens;
  int32_t firstLogitRow;
  int32_t logitRows;
  int32_t slot;
};

class Scheduler {
public:
  explicit Scheduler(const SchedulerLimits &limits);

  // Errors name both numbers: a prompt beyond the context, an id outside the vocabulary, more pages than there are.
  StatusOr<SequenceId> add(SequenceRequest request);
  // Forgets the sequence and frees its pages; false when it is unknown or has finished. Not between plan and advance.
  bool cancel(SequenceId id);
  bool idle() const { return waiting_.empty() && running_.empty(); }
  bool full() const { return static_cast<int32_t>(waiting_.size()) >= limits_.maxWaiting; }

  // The next batch, or null when there is nothing to do. Valid until the next plan.
  const llmc_batch *plan();
  std::span<const PlannedRow> plannedRows() const { return rows_; }
  std::span<const PlannedSpan> plannedSpans() const { return spans_; }
  // The planned step was computed. Sequences that only wanted to be scored and are done finish here.
  void advance();
  // After advance: the token that follows a planned row that samples. The sequence finishes when `last`, when it has
  // all its new tokens or when the context is full; true when it finished.
  bool append(int32_t entry, int32_t token, bool last);
  // After advance, instead of append: gives the sequence up.
  void drop(int32_t entry) { finish(entry); }

  const Sequence &sequence(int32_t entry) const { return entries_[static_cast<size_t>(entry)]; }
  int32_t numEntries() const { return static_cast<int32_t>(entries_.size()); }
  // The entry of a waiting or running sequence, or -1.
  int32_t entryOf(SequenceId id) const;
  const SchedulerLimits &limits() const { return limits_; }
  // 0 = maxTokens.
  void setChunkTokens(int32_t chunkTokens);
  // Every rule above and of KvPages, for tests.
  Status check() const;

private:
  Status checkRequest(const SequenceRequest &request) const;
  int32_t pagesFor(const Sequence &sequence) const;
  void admit();
  void planDecode();
  void planPrefill();
  void take(int32_t entry, int32_t tokens);
  void finish(int32_t entry);

  SchedulerLimits limits_;
  KvPages pages_;
  std::vector<Sequence> entries_;
  std::vector<int32_t> freeEntries_; // stacks
  std::vector<int32_t> freeSlots_;
  std::vector<int32_t> waiting_; // in the order of arrival
  std::vector<int32_t> running_; // in the order of admission
  SequenceId nextId_ = 0;
  bool planned_ = false;

  BatchArrays arrays_; // as large as a step may be
  llmc_batch batch_ = {};
  std::vector<PlannedRow> rows_;
  std::vector<PlannedSpan> spans_;
};

} // namespace llmc
