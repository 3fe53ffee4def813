// Admission, planning and bookkeeping of the scheduler. Every vector of the step path has its full capacity from the
// start.
#include "runtime/engine/Scheduler.h"
#include <algorithm>
#include <cassert>
#include <string>

namespace llmc {
namespace {

int32_t pagesOf(int32_t positions, int32_t pageTokens) { return pageTokens > 0 ? (positions - 1) / pageTokens + 1 : 0; }
std::string str(int64_t n) { return std::to_string(n); }
size_t index(int32_t i) { return static_cast<size_t>(i); }
int32_t count(const auto &v) { return static_cast<int32_t>(v.size()); }

} // namespace

Scheduler::Scheduler(const SchedulerLimits &limits)
    : limits_(limits), pages_(limits.numPages, limits.maxSequences, pagesOf(limits.context, limits.pageTokens)),
      entries_(index(limits.maxSequences + limits.maxWaiting)) {
  setChunkTokens(limits.chunkTokens);
  for (int32_t entry = count(entries_) - 1; entry >= 0; --entry)
    freeEntries_.push_back(entry);
  for (int32_t slot = limits.maxSequences - 1; slot >= 0; --slot)
    freeSlots_.push_back(slot);
  waiting_.reserve(entries_.size());
  running_.reserve(index(limits.maxSequences));
  rows_.reserve(index(limits.maxLogitRows));
  spans_.reserve(index(limits.maxSequences));
  for (std::vector<int32_t> *perToken : {&arrays_.tokens, &arrays_.positions, &arrays_.tokenSequence})
    perToken->resize(index(limits.maxTokens));
  arrays_.queryStart.resize(index(limits.maxSequences) + 1);
  arrays_.length.resize(index(limits.maxSequences));
  arrays_.pageTableStride = pages_.pagesPerSlot();
  arrays_.pageTable.resize(index(limits.maxSequences) * index(arrays_.pageTableStride));
  arrays_.stateSlots.resize(index(limits.maxSequences));
  arrays_.logitRows.resize(index(limits.maxLogitRows));
  batch_ = arrays_.view();
}

void Scheduler::setChunkTokens(int32_t chunkTokens) {
  limits_.chunkTokens = chunkTokens <= 0 ? limits_.maxTokens : std::min(chunkTokens, limits_.maxTokens);
}

Status Scheduler::checkRequest(const SequenceRequest &request) const {
  if (request.ids.empty())
    return Status::error("the prompt has 0 tokens, at least 1 is needed");
  if (request.ids.size() > index(limits_.context))
    return Status::error("the prompt has " + std::to_string(request.ids.size()) + " tokens, the context is " +
                         str(limits_.context) + "; shorten it or compile with a larger --context");
  bool scores = request.rows == LogitRows::All;
  if (scores != (request.maxNewTokens == 0) || request.maxNewTokens < 0)
    return Status::error("max new tokens is " + str(request.maxNewTokens) + ", expected " +
                         (scores ? "0 where every position is scored" : "at least 1"));
  if (!scores && count(request.ids) == limits_.context)
    return Status::error("the prompt has " + std::to_string(request.ids.size()) + " tokens, the context is " +
                         str(limits_.context) +
                         ", which leaves no room for an answer; shorten it or compile with a "
                         "larger --context");
  for (size_t i = 0; i < request.ids.size(); ++i)
    if (request.ids[i] < 0 || request.ids[i] >= limits_.vocabulary)
      return Status::error("token " + std::to_string(i) + " of the prompt is " + str(request.ids[i]) +
                           ", the vocabulary has " + str(limits_.vocabulary) + " ids");
  if (full())
    return Status::error(str(count(waiting_)) + " sequences are waiting, limit " + str(limits_.maxWaiting) +
                         "; try again later");
  return {};
}

StatusOr<SequenceId> Scheduler::add(SequenceRequest request) {
  LLMC_RETURN_IF_ERROR(checkRequest(request));
  int32_t entry = freeEntries_.back();
  Sequence &sequence = entries_[index(entry)];
  sequence = {};
  sequence.promptTokens = count(request.ids);
  sequence.maxNewTokens = std::min(request.maxNewTokens, limits_.context - sequence.promptTokens);
  sequence.rows = request.rows;
  sequence.ids = std::move(request.ids);
  if (int32_t needed = pagesFor(sequence); needed > limits_.numPages)
    return Status::error("a sequence of " + str(sequence.promptTokens) + " and " + str(sequence.maxNewTokens) +
                         " tokens needs " + str(needed) + " KV pages, there are " + str(limits_.numPages) +
                         "; ask for fewer tokens or compile with a smaller --context");
  sequence.ids.reserve(index(sequence.promptTokens + sequence.maxNewTokens));
  sequence.id = nextId_++;
  sequence.state = Sequence::State::Waiting;
  freeEntries_.pop_back();
  waiting_.push_back(entry);
  return sequence.id;
}

bool Scheduler::cancel(SequenceId id) {
  assert(!planned_ && "a planned step must be computed first");
  int32_t entry = entryOf(id);
  if (entry < 0)
    return false;
  finish(entry);
  return true;
}

int32_t Scheduler::entryOf(SequenceId id) const {
  for (const std::vector<int32_t> *list : {&running_, &waiting_})
    for (int32_t entry : *list)
      if (entries_[index(entry)].id == id)
        return entry;
  return -1;
}

// The last token of an answer is never fed back, so its position needs no page.
int32_t Scheduler::pagesFor(const Sequence &sequence) const {
  return pagesOf(sequence.promptTokens + std::max(0, sequence.maxNewTokens - 1), limits_.pageTokens);
}

// Strictly in order: a large sequence at the front is not overtaken for ever by small ones.
void Scheduler::admit() {
  size_t admitted = 0;
  for (; admitted < waiting_.size() && !freeSlots_.empty(); ++admitted) {
    int32_t entry = waiting_[admitted];
    Sequence &sequence = entries_[index(entry)];
    int32_t slot = freeSlots_.back();
    if (!pages_.assign(slot, pagesFor(sequence)))
      break;
    freeSlots_.pop_back();
    sequence.slot = slot;
    sequence.state = Sequence::State::Running;
    running_.push_back(entry);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(admitted));
}

const llmc_batch *Scheduler::plan() {
  assert(!planned_ && "the planned step was not advanced");
  admit();
  batch_.num_tokens = batch_.num_sequences = batch_.num_logit_rows = 0;
  rows_.clear();
  spans_.clear();
  planDecode();
  planPrefill();
  planned_ = batch_.num_tokens > 0;
  return planned_ ? &batch_ : nullptr;
}

// All of them fit: each came to generate through a prompt that ended in a step beside all the others, with a row each.
void Scheduler::planDecode() {
  for (int32_t entry : running_)
    if (entries_[index(entry)].newTokens() > 0)
      take(entry, 1);
}

void Scheduler::planPrefill() {
  for (int32_t entry : running_) {
    const Sequence &sequence = entries_[index(entry)];
    if (sequence.newTokens() > 0)
      continue;
    int32_t tokens = std::min({sequence.pending(), limits_.chunkTokens, limits_.maxTokens - batch_.num_tokens});
    int32_t rowsLeft = limits_.maxLogitRows - batch_.num_logit_rows;
    if (sequence.rows == LogitRows::All)
      tokens = std::min(tokens, rowsLeft);
    else if (rowsLeft == 0 && tokens == sequence.pending())
      --tokens; // the token whose logits are wanted waits for a row
    if (tokens > 0)
      take(entry, tokens);
  }
}

// Puts the next `tokens` tokens of the sequence into the batch.
void Scheduler::take(int32_t entry, int32_t tokens) {
  const Sequence &sequence = entries_[index(entry)];
  int32_t s = batch_.num_sequences++;
  bool reachesEnd = tokens == sequence.pending();
  PlannedSpan span{sequence.id, entry, batch_.num_tokens, sequence.computed, tokens, batch_.num_logit_rows, 0, sequence.slot};
  for (int32_t i = 0; i < tokens; ++i) {
    int32_t t = batch_.num_tokens++;
    int32_t position = sequence.computed + i;
    arrays_.tokens[index(t)] = sequence.ids[index(position)];
    arrays_.positions[index(t)] = position;
    arrays_.tokenSequence[index(t)] = s;
    bool samples = sequence.rows == LogitRows::Last && reachesEnd && i + 1 == tokens;
    if (!samples && sequence.rows == LogitRows::Last)
      continue;
    arrays_.logitRows[index(batch_.num_logit_rows++)] = t;
    rows_.push_back({sequence.id, entry, position, samples});
    ++span.logitRows;
  }
  arrays_.queryStart[index(s)] = span.firstRow;
  arrays_.queryStart[index(s) + 1] = batch_.num_tokens;
  arrays_.length[index(s)] = sequence.computed + tokens;
  arrays_.stateSlots[index(s)] = sequence.slot;
  std::span<const int32_t> table = pages_.table(sequence.slot);
  std::copy(table.begin(), table.end(),
            arrays_.pageTable.begin() + static_cast<std::ptrdiff_t>(s) * pages_.pagesPerSlot());
  spans_.push_back(span);
}

void Scheduler::advance() {
  assert(planned_ && "nothing was planned");
  planned_ = false;
  for (const PlannedSpan &span : spans_) {
    Sequence &sequence = entries_[index(span.entry)];
    sequence.computed += span.tokens;
    if (sequence.rows == LogitRows::All && sequence.pending() == 0)
      finish(span.entry);
  }
}

bool Scheduler::append(int32_t entry, int32_t token, bool last) {
  Sequence &sequence = entries_[index(entry)];
  assert(sequence.state == Sequence::State::Running && sequence.pending() == 0 && "only a computed sequence grows");
  sequence.ids.push_back(token);
  if (!last && sequence.newTokens() < sequence.maxNewTokens)
    return false;
  finish(entry);
  return true;
}

// The ids stay readable until the entry is used again.
void Scheduler::finish(int32_t entry) {
  Sequence &sequence = entries_[index(entry)];
  std::vector<int32_t> &list = sequence.state == Sequence::State::Running ? running_ : waiting_;
  list.erase(std::find(list.begin(), list.end(), entry));
  if (sequence.state == Sequence::State::Running) {
    pages_.release(sequence.slot);
    freeSlots_.push_back(sequence.slot);
  }
  sequence.slot = -1;
  sequence.state = Sequence::State::Free;
  freeEntries_.push_back(entry);
}

Status Scheduler::check() const {
  LLMC_RETURN_IF_ERROR(pages_.check());
  if (running_.size() + freeSlots_.size() != index(limits_.maxSequences))
    return Status::error(str(count(running_)) + " running and " + str(count(freeSlots_)) + " free slots, of " +
                         str(limits_.maxSequences));
  if (running_.size() + waiting_.size() + freeEntries_.size() != entries_.size())
    return Status::error("an entry was lost");
  int32_t pages = 0;
  SequenceId before = -1;
  for (const std::vector<int32_t> *list : {&running_, &waiting_})
    for (int32_t entry : *list) {
      const Sequence &sequence = entries_[index(entry)];
      bool running = list == &running_;
      if (sequence.state != (running ? Sequence::State::Running : Sequence::State::Waiting))
        return Status::error("sequence " + str(sequence.id) + " is in the wrong list");
      if (sequence.id <= before)
        return Status::error("sequence " + str(sequence.id) + " overtook " + str(before));
      before = sequence.id;
      if (sequence.computed < 0 || sequence.pending() < 0 || count(sequence.ids) > limits_.context)
        return Status::error("sequence " + str(sequence.id) + " has " + str(sequence.computed) + " of " +
                             str(count(sequence.ids)) + " tokens computed");
      if (running && count(pages_.table(sequence.slot)) != pagesFor(sequence))
        return Status::error("sequence " + str(sequence.id) + " owns a wrong number of pages");
      pages += running ? pagesFor(sequence) : 0;
    }
  if (pages + pages_.freePages() != limits_.numPages)
    return Status::error(str(pages) + " pages used and " + str(pages_.freePages()) + " free, of " +
                         str(limits_.numPages));
  return {};
}

} // namespace llmc
