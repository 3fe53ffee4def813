// The positions that an indexer selects: against all scores sorted, where scores are exact and ties are many; and the
// same for every chunking, batch and number of workers.
#include "lib/reference/TileAttention.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "test/lib/codegen/cpu/StepRunner.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

// A row of %x is its queries, its key and its weights.
const char *kSelect = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = ${PAGEBYTES} : i64} {
  llm.state @kv : ${KV} {offset = 0 : i64}
  tile.task @append rows(%row, %column of 1) (%x: !tile.rows<${X}>, %kv: ${KV}, %batch: !llm.batch) {
    %at = arith.constant ${KEYAT} : index
    %head = arith.constant 0 : index
    %k = tile.load %x[%row, %at] : !tile.rows<${X}> -> tensor<${D}xf32>
    tile.append key %k, %kv[%head], %batch[%row] : tensor<${D}xf32>, ${KV}
  }
  tile.task @select rows(%row, %column of 1) (%x: !tile.rows<${X}>, %kv: ${KV}, %batch: !llm.batch, %y: !tile.rows<${N}>, %p: !tile.rows<${P}>) {
    %zero = arith.constant 0 : index
    %at = arith.constant ${WEIGHTSAT} : index
    %q = tile.load %x[%row, %zero] : !tile.rows<${X}> -> tensor<${HD}xf32>
    %w = tile.load %x[%row, %at] : !tile.rows<${X}> -> tensor<${H}xf32>
    %o = tile.select_positions %q, %w, %kv, %batch[%row] ${PARTIALS} {span = ${SPAN} : i64} : tensor<${HD}xf32>, tensor<${H}xf32>, ${KV} -> tensor<${N}xf32>
    tile.store %o, %y[%row, %zero] : tensor<${N}xf32>, !tile.rows<${N}>
  }
  func.func @step(%batch: !llm.batch) {
    %kv = llm.use_state @kv : ${KV}
    %x = tile.alloc at 0 : !tile.rows<${X}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${N}>
    %p = tile.alloc at ${XYBYTES} : !tile.rows<${P}>
    tile.launch @append(%x, %kv, %batch) : !tile.rows<${X}>, ${KV}, !llm.batch
    tile.launch @select(%x, %kv, %batch, %y, %p) : !tile.rows<${X}>, ${KV}, !llm.batch, !tile.rows<${N}>, !tile.rows<${P}>
    return
  }
})mlir";

struct Case {
  int64_t depth = 32, heads = 4, count = 8, page = 16, span = 0;
  int64_t every = 1; // as `kv` says
  bool partials = false;
  std::string kv = "latent = 32, page = 16, panel = 1", element = "bf16";
  int64_t keyAt() const { return heads * depth; }
  int64_t weightsAt() const { return keyAt() + depth; }
  int64_t channels() const { return weightsAt() + heads; }
  std::string kvText() const { return "!llm.kv<1x" + std::to_string(depth) + "x" + element + ", " + kv + ">"; }
};

int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

int64_t pageBytes(const Case &c) {
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  return mlir::cast<llm::KvType>(mlir::parseType(c.kvText(), &context)).bytesPerPage();
}

std::string moduleOf(const Case &c) {
  auto text = [](int64_t value) { return std::to_string(value); };
  return fill(kSelect, {{"KV", c.kvText()},
                        {"PAGEBYTES", text(pageBytes(c))},
                        {"D", text(c.depth)},
                        {"H", text(c.heads)},
                        {"HD", text(c.heads * c.depth)},
                        {"N", text(c.count)},
                        {"X", text(c.channels())},
                        {"KEYAT", text(c.keyAt())},
                        {"WEIGHTSAT", text(c.weightsAt())},
                        {"SPAN", text(c.span)},
                        {"P", text(2 * c.count)},
                        {"PARTIALS", c.partials ? "partials %p : !tile.rows<" + text(2 * c.count) + ">" : ""},
                        {"XBYTES", text(strideOf(c.channels()) * 4)},
                        {"XYBYTES", text((strideOf(c.channels()) + strideOf(c.count)) * 4)}});
}

using Rows = std::vector<std::vector<float>>; // [sequence][length * channels]

Rows runSequences(StepProgram &program, const Case &c, const Rows &inputs,
                  const std::vector<std::vector<int32_t>> &steps, int workers) {
  std::vector<int32_t> done(inputs.size(), 0);
  Batch whole(std::vector<Sequence>(inputs.size(), {0, 200}), static_cast<int32_t>(c.page));
  AlignedBytes kv(static_cast<size_t>(whole.numPages * pageBytes(c)), 0xff);
  int64_t inStride = strideOf(c.channels()), outStride = strideOf(c.count);
  Rows outputs(inputs.size());
  for (const std::vector<int32_t> &step : steps) {
    std::vector<Sequence> sequences;
    AlignedBytes arena(static_cast<size_t>(256 * (inStride + outStride + strideOf(2 * c.count)) * 4), 0xff);
    int64_t row = 0;
    for (size_t s = 0; s < inputs.size(); ++s) {
      sequences.push_back({done[s], step[s]});
      for (int32_t i = 0; i < step[s]; ++i, ++row)
        std::copy_n(inputs[s].begin() + (done[s] + i) * c.channels(), c.channels(), arena.floats() + row * inStride);
      done[s] += step[s];
    }
    Batch batch(sequences, static_cast<int32_t>(c.page));
    batch.pageTable = whole.pageTable;
    batch.pageTableStride = whole.pageTableStride;
    StepProgram::Memory memory;
    memory.arena = arena.data();
    memory.kv = kv.data();
    program.run(batch, memory, workers);
    row = 0;
    for (size_t s = 0; s < inputs.size(); ++s)
      for (int32_t i = 0; i < step[s]; ++i, ++row) {
        float *out = arena.floats() + 256 * inStride + row * outStride;
        outputs[s].insert(outputs[s].end(), out, out + c.count);
      }
  }
  return outputs;
}

// Multiples of 1/2, so that sums are exact in any order and in every element type but i8, and many are equal.
Rows exactRows(const Case &c, const std::vector<int64_t> &lengths) {
  uint64_t state = static_cast<uint64_t>(c.depth + c.count);
  Rows rows;
  for (int64_t length : lengths) {
    rows.emplace_back(static_cast<size_t>(length * c.channels()));
    for (float &value : rows.back())
      value = std::nearbyint(randomFloat(state) * 1.2f) / 2;
  }
  return rows;
}

std::vector<float> expectedRow(const Case &c, const std::vector<float> &x, int64_t t) {
  const float *row = &x[static_cast<size_t>(t * c.channels())];
  std::vector<double> scores;
  for (int64_t j = 0; j < (t + 1) / c.every; ++j) {
    int64_t position = (j + 1) * c.every - 1;
    const float *key = &x[static_cast<size_t>(position * c.channels() + c.keyAt())];
    double score = 0;
    for (int64_t h = 0; h < c.heads; ++h)
      score += static_cast<double>(row[c.weightsAt() + h]) *
               std::max(0.0, std::inner_product(key, key + c.depth, row + h * c.depth, 0.0));
    scores.push_back(score);
  }
  std::vector<float> order(scores.size());
  std::iota(order.begin(), order.end(), 0.0f);
  std::ranges::sort(order, [&](float a, float b) {
    double ofA = scores[static_cast<size_t>(a)], ofB = scores[static_cast<size_t>(b)];
    return ofA == ofB ? a < b : ofA > ofB;
  });
  size_t found = std::min(order.size(), static_cast<size_t>(c.count));
  order.resize(found);
  std::ranges::sort(order);
  order.resize(static_cast<size_t>(c.count), -1.0f);
  return order;
}

void check(const Case &c) {
  Rows inputs = exactRows(c, {70, 17});
  for (const char *target : {"x86-64-v3", "x86-64-v4", "x86-64-v4-amx"}) {
    SCOPED_TRACE(std::string(target) + " " + c.kvText() + " count " + std::to_string(c.count));
    auto program = StepProgram::compile(moduleOf(c), target, /*emulate=*/true);
    ASSERT_TRUE(program);
    Rows whole = runSequences(*program, c, inputs, {{70, 17}}, 1);
    for (size_t s = 0; s < inputs.size(); ++s)
      for (int64_t t = 0; t * c.channels() < static_cast<int64_t>(inputs[s].size()); ++t) {
        auto at = whole[s].begin() + t * c.count;
        ASSERT_EQ(std::vector<float>(at, at + c.count), expectedRow(c, inputs[s], t)) << "row " << t;
      }
    EXPECT_EQ(runSequences(*program, c, inputs, {{63, 1}, {1, 15}, {1, 0}, {5, 1}}, 3), whole);
    EXPECT_EQ(runSequences(*program, c, {inputs[1]}, {{16}, {1}}, 2)[0], whole[1]);
  }
}

} // namespace

TEST(SelectTask, CountsAndElements) {
  for (int64_t count : {1, 8, 50, 100})
    for (const char *element : {"f32", "bf16"}) {
      Case c;
      c.count = count;
      c.element = element;
      c.heads = count == 8 ? 1 : 4;
      check(c);
    }
}

TEST(SelectTask, SpansAndOtherCaches) {
  Case split;
  split.span = 16;
  split.partials = true;
  split.count = 20;
  check(split);
  Case panels;
  panels.kv = "page = 16, panel = 16";
  panels.element = "f16";
  check(panels);
  Case odd;
  odd.depth = 20;
  odd.kv = "latent = 20, page = 16, panel = 1";
  odd.heads = 3;
  check(odd);
}

TEST(SelectTask, OneRowOfSeveralPositions) {
  Case c;
  c.every = 4;
  c.kv = "latent = 32, every = 4, page = 16, panel = 1";
  check(c);
  c.element = "f32";
  c.count = 5;
  c.span = 16;
  c.partials = true;
  c.every = 3;
  c.kv = "latent = 32, every = 3, page = 16, panel = 1";
  check(c);
  c.count = 1;
  c.every = 24;
  c.kv = "latent = 32, every = 24, page = 16, panel = 1";
  check(c);
}

// Codes have scales: the interpreted op knows the same scores.
TEST(SelectTask, Codes) {
  Case c;
  c.element = "i8";
  std::vector<float> x = exactRows(c, {40})[0];
  auto program = StepProgram::compile(moduleOf(c), "x86-64-v3", /*emulate=*/true);
  ASSERT_TRUE(program);
  std::vector<float> actual = runSequences(*program, c, {x}, {{40}}, 1)[0];
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  auto kv = mlir::cast<llm::KvType>(mlir::parseType(c.kvText(), &context));
  std::vector<uint8_t> memory(static_cast<size_t>(3 * kv.bytesPerPage()));
  std::vector<int32_t> table = {0, 1, 2};
  reference::CacheView cache{memory.data(), kv.bytesPerPage(), 0, table.data(), kv};
  auto part = [&](int64_t t, int64_t at, int64_t size) {
    return std::span(&x[static_cast<size_t>(t * c.channels() + at)], static_cast<size_t>(size));
  };
  std::vector<float> expected(static_cast<size_t>(c.count));
  for (int64_t t = 0; t < 40; ++t) {
    cache.append(/*value=*/false, 0, t, part(t, c.keyAt(), c.depth));
    reference::selectPositions(part(t, 0, c.heads * c.depth), part(t, c.weightsAt(), c.heads), cache, t, expected);
    auto at = actual.begin() + t * c.count;
    ASSERT_EQ(std::vector<float>(at, at + c.count), expected) << "row " << t;
  }
}
