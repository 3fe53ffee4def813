// A model that two stages of two ranks share, from its llm form to the logits and tokens of the engines, against the
// same model on one rank.
#include "runtime/engine/RankEngines.h"
#include "test/lib/codegen/cpu/CompiledModel.h"
#include "test/lib/weights/MemoryTensors.h"
#include "test/runtime/artifact/FakeArtifact.h"
#include "test/runtime/support/TemporaryFolder.h"
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <mutex>

using namespace llmc;
using namespace llmc::test;

namespace {

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>> &values) {
  for (const auto &[name, value] : values)
    for (size_t at; (at = text.find("${" + name + "}")) != std::string::npos;)
      text.replace(at, name.size() + 3, value);
  return text;
}

// x + down(relu(up(x))), of which a rank has the rows begin .. begin + N - 1 of up and the same columns of down.
std::string layerText(int64_t begin, int64_t count, bool isShared) {
  return filled(R"mlir(
llm.weight @up : !llm.weight<${N}x32> from [{tensor = "up", rows = array<i64: ${B}, ${E}>}]
llm.weight @down : !llm.weight<32x${N}> from [{tensor = "down", dims = array<i64: 32, 64>, take = array<i64: 0, 32, ${B}, ${E}>}]
func.func private @layer(%x: tensor<?x32xf32>, %up: !llm.weight<${N}x32>, %down: !llm.weight<32x${N}>) -> tensor<?x32xf32> {
  %u = llm.linear %x, %up : tensor<?x32xf32>, !llm.weight<${N}x32> -> tensor<?x${N}xf32>
  %a = llm.activation relu %u : tensor<?x${N}xf32>
  %d = llm.linear %a, %down : tensor<?x${N}xf32>, !llm.weight<32x${N}> -> tensor<?x32xf32>
  ${SUM}
  %y = llm.add %x, %s : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
})mlir",
                {{"SUM", isShared ? "%s = shard.all_reduce %d on @ranks grid_axes = [1] : tensor<?x32xf32> -> "
                                    "tensor<?x32xf32>"
                                  : "%s = llm.scale %d {factor = 1.0 : f32} : tensor<?x32xf32>"},
                 {"B", std::to_string(begin)},
                 {"E", std::to_string(begin + count)},
                 {"N", std::to_string(count)}});
}

std::string callText(const std::string &result, const std::string &input, int64_t count) {
  return filled(R"mlir(
  %up = llm.use_weight @up : !llm.weight<${N}x32>
  %down = llm.use_weight @down : !llm.weight<32x${N}>
  ${R} = call @layer(${I}, %up, %down) : (tensor<?x32xf32>, !llm.weight<${N}x32>, !llm.weight<32x${N}>) -> tensor<?x32xf32>)mlir",
                {{"R", result}, {"I", input}, {"N", std::to_string(count)}});
}

const char *const kEmbedding = R"mlir(
llm.weight @embedding : !llm.weight<40x32> from [{tensor = "embedding"}])mlir";
const char *const kEmbed = R"mlir(
  %e = llm.use_weight @embedding : !llm.weight<40x32>
  %x = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<40x32> -> tensor<?x32xf32>)mlir";

std::string wholeModel() {
  return "module {" + std::string(kEmbedding) + layerText(0, 64, false) + R"mlir(
llm.weight @head : !llm.weight<40x32> from [{tensor = "head"}]
func.func @step(%batch: !llm.batch) -> tensor<?x40xf32> {)mlir" +
         kEmbed + callText("%h", "%x", 64) +
         R"mlir(
  %g = call @layer(%h, %up, %down) : (tensor<?x32xf32>, !llm.weight<64x32>, !llm.weight<32x64>) -> tensor<?x32xf32>
  %w = llm.use_weight @head : !llm.weight<40x32>
  %wanted = llm.select_rows %g, %batch : tensor<?x32xf32>
  %logits = llm.linear %wanted, %w : tensor<?x32xf32>, !llm.weight<40x32> -> tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}})mlir";
}

// Of 64 rows the ranks of the first stage have 32 each, those of the second 48 and 16, and 24 and 16 logits.
std::string modelOf(int stage, int rank) {
  std::string head =
      "module attributes {llmc.ranks = 2 : i64, llmc.stages = 2 : i64, llmc.rank = " + std::to_string(rank) +
      " : i64, llmc.stage = " + std::to_string(stage) + " : i64} {\nshard.grid @ranks(shape = 2x2)";
  if (stage == 0) {
    int64_t count = 32;
    return head + kEmbedding + layerText(rank * 32, count, true) +
           "\nfunc.func @step(%batch: !llm.batch) -> tensor<?x40xf32> {" + kEmbed + callText("%h", "%x", count) +
           R"mlir(
  llm.send %h, %batch {stage = 1 : i64} : tensor<?x32xf32>
  %logits = llm.receive %batch {stage = 1 : i64} : tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}})mlir";
  }
  int64_t count = rank == 0 ? 48 : 16;
  return head + layerText(rank == 0 ? 0 : 48, count, true) +
         filled(R"mlir(
llm.weight @head : !llm.weight<${L}x32> from [{tensor = "head", rows = array<i64: ${B}, ${E}>}]
func.func @step(%batch: !llm.batch) -> tensor<?x40xf32> {
  %x = llm.receive %batch {stage = 0 : i64} : tensor<?x32xf32>${CALL}
  %w = llm.use_weight @head : !llm.weight<${L}x32>
  %wanted = llm.select_rows %g, %batch : tensor<?x32xf32>
  %own = llm.linear %wanted, %w : tensor<?x32xf32>, !llm.weight<${L}x32> -> tensor<?x${L}xf32>
  %logits = llm.all_gather %batch, %own : tensor<?x${L}xf32> {segments = [array<i64: 0, 24, 24, 40>]} -> tensor<?x40xf32>
  llm.send %logits, %batch {stage = 0 : i64} : tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}})mlir",
                {{"CALL", callText("%g", "%x", count)},
                 {"L", rank == 0 ? "24" : "16"},
                 {"B", rank == 0 ? "0" : "24"},
                 {"E", rank == 0 ? "24" : "40"}});
}

MemoryTensors tensors() {
  MemoryTensors tensors;
  unsigned seed = 7;
  for (auto [name, rows, columns, factor] : {std::tuple("embedding", 40, 32, 20), std::tuple("up", 64, 32, 2),
                                             std::tuple("down", 32, 64, 2), std::tuple("head", 40, 32, 2)}) {
    std::vector<float> values = gaussian(rows * columns, seed++);
    for (float &value : values)
      value *= static_cast<float>(factor);
    tensors.addFloats(name, {rows, columns}, std::move(values));
  }
  return tensors;
}

void writeRanks(const std::string &folder, const std::vector<std::string> &without = {}) {
  MemoryTensors shared = tensors();
  std::vector<std::unique_ptr<TextModel>> models;
  std::vector<ArtifactContents> contents;
  for (int stage : {0, 1})
    for (int rank : {0, 1}) {
      models.push_back(std::make_unique<TextModel>(modelOf(stage, rank)));
      contents.push_back(compileModule(models.back()->module(), shared, without));
    }
  if (::testing::Test::HasFailure())
    return;
  Status written = writeArtifact(contents, {2, 2}, folder);
  ASSERT_TRUE(written.ok()) << written.message();
}

const std::vector<std::vector<int32_t>> kPrompts = {{1, 5, 39}, {7}, {3, 3, 8, 20, 21, 22, 23, 24, 25, 26, 27}, {0, 2}};

using Logits = std::vector<std::vector<float>>; // per sequence
using Answers = std::vector<std::vector<int32_t>>;

// What every engine of the artifact computes, which must be the same.
struct Outcome {
  Logits logits;
  Answers answers;
  bool operator==(const Outcome &) const = default;
};

Status compute(Engine &engine, const ForwardOptions &options, Outcome &outcome) {
  outcome.logits.resize(kPrompts.size());
  LLMC_RETURN_IF_ERROR(engine.forward(kPrompts, options, [&](const ForwardRows &rows) {
    std::vector<float> &to = outcome.logits[rows.sequence];
    to.insert(to.end(), rows.logits.begin(), rows.logits.end());
    return Status();
  }));
  SequenceId first = -1;
  for (const std::vector<int32_t> &prompt : kPrompts) {
    LLMC_ASSIGN_OR_RETURN(SequenceId id, engine.add({prompt, 8}));
    first = first < 0 ? id : first;
  }
  outcome.answers.resize(kPrompts.size());
  while (!engine.idle())
    for (const Event &event : engine.step()) {
      if (event.finish == Finish::Failed)
        return Status::error(engine.failure(event));
      outcome.answers[static_cast<size_t>(event.sequence - first)].push_back(event.token);
    }
  return {};
}

// Of every rank.
std::vector<Outcome> outcomesOf(const std::string &folder, const EngineOptions &options,
                                const ForwardOptions &forward = {}) {
  std::vector<Outcome> outcomes;
  std::mutex mutex;
  Status status = withEngines(folder, options, [&](Engine &engine) {
    Outcome outcome;
    LLMC_RETURN_IF_ERROR(compute(engine, forward, outcome));
    std::lock_guard lock(mutex);
    outcomes.push_back(std::move(outcome));
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return outcomes;
}

// What llmc-run prints, under `launcher`.
std::string printed(const std::string &launcher, const std::string &folder, const std::string &ids) {
  std::string command =
      launcher + " " LLMC_RUN " " + folder + " --ids " + ids + " --max-new-tokens 8 --threads 1 </dev/null 2>/dev/null";
  std::string text;
  FILE *pipe = ::popen(command.c_str(), "r");
  char piece[1024];
  while (pipe && std::fgets(piece, sizeof piece, pipe))
    text += piece;
  if (pipe)
    ::pclose(pipe);
  return text;
}

class CompiledRanks : public ::testing::Test {
protected:
  void SetUp() override { writeRanks(folder_); }
  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path() + "/ranks.llmc";
};

} // namespace

TEST_F(CompiledRanks, ComputeWhatOneRankComputes) {
  std::string one = temporary_.path() + "/one.llmc";
  TextModel model(wholeModel());
  MemoryTensors shared = tensors();
  Status written = writeArtifact(compileModule(model.module(), shared), one);
  ASSERT_TRUE(written.ok()) << written.message();

  std::vector<Outcome> expected = outcomesOf(one, {1}), outcomes = outcomesOf(folder_, {4});
  ASSERT_EQ(expected.size(), 1u);
  ASSERT_EQ(outcomes.size(), 4u);
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome, outcomes[0]);
  EXPECT_EQ(outcomes[0].answers, expected[0].answers);
  for (size_t s = 0; s < kPrompts.size(); ++s) {
    ASSERT_EQ(outcomes[0].logits[s].size(), expected[0].logits[s].size());
    for (size_t i = 0; i < expected[0].logits[s].size(); ++i) // sums of halves, in f32
      ASSERT_NEAR(outcomes[0].logits[s][i], expected[0].logits[s][i], 1e-4) << "sequence " << s << " logit " << i;
  }
  // Threads, chunks and what else is in the batch change nothing.
  for (auto [threads, sequences, chunk] : {std::tuple(8, 3, 1), std::tuple(12, 2, 5)})
    for (bool together : {true, false})
      EXPECT_EQ(outcomesOf(folder_, {threads, sequences, chunk}, {chunk, together}), outcomes)
          << threads << " threads, chunks of " << chunk;
}

// A step of 17 rows is computed in blocks of 8 and 9, one of 5 rows in one, that of a single row in one.
TEST_F(CompiledRanks, BlocksOfRowsChangeNoBit) {
  std::string plain = temporary_.path() + "/plain.llmc";
  writeRanks(plain, {"overlap"});
  StatusOr<LoadedArtifact> cut = LoadedArtifact::open(folder_, WeightsCheck::AtOnce, 2),
                           whole = LoadedArtifact::open(plain, WeightsCheck::AtOnce, 2);
  ASSERT_TRUE(cut.ok() && whole.ok());
  EXPECT_EQ(cut->manifest().rank->rowBlocks, 2);
  EXPECT_EQ(cut->manifest().rank->rowsPerBlock, 3);
  EXPECT_EQ(cut->manifest().rank->exchanges, 6); // of each block the receive and a sum; logits are gathered and sent
  EXPECT_EQ(whole->manifest().rank->rowBlocks, 1);
  EXPECT_EQ(whole->manifest().rank->exchanges, 4);
  std::vector<Outcome> expected = outcomesOf(plain, {4});
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_EQ(outcomesOf(folder_, {4}), expected);
  // Messages that take their time change nothing either.
  EngineOptions slow{8, 3, 5};
  slow.link.latency = std::chrono::microseconds(300);
  slow.link.bytesPerSecond = 1e7;
  EXPECT_EQ(outcomesOf(folder_, slow), expected);
}

// In the middle of a step: the others wait for its rows.
TEST_F(CompiledRanks, ARankThatLeavesAStepEndsAll) {
  std::mutex mutex;
  std::vector<std::string> said;
  Status status = withEngines(folder_, {8}, [&](Engine &engine) -> Status {
    if (engine.manifest().rank->number == 1)
      return {};
    LLMC_RETURN_IF_ERROR(engine.add({std::vector<int32_t>(20, 3), 4}).status());
    while (!engine.idle())
      for (const Event &event : engine.step())
        if (event.finish == Finish::Failed) {
          std::lock_guard lock(mutex);
          said.push_back(engine.failure(event));
        }
    return {};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(said, std::vector<std::string>(3, status.message()));
  EXPECT_EQ(status.message().substr(0, 31), "rank 1 has ended, but rank " + status.message().substr(27, 4));
}

TEST_F(CompiledRanks, EqualProgramsAreStoredOnce) {
  auto has = [&](const std::string &name) { return std::filesystem::exists(folder_ + "/" + name); };
  for (const char *name :
       {"manifest.json", "manifest-1.json", "manifest-2.json", "manifest-3.json", "program.so", "program-2.so",
        "program-3.so", "weights.bin", "weights-1.bin", "weights-2.bin", "weights-3.bin"})
    EXPECT_TRUE(has(name)) << name;
  EXPECT_FALSE(has("program-1.so"));
  StatusOr<LoadedArtifact> second = LoadedArtifact::open(folder_, WeightsCheck::AtOnce, 1);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->manifest().rank->number, 1);
  EXPECT_EQ(second->manifest().fileOf(weightsFile), "weights-1.bin");
  EXPECT_EQ(second->manifest().fileOf(programFile), "program.so");
  // A sum of 24 rows of 32 between two ranks, twice and two floats, with what every block needs, in whole 64 bytes.
  EXPECT_EQ(second->manifest().rank->collectiveBytes, 6208u);
}

TEST_F(CompiledRanks, ARankThatFailsEndsAll) {
  Status status = withEngines(folder_, {4}, [&](Engine &engine) {
    if (engine.manifest().rank->number == 3)
      return Status::error("out of order");
    Outcome outcome;
    return compute(engine, {}, outcome);
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "out of order");
}

TEST_F(CompiledRanks, AnotherArtifactIsNoticed) {
  std::string manifest = folder_ + "/manifest-2.json";
  StatusOr<Manifest> parsed = parseManifest(readAll(manifest), manifest);
  ASSERT_TRUE(parsed.ok());
  std::string identity = parsed->rank->identity;
  parsed->rank->identity = std::string(32, 'f');
  writeAll(manifest, manifestText(*parsed));
  Status status = withEngines(folder_, {4}, [&](Engine &) { return Status(); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "rank 2 runs artifact " + std::string(32, 'f') + ", rank 0 artifact " + identity +
                                  "; give every rank the same one");
}

TEST_F(CompiledRanks, OneEngineIsNotEnough) {
  StatusOr<std::unique_ptr<Engine>> engine = Engine::load(folder_);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().message(), folder_ + ": is for 4 ranks, which only llmc-run, llmc run and llmc logits run; "
                                                 "compile it for one");
}

TEST_F(CompiledRanks, RunUnderMpirun) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "mpirun is not installed";
  std::string ids = temporary_.path() + "/ids.json", text;
  for (const std::vector<int32_t> &prompt : kPrompts) {
    text += text.empty() ? "[" : ", [";
    for (size_t i = 0; i < prompt.size(); ++i)
      text += (i ? "," : "") + std::to_string(prompt[i]);
    text += "]";
  }
  writeAll(ids, "{\"sequences\": [" + text + "]}");
  std::string expected;
  const std::vector<Outcome> outcomes = outcomesOf(folder_, {4});
  ASSERT_FALSE(outcomes.empty());
  for (const std::vector<int32_t> &answer : outcomes[0].answers) {
    for (size_t i = 0; i < answer.size(); ++i)
      expected += (i ? " " : "") + std::to_string(answer[i]);
    expected += "\n";
  }
  EXPECT_EQ(printed("", folder_, ids), expected);
  EXPECT_EQ(printed("timeout -k 1 60 mpirun --allow-run-as-root --oversubscribe -n 4", folder_, ids), expected);
}
