// Engine over the fake step program: streams against answers known without it, whatever the batch, chunks and threads.
#include "runtime/engine/Engine.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/artifact/FakeModel.h"
#include "test/runtime/engine/CountedAllocation.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>

namespace llmc {
namespace {

using namespace test;

std::vector<int32_t> prompt(int32_t tokens, int32_t seed) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < tokens; ++i)
    ids.push_back(20 + (i * 31 + seed * 17) % 70); // neither the NaN token nor the end
  return ids;
}

// Greedy continuation by the fake model itself.
std::vector<int32_t> expectedAnswer(std::vector<int32_t> ids, int32_t tokens) {
  std::vector<int32_t> answer;
  for (int32_t i = 0; i < tokens; ++i) {
    std::vector<float> logits = fakeLogitsAfter(ids);
    auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    ids.push_back(best);
    answer.push_back(best);
    if (best == 7 || best == fakeNanToken)
      break;
  }
  return answer;
}

class EngineTest : public ::testing::Test {
protected:
  std::unique_ptr<Engine> load(const EngineOptions &options = {}, const Manifest &manifest = fakeManifest()) {
    writeFakeArtifact(folder, manifest, fakeFiles());
    StatusOr<std::unique_ptr<Engine>> engine = Engine::load(folder, options);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.status().message());
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/fake.llmc";
};

struct Answer {
  std::vector<int32_t> ids;
  Finish finish = Finish::None;
};

std::map<SequenceId, Answer> drain(Engine &engine) {
  std::map<SequenceId, Answer> answers;
  while (!engine.idle())
    for (const Event &event : engine.step()) {
      Answer &answer = answers[event.sequence];
      EXPECT_EQ(answer.finish, Finish::None) << "an event after the last";
      if (event.finish != Finish::Failed)
        answer.ids.push_back(event.token);
      answer.finish = event.finish;
    }
  return answers;
}

TEST_F(EngineTest, StreamsAreRightForAnyThreadsChunksAndCompany) {
  for (const auto &[threads, manifest] : {std::pair(1, fakeManifest()), std::pair(2, fakeRecurrentManifest()),
                                          std::pair(2, fakeManifest()), std::pair(5, fakeRecurrentManifest())})
    for (int32_t chunk : {0, 1, 3, 7})
      for (int32_t sequences : {1, 2, 4}) {
        std::unique_ptr<Engine> engine = load({threads, sequences, chunk}, manifest);
        ASSERT_TRUE(engine);
        std::map<SequenceId, std::vector<int32_t>> expected;
        for (int32_t i = 0; i < 7; ++i) {
          std::vector<int32_t> ids = prompt(1 + i * 9, i);
          StatusOr<SequenceId> id = engine->add({ids, 5 + i});
          ASSERT_TRUE(id.ok()) << id.status().message();
          expected[*id] = expectedAnswer(ids, 5 + i);
        }
        std::map<SequenceId, Answer> answers = drain(*engine);
        for (const auto &[id, ids] : expected)
          EXPECT_EQ(answers[id].ids, ids) << threads << " threads, chunks of " << chunk << ", sequence " << id;
      }
}

TEST_F(EngineTest, WhyASequenceEnds) {
  std::unique_ptr<Engine> engine = load();
  ASSERT_TRUE(engine);
  std::vector<int32_t> ids = prompt(3, 1);
  std::vector<int32_t> answer = expectedAnswer(ids, 6);
  ASSERT_EQ(answer.size(), 6u);
  StatusOr<SequenceId> byLength = engine->add({ids, 6});
  StatusOr<SequenceId> byStop = engine->add({ids, 6, {}, {answer[2]}});
  StatusOr<SequenceId> byContext = engine->add({prompt(98, 1), 50, {}, {}, true});
  std::map<SequenceId, Answer> answers = drain(*engine);
  EXPECT_EQ(answers[*byLength].finish, Finish::Length);
  EXPECT_EQ(answers[*byLength].ids, answer);
  EXPECT_EQ(answers[*byStop].finish, Finish::Stop);
  EXPECT_EQ(answers[*byStop].ids.size(), 3u); // the stop id is the last
  EXPECT_EQ(answers[*byContext].finish, Finish::Length);
  EXPECT_EQ(answers[*byContext].ids.size(), 2u);

  Manifest manifest = fakeManifest();
  manifest.specialIds.eos = {answer[3]};
  engine = load({}, manifest);
  StatusOr<SequenceId> byEnd = engine->add({ids, 6});
  StatusOr<SequenceId> deaf = engine->add({ids, 6, {}, {}, /*ignoreEos=*/true});
  answers = drain(*engine);
  EXPECT_EQ(answers[*byEnd].finish, Finish::End);
  EXPECT_EQ(answers[*byEnd].ids.back(), answer[3]);
  EXPECT_LE(answers[*byEnd].ids.size(), 4u);
  EXPECT_EQ(answers[*deaf].ids.size(), 6u);
}

TEST_F(EngineTest, NonFiniteLogitsFailThatSequenceOnly) {
  std::unique_ptr<Engine> engine = load();
  ASSERT_TRUE(engine);
  StatusOr<SequenceId> bad = engine->add({{20, 21, fakeNanToken}, 5});
  StatusOr<SequenceId> good = engine->add({prompt(5, 2), 5});
  std::map<SequenceId, Answer> answers = drain(*engine);
  EXPECT_EQ(answers[*bad].finish, Finish::Failed);
  EXPECT_TRUE(answers[*bad].ids.empty());
  EXPECT_EQ(answers[*good].ids, expectedAnswer(prompt(5, 2), 5));
  EXPECT_EQ(engine->failure({3, -1, 17, Finish::Failed}),
            "sequence 3: the logits at position 17 are not finite; check the weights with llmc verify");
}

TEST_F(EngineTest, SampledStreamsDependOnTheSeedAlone) {
  SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.topP = 0.9;
  sampling.seed = 5;
  std::unique_ptr<Engine> engine = load({1});
  StatusOr<SequenceId> id = engine->add({prompt(9, 1), 20, sampling, {}, true});
  std::vector<int32_t> alone = drain(*engine)[*id].ids;
  engine = load({2, 0, 3});
  ASSERT_TRUE(engine->add({prompt(30, 2), 20, sampling}).ok());
  StatusOr<SequenceId> same = engine->add({prompt(9, 1), 20, sampling, {}, true});
  sampling.seed = 6;
  StatusOr<SequenceId> other = engine->add({prompt(9, 1), 20, sampling, {}, true});
  std::map<SequenceId, Answer> answers = drain(*engine);
  EXPECT_EQ(answers[*same].ids, alone);
  EXPECT_NE(answers[*other].ids, alone);
}

TEST_F(EngineTest, CancelledSequencesAreSilent) {
  std::unique_ptr<Engine> engine = load();
  StatusOr<SequenceId> first = engine->add({prompt(5, 1), 50});
  StatusOr<SequenceId> second = engine->add({prompt(5, 2), 5});
  for (int i = 0; i < 3; ++i)
    ASSERT_FALSE(engine->step().empty());
  EXPECT_TRUE(engine->cancel(*first));
  EXPECT_FALSE(engine->cancel(*first));
  std::map<SequenceId, Answer> answers = drain(*engine);
  EXPECT_EQ(answers.count(*first), 0u);
  EXPECT_EQ(answers.count(*second), 1u);
}

TEST_F(EngineTest, StepAllocatesNothing) {
  std::unique_ptr<Engine> engine = load({2});
  ASSERT_TRUE(engine);
  int64_t before = allocationCount();
  SamplingParams sampling;
  sampling.temperature = 1;
  sampling.topP = 0.9;
  sampling.repetitionPenalty = 1.2;
  for (int32_t i = 0; i < 9; ++i)
    ASSERT_TRUE(engine->add({prompt(1 + 7 * i, i), 20, i % 2 ? sampling : SamplingParams()}).ok());
  if (allocationCount() == before)
    GTEST_SKIP() << "allocations are not counted in this build";
  before = allocationCount();
  int64_t events = 0;
  while (!engine->idle())
    events += static_cast<int64_t>(engine->step().size());
  EXPECT_EQ(allocationCount() - before, 0);
  EXPECT_GT(events, 50);
}

TEST_F(EngineTest, ForwardGivesEveryPositionForAnyChunking) {
  std::vector<std::vector<int32_t>> sequences = {prompt(37, 1), prompt(1, 2), prompt(100, 3),
                                                 prompt(8, 4),  prompt(9, 5), prompt(13, 6)};
  for (bool together : {true, false})
    for (int32_t chunk : {0, 1, 5}) {
      EngineOptions options;
      options.recordHidden = true;
      std::unique_ptr<Engine> engine = load(options, chunk == 1 ? fakeRecurrentManifest() : fakeManifest());
      ASSERT_TRUE(engine);
      std::vector<int32_t> next(sequences.size());
      Status status = engine->forward(sequences, {chunk, together}, [&](const ForwardRows &rows) {
        EXPECT_EQ(rows.firstPosition, next[rows.sequence]);
        for (int32_t r = 0; r < rows.count; ++r) {
          int32_t position = next[rows.sequence]++;
          std::vector<int32_t> ids(sequences[rows.sequence].begin(), sequences[rows.sequence].begin() + position + 1);
          std::vector<float> expected = fakeLogitsAfter(ids);
          EXPECT_EQ(0, std::memcmp(expected.data(), rows.logits.data() + static_cast<size_t>(r) * fakeVocabulary,
                                   fakeVocabulary * sizeof(float)));
          for (int32_t i = 0; i < fakeLayers + 2; ++i)
            EXPECT_EQ(rows.record[(i * rows.recordRows + r) * fakeHidden + 2], fakeRecord(fakeStateAfter(ids), i, 2));
        }
        return Status();
      });
      ASSERT_TRUE(status.ok()) << status.message();
      for (size_t s = 0; s < sequences.size(); ++s)
        EXPECT_EQ(static_cast<size_t>(next[s]), sequences[s].size());
      EXPECT_TRUE(engine->idle());
    }
}

TEST_F(EngineTest, ForwardStopsAtAFailure) {
  std::unique_ptr<Engine> engine = load();
  std::vector<std::vector<int32_t>> sequences = {prompt(30, 1), prompt(101, 2)};
  EXPECT_EQ(engine->forward(sequences, {}, [](const ForwardRows &) { return Status(); }).message(),
            "sequence 1: the prompt has 101 tokens, the context is 100; shorten it or compile with a larger --context");
  EXPECT_TRUE(engine->idle());
  sequences.pop_back();
  EXPECT_EQ(engine->forward(sequences, {}, [](const ForwardRows &) { return Status::error("disk full"); }).message(),
            "disk full");
  EXPECT_TRUE(engine->idle());
  ASSERT_TRUE(engine->add({prompt(3, 1), 2}).ok());
  EXPECT_FALSE(engine->forward(sequences, {}, [](const ForwardRows &) { return Status(); }).ok());
}

TEST_F(EngineTest, OptionsOutOfRange) {
  writeFakeArtifact(folder, fakeManifest(), fakeFiles());
  auto message = [&](const EngineOptions &options) {
    StatusOr<std::unique_ptr<Engine>> engine = Engine::load(folder, options);
    return engine.ok() ? std::string("loaded") : engine.status().message();
  };
  EXPECT_EQ(message({9}), "threads is 9, expected 0 to 8");
  EXPECT_EQ(message({1, 5}),
            "max sequences is 5, the artifact was compiled for 4; compile with a larger --max-sequences");
  EXPECT_EQ(message({1, 0, -1}), "chunk tokens is -1, expected 0 to 67108864");
  std::unique_ptr<Engine> engine = load();
  EXPECT_EQ(engine->add({prompt(3, 1), 0}).status().message(), "max new tokens is 0, expected at least 1");
  EXPECT_EQ(engine->add({prompt(3, 1), 5, {}, {97}}).status().message(),
            "stop id 97 is not in the vocabulary of 97 ids");
}

TEST_F(EngineTest, MemoryIsThePlan) {
  std::unique_ptr<Engine> engine = load({3});
  const Manifest m = fakeManifest();
  // arena + 26 pages + 4 states + 6 rows of 97 floats + scratch of 3 workers
  EXPECT_EQ(engine->allocatedBytes(), m.arenaBytes + 26 * 64 + 4 * 64 + 6 * 97 * 4 + 3 * 64);
  engine = load({1, 1});
  EXPECT_EQ(engine->allocatedBytes(), m.arenaBytes + 13 * 64 + 64 + 6 * 97 * 4 + 64); // one context of 13 pages
}

TEST_F(EngineTest, ALongContextIsFreeWithoutPages) {
  Manifest m = fakeRecurrentManifest();
  m.context = 1 << 20;
  std::unique_ptr<Engine> engine = load({1}, m);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->allocatedBytes(), m.arenaBytes + 4 * 64 + 6 * 97 * 4 + 64);
  std::vector<int32_t> ids = prompt(5000, 3);
  StatusOr<SequenceId> id = engine->add({ids, 3});
  ASSERT_TRUE(id.ok()) << id.status().message();
  EXPECT_EQ(drain(*engine)[*id].ids, expectedAnswer(ids, 3));
}

} // namespace
} // namespace llmc
