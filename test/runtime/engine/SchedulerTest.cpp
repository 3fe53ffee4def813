// Scheduler: batches worked out by hand, refusals with their numbers, and the simulation of guide-length runs: random
// arrivals and cancels against a model whose answers are known, every rule checked after every step.
#include "runtime/engine/Scheduler.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace llmc {
namespace {

SchedulerLimits smallLimits() {
  SchedulerLimits limits;
  limits.vocabulary = 97;
  limits.context = 40;
  limits.maxTokens = 8;
  limits.maxSequences = 3;
  limits.maxLogitRows = 4;
  limits.pageTokens = 4;
  limits.numPages = 12;
  limits.maxWaiting = 5;
  return limits;
}

std::vector<int32_t> prompt(int32_t tokens) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < tokens; ++i)
    ids.push_back(i % 97);
  return ids;
}

std::string refusal(Scheduler &scheduler, SequenceRequest request) {
  StatusOr<SequenceId> id = scheduler.add(std::move(request));
  return id.ok() ? "accepted" : id.status().message();
}

TEST(Scheduler, RefusalsNameBothNumbers) {
  Scheduler scheduler(smallLimits());
  EXPECT_EQ(refusal(scheduler, {prompt(41), 1}),
            "the prompt has 41 tokens, the context is 40; shorten it or compile with a larger --context");
  EXPECT_EQ(refusal(scheduler, {prompt(40), 1}),
            "the prompt has 40 tokens, the context is 40, which leaves no room for an answer; shorten it or compile "
            "with a larger --context");
  EXPECT_EQ(refusal(scheduler, {{}, 1}), "the prompt has 0 tokens, at least 1 is needed");
  EXPECT_EQ(refusal(scheduler, {{1, 97}, 1}), "token 1 of the prompt is 97, the vocabulary has 97 ids");
  EXPECT_EQ(refusal(scheduler, {{-1}, 1}), "token 0 of the prompt is -1, the vocabulary has 97 ids");
  EXPECT_EQ(refusal(scheduler, {{1}, 0}), "max new tokens is 0, expected at least 1");
  EXPECT_EQ(refusal(scheduler, {{1}, 3, LogitRows::All}),
            "max new tokens is 3, expected 0 where every position is scored");
  SchedulerLimits few = smallLimits();
  few.numPages = 9;
  Scheduler scarce(few);
  EXPECT_EQ(refusal(scarce, {prompt(20), 100}), // 20 + 20 - 1 positions
            "a sequence of 20 and 20 tokens needs 10 KV pages, there are 9; ask for fewer tokens or compile with a "
            "smaller --context");
  EXPECT_TRUE(scarce.idle());
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(refusal(scheduler, {prompt(2), 1}), "accepted");
  EXPECT_EQ(refusal(scheduler, {prompt(2), 1}), "5 sequences are waiting, limit 5; try again later");
}

TEST(Scheduler, DecodeFirstThenChunksOfPrompts) {
  SchedulerLimits limits = smallLimits();
  limits.chunkTokens = 5;
  Scheduler scheduler(limits);
  ASSERT_TRUE(scheduler.add({prompt(3), 4}).ok());
  ASSERT_TRUE(scheduler.add({prompt(9), 2}).ok());
  const llmc_batch *batch = scheduler.plan();
  ASSERT_NE(batch, nullptr); // 3 tokens and a chunk of 5
  EXPECT_EQ(batch->num_tokens, 8);
  EXPECT_EQ(batch->num_sequences, 2);
  EXPECT_EQ(batch->num_logit_rows, 1);
  EXPECT_EQ(batch->logit_rows[0], 2);
  EXPECT_EQ(batch->query_start[1], 3);
  EXPECT_EQ(batch->length[1], 5);
  scheduler.advance();
  EXPECT_FALSE(scheduler.append(scheduler.plannedRows()[0].entry, 50, false));
  batch = scheduler.plan(); // one token of the first, the other 4 of the second
  EXPECT_EQ(batch->num_tokens, 5);
  EXPECT_EQ(batch->tokens[0], 50);
  EXPECT_EQ(batch->positions[0], 3);
  EXPECT_EQ(batch->positions[1], 5);
  EXPECT_EQ(batch->length[1], 9);
  EXPECT_EQ(batch->num_logit_rows, 2);
  EXPECT_NE(batch->page_table[0], batch->page_table[batch->page_table_stride]);
}

TEST(Scheduler, AdmissionKeepsTheOrder) {
  Scheduler scheduler(smallLimits());               // 12 pages
  ASSERT_TRUE(scheduler.add({prompt(30), 3}).ok()); // 32 positions, 8 pages
  ASSERT_TRUE(scheduler.add({prompt(20), 1}).ok()); // 5 pages: waits
  ASSERT_TRUE(scheduler.add({prompt(4), 1}).ok());  // would fit, must not overtake
  ASSERT_NE(scheduler.plan(), nullptr);
  EXPECT_EQ(scheduler.plannedSpans().size(), 1u);
  scheduler.advance();
  ASSERT_TRUE(scheduler.cancel(0));
  EXPECT_FALSE(scheduler.cancel(0));
  ASSERT_NE(scheduler.plan(), nullptr);
  EXPECT_EQ(scheduler.plannedSpans()[0].id, 1);
  EXPECT_TRUE(scheduler.check().ok());
}

TEST(Scheduler, PromptsWaitWhereTheStepIsTooSmall) {
  SchedulerLimits limits = smallLimits();
  limits.maxTokens = limits.maxLogitRows = 2;
  Scheduler scheduler(limits);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(scheduler.add({prompt(1), 12}).ok());
  std::map<SequenceId, std::vector<int>> steps;
  for (int step = 0; scheduler.plan(); ++step) {
    scheduler.advance();
    std::vector<PlannedRow> rows(scheduler.plannedRows().begin(), scheduler.plannedRows().end());
    for (const PlannedRow &row : rows) {
      steps[row.id].push_back(step);
      scheduler.append(row.entry, 1, false);
    }
  }
  EXPECT_EQ(steps[0].back(), 11); // two generate without a gap
  EXPECT_EQ(steps[1].back(), 11);
  EXPECT_EQ(steps[2].front(), 12); // the third then follows
}

TEST(Scheduler, TheContextEndsASequence) {
  Scheduler scheduler(smallLimits());
  ASSERT_TRUE(scheduler.add({prompt(38), 100}).ok());
  int appended = 0;
  while (scheduler.plan()) {
    scheduler.advance();
    for (const PlannedRow &row : scheduler.plannedRows()) {
      scheduler.append(row.entry, 1, false);
      ++appended;
    }
  }
  EXPECT_EQ(appended, 2); // positions 38 and 39
  EXPECT_TRUE(scheduler.idle());
}

// A stream and what the fake model says about it.
struct Stream {
  std::vector<int32_t> ids;
  size_t promptTokens;
  int32_t maxNewTokens;
  bool scores;
  int rowsSeen = 0;
  int64_t arrived = 0;
};

// The model of the simulation: what was written into each page, hashes of what a row can see through its table, and the
// same hash carried along in the state slot of a sequence.
class Simulation {
public:
  explicit Simulation(uint32_t seed) : random_(seed), limits_(randomLimits()), scheduler_(limits_) {
    pages_.resize(static_cast<size_t>(limits_.numPages) * static_cast<size_t>(limits_.pageTokens));
    slots_.assign(static_cast<size_t>(limits_.maxSequences), ~uint64_t(0)); // what never started must never count
  }

  void run(int steps) {
    for (step_ = 0; step_ < steps && !::testing::Test::HasFatalFailure(); ++step_) {
      arrive();
      cancelSome();
      oneStep();
    }
    for (; !scheduler_.idle() && !::testing::Test::HasFatalFailure(); ++step_)
      oneStep();
    EXPECT_TRUE(streams_.empty()) << streams_.size() << " streams never finished";
  }
  int64_t finished() const { return finished_; }

private:
  int32_t below(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }

  SchedulerLimits randomLimits() {
    SchedulerLimits limits;
    limits.vocabulary = 97;
    limits.context = 5 + below(60);
    limits.maxTokens = 1 + below(20);
    limits.maxSequences = 1 + below(6);
    limits.maxLogitRows = 1 + below(limits.maxTokens);
    limits.pageTokens = 1 + below(9);
    limits.numPages = 1 + below(40);
    if (below(4) == 0) // recurrent state alone
      limits.pageTokens = limits.numPages = 0;
    limits.chunkTokens = below(10);
    limits.maxWaiting = 1 + below(20);
    return limits;
  }

  void arrive() {
    if (below(3) != 0)
      return;
    Stream stream;
    stream.scores = below(5) == 0;
    stream.maxNewTokens = stream.scores ? 0 : 1 + below(30);
    for (int32_t i = 1 + below(limits_.context + 2); i > 0; --i)
      stream.ids.push_back(below(98)); // 97 is outside the vocabulary
    stream.promptTokens = stream.ids.size();
    stream.arrived = step_;
    StatusOr<SequenceId> id =
        scheduler_.add({stream.ids, stream.maxNewTokens, stream.scores ? LogitRows::All : LogitRows::Last});
    if (id.ok())
      streams_[*id] = stream;
  }

  void cancelSome() {
    if (below(20) != 0 || streams_.empty())
      return;
    auto at = std::next(streams_.begin(), below(static_cast<int32_t>(streams_.size())));
    EXPECT_TRUE(scheduler_.cancel(at->first));
    EXPECT_FALSE(scheduler_.cancel(at->first));
    streams_.erase(at);
  }

  void oneStep() {
    const llmc_batch *batch = scheduler_.plan();
    ASSERT_EQ(batch == nullptr, scheduler_.idle()) << "sequences are there and nothing is planned";
    if (batch) {
      ASSERT_NO_FATAL_FAILURE(checkBatch(*batch));
      std::vector<uint64_t> states = compute(*batch);
      std::vector<PlannedRow> rows(scheduler_.plannedRows().begin(), scheduler_.plannedRows().end());
      scheduler_.advance();
      ASSERT_NO_FATAL_FAILURE(checkNobodyWaits(rows));
      for (size_t r = 0; r < rows.size(); ++r)
        ASSERT_NO_FATAL_FAILURE(answer(rows[r], states[static_cast<size_t>(batch->logit_rows[r])]));
    }
    Status status = scheduler_.check();
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void checkBatch(const llmc_batch &batch) {
    ASSERT_LE(batch.num_tokens, limits_.maxTokens);
    ASSERT_LE(batch.num_sequences, limits_.maxSequences);
    ASSERT_LE(batch.num_logit_rows, limits_.maxLogitRows);
    ASSERT_EQ(batch.query_start[0], 0);
    ASSERT_EQ(batch.query_start[batch.num_sequences], batch.num_tokens);
    std::map<int32_t, int32_t> owner, slotOwner;
    for (int32_t s = 0; s < batch.num_sequences; ++s) {
      ASSERT_LT(batch.query_start[s], batch.query_start[s + 1]);
      for (int32_t t = batch.query_start[s]; t < batch.query_start[s + 1]; ++t) {
        ASSERT_EQ(batch.token_sequence[t], s);
        ASSERT_EQ(batch.positions[t], batch.length[s] - (batch.query_start[s + 1] - t));
      }
      int32_t slot = batch.state_slots[s];
      ASSERT_TRUE(slot >= 0 && slot < limits_.maxSequences);
      ASSERT_TRUE(slotOwner.emplace(slot, s).second) << "slot " << slot << " is shared";
      for (int32_t p = 0; limits_.pageTokens > 0 && p <= (batch.length[s] - 1) / limits_.pageTokens; ++p) {
        int32_t page = batch.page_table[s * batch.page_table_stride + p];
        ASSERT_TRUE(page >= 0 && page < limits_.numPages);
        ASSERT_TRUE(owner.emplace(page, s).second) << "page " << page << " is shared";
      }
    }
    for (int32_t r = 0; r < batch.num_logit_rows; ++r) {
      ASSERT_TRUE(batch.logit_rows[r] >= 0 && batch.logit_rows[r] < batch.num_tokens);
      if (r > 0)
        ASSERT_GT(batch.logit_rows[r], batch.logit_rows[r - 1]);
    }
  }

  // Every stream that generates gets its next token in every step.
  void checkNobodyWaits(const std::vector<PlannedRow> &rows) {
    for (const auto &[id, stream] : streams_) {
      auto isItsRow = [id = id](const PlannedRow &row) { return row.id == id; };
      if (stream.ids.size() > stream.promptTokens)
        ASSERT_EQ(std::count_if(rows.begin(), rows.end(), isItsRow), 1) << "stream " << id;
    }
  }

  uint64_t &place(const llmc_batch &batch, int32_t s, int32_t position) {
    int32_t page = batch.page_table[s * batch.page_table_stride + position / limits_.pageTokens];
    return pages_[static_cast<size_t>(page * limits_.pageTokens + position % limits_.pageTokens)];
  }

  static uint64_t mix(uint64_t a, uint64_t b) { return (a * 0x9e3779b97f4a7c15u + b + 1) ^ (a >> 29); }

  std::vector<uint64_t> compute(const llmc_batch &batch) {
    std::vector<uint64_t> states = recur(batch);
    if (limits_.pageTokens == 0)
      return states;
    for (int32_t t = 0; t < batch.num_tokens; ++t)
      place(batch, batch.token_sequence[t], batch.positions[t]) = entryOf(batch, t);
    for (int32_t t = 0; t < batch.num_tokens; ++t) {
      uint64_t state = 0;
      for (int32_t p = 0; p <= batch.positions[t]; ++p)
        state = mix(state, place(batch, batch.token_sequence[t], p));
      EXPECT_EQ(states[static_cast<size_t>(t)], state) << "the state slot holds another stream's state";
    }
    return states;
  }

  static uint64_t entryOf(const llmc_batch &batch, int32_t t) {
    return mix(static_cast<uint64_t>(batch.tokens[t]), static_cast<uint64_t>(batch.positions[t]));
  }

  // The state after every row.
  std::vector<uint64_t> recur(const llmc_batch &batch) {
    std::vector<uint64_t> states;
    for (int32_t s = 0; s < batch.num_sequences; ++s) {
      int32_t first = batch.query_start[s], end = batch.query_start[s + 1];
      uint64_t &slot = slots_[static_cast<size_t>(batch.state_slots[s])];
      slot = end - first == batch.length[s] ? 0 : slot;
      for (int32_t t = first; t < end; ++t)
        states.push_back(slot = mix(slot, entryOf(batch, t)));
    }
    return states;
  }

  void answer(const PlannedRow &row, uint64_t state) {
    auto at = streams_.find(row.id);
    ASSERT_NE(at, streams_.end()) << "a row of a stream that is gone";
    Stream &stream = at->second;
    uint64_t expected = 0;
    ASSERT_LT(static_cast<size_t>(row.position), stream.ids.size());
    for (int32_t p = 0; p <= row.position; ++p)
      expected =
          mix(expected, mix(static_cast<uint64_t>(stream.ids[static_cast<size_t>(p)]), static_cast<uint64_t>(p)));
    ASSERT_EQ(state, expected) << "the row saw another stream's pages or state";
    ASSERT_EQ(row.samples, !stream.scores);
    if (stream.scores) {
      ASSERT_EQ(row.position, stream.rowsSeen++) << "a scored position is missing or repeated";
      if (static_cast<size_t>(stream.rowsSeen) == stream.ids.size())
        finish(at);
      return;
    }
    ASSERT_EQ(static_cast<size_t>(row.position) + 1, stream.ids.size());
    auto token = static_cast<int32_t>(state % 97);
    stream.ids.push_back(token);
    auto made = static_cast<int32_t>(stream.ids.size() - stream.promptTokens);
    bool full = static_cast<int32_t>(stream.ids.size()) == limits_.context;
    bool last = token == 7;
    bool finished = scheduler_.append(row.entry, token, last);
    ASSERT_EQ(finished, last || made == stream.maxNewTokens || full);
    if (finished)
      finish(at);
  }

  // Everything ahead of a stream is bounded: so many streams of at most a context of steps each.
  void finish(std::map<SequenceId, Stream>::iterator at) {
    int64_t ahead = limits_.maxWaiting + limits_.maxSequences + 1;
    EXPECT_LE(step_ - at->second.arrived, ahead * limits_.context * 2);
    ++finished_;
    streams_.erase(at);
  }

  std::mt19937 random_;
  SchedulerLimits limits_;
  Scheduler scheduler_;
  std::vector<uint64_t> pages_, slots_;
  std::map<SequenceId, Stream> streams_;
  int64_t step_ = 0;
  int64_t finished_ = 0;
};

TEST(Scheduler, Simulation) {
  int64_t finished = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.run(600);
    finished += simulation.finished();
    if (HasFailure())
      return;
  }
  EXPECT_GT(finished, 10'000); // the simulation is not idle
}

} // namespace
} // namespace llmc
