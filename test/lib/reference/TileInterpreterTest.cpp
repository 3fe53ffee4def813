// Whole tile programs: grids, column parts, the cache over pages and steps, and every failure.
#include "lib/reference/TileInterpreter.h"
#include "runtime/collective/SimulatedRanks.h"
#include "runtime/engine/BatchArrays.h"
#include "test/lib/reference/TestModule.h"
#include <cstring>
#include <gtest/gtest.h>

namespace llmc::reference {
namespace {
using mlir::failed;
using mlir::FailureOr;
using mlir::succeeded;

// A batch of whole sequences, each on pages of its own, logits of all rows.
struct TestBatch : BatchArrays {
  TestBatch(const std::vector<std::vector<int32_t>> &prompts, int32_t pagesEach) {
    pageTableStride = pagesEach;
    queryStart = {0};
    for (size_t s = 0; s < prompts.size(); ++s) {
      for (int32_t token : prompts[s]) {
        logitRows.push_back(static_cast<int32_t>(tokens.size()));
        positions.push_back(static_cast<int32_t>(tokens.size()) - queryStart[s]);
        tokenSequence.push_back(static_cast<int32_t>(s));
        tokens.push_back(token);
      }
      queryStart.push_back(static_cast<int32_t>(tokens.size()));
      length.push_back(static_cast<int32_t>(prompts[s].size()));
      for (int32_t p = 0; p < pagesEach; ++p)
        pageTable.push_back(static_cast<int32_t>(s) * pagesEach + p);
    }
  }
};

// Looks up [token, 2 token], keeps it as key and value of position p, attends, and hands both halves out by columns.
const char *const program = R"(
  llm.weight @e : !llm.weight<5x2, f32, tile = 16, panel = 16> from [{tensor = "e"}]
  llm.state @kv : !llm.kv<1x2xf32, page = 16, panel = 16>
  tile.task @embed rows(%row, %column of 1) (%batch: !llm.batch, %w: !llm.weight<5x2, f32, tile = 16, panel = 16>, %out: !tile.rows<2>, %kv: !llm.kv<1x2xf32, page = 16, panel = 16>) {
    %c0 = arith.constant 0 : index
    %t = tile.batch token %batch[%row]
    %x = tile.gather %w[%t] : !llm.weight<5x2, f32, tile = 16, panel = 16> -> tensor<2xf32>
    tile.append key %x, %kv[%c0], %batch[%row] : tensor<2xf32>, !llm.kv<1x2xf32, page = 16, panel = 16>
    tile.append value %x, %kv[%c0], %batch[%row] : tensor<2xf32>, !llm.kv<1x2xf32, page = 16, panel = 16>
    tile.store %x, %out[%row, %c0] : tensor<2xf32>, !tile.rows<2>
    tile.record %x, %batch[%row] at 1 : tensor<2xf32>
  }
  tile.task @attend logit_rows(%row, %column of 3) (%batch: !llm.batch, %in: !tile.rows<2>, %out: !tile.rows<3>, %kv: !llm.kv<1x2xf32, page = 16, panel = 16>) {
    %c0 = arith.constant 0 : index
    %r = tile.batch logit_row %batch[%row]
    %q = tile.load %in[%r, %c0] : !tile.rows<2> -> tensor<2xf32>
    %zero = arith.constant dense<0.0> : tensor<2xf32>
    %z = arith.mulf %q, %zero : tensor<2xf32>
    %o = tile.attend %z, %kv[%c0], %batch[%r] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<2xf32>, !llm.kv<1x2xf32, page = 16, panel = 16>
    %a = tile.slice %o at 0 : tensor<2xf32> -> tensor<1xf32>
    %b = tile.slice %o at 1 : tensor<2xf32> -> tensor<1xf32>
    tile.when %column in 0 to 2 {
      tile.store %a, %out[%row, %column] : tensor<1xf32>, !tile.rows<3>
    }
    tile.when %column in 2 to 3 {
      tile.store %b, %out[%row, %column] : tensor<1xf32>, !tile.rows<3>
    }
  }
  func.func private @layer(%batch: !llm.batch, %x: !tile.rows<2>, %y: !tile.rows<3>, %kv: !llm.kv<1x2xf32, page = 16, panel = 16>) {
    tile.launch @attend(%batch, %x, %y, %kv) : !llm.batch, !tile.rows<2>, !tile.rows<3>, !llm.kv<1x2xf32, page = 16, panel = 16>
    return
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @e : !llm.weight<5x2, f32, tile = 16, panel = 16>
    %kv = llm.use_state @kv : !llm.kv<1x2xf32, page = 16, panel = 16>
    %x = tile.alloc : !tile.rows<2>
    %y = tile.logits : !tile.rows<3>
    tile.launch @embed(%batch, %w, %x, %kv) : !llm.batch, !llm.weight<5x2, f32, tile = 16, panel = 16>, !tile.rows<2>, !llm.kv<1x2xf32, page = 16, panel = 16>
    func.call @layer(%batch, %x, %y, %kv) : (!llm.batch, !tile.rows<2>, !tile.rows<3>, !llm.kv<1x2xf32, page = 16, panel = 16>) -> ()
    return
  }
)";

// Row n is [n, 2n]: [k][16] f32 in the one panel.
MemoryPackedWeights programWeights() {
  std::vector<uint8_t> bytes(16 * 2 * 4);
  for (int n = 0; n < 5; ++n)
    for (int k = 0; k < 2; ++k) {
      float value = static_cast<float>(n * (k + 1));
      std::memcpy(bytes.data() + (k * 16 + n) * 4, &value, 4);
    }
  MemoryPackedWeights weights;
  weights.add("e", bytes);
  return weights;
}

TEST(TileInterpreter, RunsAProgramOverARaggedBatch) {
  TestModule module(program);
  ASSERT_TRUE(module.ok()) << module.error();
  MemoryPackedWeights weights = programWeights();
  auto interpreter = TileInterpreter::create(*module, weights, 4);
  ASSERT_TRUE(succeeded(interpreter)) << module.error();
  EXPECT_EQ((*interpreter)->bytesPerPage(), 2 * 2 * 16 * 4);
  TestBatch batch({{4, 2}, {3}}, 2);
  FailureOr<TileOutput> output = (*interpreter)->step(batch.view(), /*records=*/true);
  ASSERT_TRUE(succeeded(output)) << module.error();
  // Equal scores: the mean of the values so far, [4, 8], then [(4 + 2) / 2, 6], and alone [3, 6].
  EXPECT_EQ(output->logits.values, (std::vector<float>{4, 4, 8, 3, 3, 6, 3, 3, 6}));
  ASSERT_EQ(output->records.size(), 2u);
  EXPECT_EQ(output->records[1].values, (std::vector<float>{4, 8, 2, 4, 3, 6}));
}

TEST(TileInterpreter, ChunksOverPagesChangeNothing) {
  TestModule module(program);
  MemoryPackedWeights weights = programWeights();
  auto whole = TileInterpreter::create(*module, weights, 2), chunked = TileInterpreter::create(*module, weights, 2);
  ASSERT_TRUE(succeeded(whole) && succeeded(chunked));
  std::vector<int32_t> prompt;
  for (int i = 0; i < 17; ++i) // the 17th position is on the second page
    prompt.push_back(i % 5);
  TestBatch all({prompt}, 2), first({{prompt.begin(), prompt.begin() + 15}}, 2), rest({{prompt[15], prompt[16]}}, 2);
  rest.positions = {15, 16};
  rest.length = {17};
  FailureOr<TileOutput> expected = (*whole)->step(all.view(), false);
  ASSERT_TRUE(succeeded(expected) && succeeded((*chunked)->step(first.view(), false)));
  FailureOr<TileOutput> actual = (*chunked)->step(rest.view(), false);
  ASSERT_TRUE(succeeded(actual));
  EXPECT_EQ(actual->logits.values,
            std::vector<float>(expected->logits.values.end() - 6, expected->logits.values.end()));
}

// Rank r of stage 0 fills its rows with 10^r, the group adds them up, stage 1 gets the sum, and both stages gather it
// with 1 + r of rank r beside it.
std::string rankProgram(int stage, int rank) {
  const std::string sum = stage == 0 ? R"(
      tile.launch @fill(%x) : !tile.rows<1>
      tile.all_reduce rows %x to %x : !tile.rows<1>
      tile.send rows %x to stage 1 : !tile.rows<1>)"
                                     : "tile.receive rows %x from stage 0 : !tile.rows<1>";
  return "module attributes {llmc.ranks = 2 : i64} {\n tile.task @fill rows(%row, %column of 1) (%x: !tile.rows<1>) {\n"
         "   %c0 = arith.constant 0 : index\n   %v = arith.constant dense<" +
         std::string(rank == 0 ? "1.0" : "10.0") +
         R"(> : tensor<1xf32>
    tile.store %v, %x[%row, %c0] : tensor<1xf32>, !tile.rows<1>
  }
  tile.task @select logit_rows(%row, %column of 1) (%batch: !llm.batch, %x: !tile.rows<1>, %y: !tile.rows<1>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant dense<)" +
         std::to_string(1 + rank) + R"(.0> : tensor<1xf32>
    %r = tile.batch logit_row %batch[%row]
    %v = tile.load %x[%r, %c0] : !tile.rows<1> -> tensor<1xf32>
    %s = arith.addf %v, %one : tensor<1xf32>
    tile.store %s, %y[%row, %c0] : tensor<1xf32>, !tile.rows<1>
  }
  func.func @step(%batch: !llm.batch) {
    %x = tile.alloc : !tile.rows<1>
    %y = tile.alloc : !tile.rows<1>
    %l = tile.logits : !tile.rows<2>
)" + sum +
         R"(
    tile.launch @select(%batch, %x, %y) : !llm.batch, !tile.rows<1>, !tile.rows<1>
    tile.all_gather logit_rows %y : !tile.rows<1> to %l : !tile.rows<2> {segments = [array<i64: 0, 1, 1, 2>]}
    return
  }
})";
}

TEST(TileInterpreter, RanksExchangeRows) {
  std::vector<std::vector<float>> logits(4);
  Status status = SimulatedRanks({2, 2}).run([&](Transport &transport) {
    TestModule module(rankProgram(transport.stage(), transport.rank()));
    MemoryPackedWeights weights;
    if (!module.ok())
      return Status::error(module.error());
    auto interpreter = TileInterpreter::create(*module, weights, 0, 0, &transport);
    TestBatch batch({{4, 2}}, 0);
    batch.logitRows = {1};
    FailureOr<TileOutput> output = (*interpreter)->step(batch.view(), false);
    if (failed(output))
      return Status::error(module.error());
    logits[static_cast<size_t>(transport.number())] = output->logits.values;
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(logits, std::vector<std::vector<float>>(4, {12, 13}));
}

TEST(TileInterpreter, AnExchangeNeedsOtherRanks) {
  TestModule module(rankProgram(0, 0));
  ASSERT_TRUE(module.ok()) << module.error();
  MemoryPackedWeights weights;
  auto interpreter = TileInterpreter::create(*module, weights, 0);
  TestBatch batch({{4, 2}}, 0);
  EXPECT_TRUE(failed((*interpreter)->step(batch.view(), false)));
  EXPECT_EQ(module.error(), "'tile.all_reduce' op needs the other ranks, but this one is interpreted alone");
}

std::string refusal(void (*change)(TestBatch &)) {
  TestModule module(program);
  MemoryPackedWeights weights = programWeights();
  auto interpreter = TileInterpreter::create(*module, weights, 2);
  if (failed(interpreter))
    return "not created: " + module.error();
  TestBatch batch({{4, 2}}, 1);
  change(batch);
  EXPECT_TRUE(failed((*interpreter)->step(batch.view(), false)));
  return module.error();
}

TEST(TileInterpreter, RefusesABatchThatContradictsItself) {
  EXPECT_EQ(refusal([](TestBatch &b) { b.length[0] = 17; }), "batch gives sequence 0 17 positions, but 1 pages");
  EXPECT_EQ(refusal([](TestBatch &b) { b.pageTable[0] = 2; }), "batch gives sequence 0 page 2 of 2");
  EXPECT_EQ(refusal([](TestBatch &b) { b.positions[1] = 2; }),
            "batch puts row 1 at position 2 of sequence 0, which is not there");
  EXPECT_EQ(refusal([](TestBatch &b) { b.logitRows[1] = 2; }), "batch wants logits of row 2 of 2");
  EXPECT_EQ(refusal([](TestBatch &b) { b.tokens[1] = 5; }), "'tile.gather' op reads row 5 of a weight of 5 rows");
}

std::string failureOf(const std::string &body) {
  TestModule module("tile.task @t rows(%row, %column of 1) (%a: !tile.rows<4>) {" + body + R"(}
    func.func @step(%batch: !llm.batch) {
      %a = tile.alloc : !tile.rows<4>
      tile.launch @t(%a) : !tile.rows<4>
      return
    })");
  MemoryPackedWeights weights;
  if (!module.ok())
    return "does not parse: " + module.error();
  auto interpreter = TileInterpreter::create(*module, weights, 0);
  TestBatch batch({{0}}, 0);
  batch.length = {1};
  if (succeeded(interpreter))
    EXPECT_TRUE(failed((*interpreter)->step(batch.view(), false)));
  return module.error();
}

TEST(TileInterpreter, SaysWhatATaskMayNotDo) {
  EXPECT_EQ(
      failureOf("%c1 = arith.constant 61 : index\n %x = tile.load %a[%row, %c1] : !tile.rows<4> -> tensor<4xf32>"),
      "'tile.load' op touches row 0, elements 61 to 65, of 1 rows of 64 elements");
  EXPECT_EQ(failureOf("%x = arith.divui %row, %row : index"), "'arith.divui' op divides by zero");
  EXPECT_EQ(failureOf("%x = arith.shli %row, %row : index"),
            "'arith.shli' op has no reference implementation in a task for these types");
  EXPECT_EQ(failureOf("%x = tile.alloc : !tile.rows<4>"), "'tile.alloc' op has no reference implementation in a task");
  EXPECT_EQ(failureOf("%x = arith.constant dense<0.0> : tensor<2x2xf32>"),
            "a task makes a value of type 'tensor<2x2xf32>', expected tiles and scalars");
}

} // namespace
} // namespace llmc::reference
