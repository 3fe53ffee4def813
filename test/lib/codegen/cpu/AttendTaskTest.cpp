// Cache writes and attention: against double-precision softmax with an error bound, against the interpreted op to the
// bit, and for bits that must not depend on batch, chunking or workers.
#include "lib/reference/TileKernels.h"
#include "test/lib/codegen/cpu/PackedWeight.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

// q, k and v of all heads side by side in the rows of %x; keys and values are appended, then attended to.
const char *kAttention = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = ${PAGEBYTES} : i64} {
  llm.state @kv : ${KV} {offset = ${OFFSET} : i64}
  tile.task @append rows(%row, %column of ${H}) (%x: !tile.rows<${X}>, %kv: ${KV}, %batch: !llm.batch) {
    %d = arith.constant ${D} : index
    %kstart = arith.constant ${KSTART} : index
    %vstart = arith.constant ${VSTART} : index
    %at = arith.muli %column, %d : index
    %kat = arith.addi %at, %kstart : index
    %vat = arith.addi %at, %vstart : index
    %k = tile.load %x[%row, %kat] : !tile.rows<${X}> -> tensor<${D}xf32>
    %v = tile.load %x[%row, %vat] : !tile.rows<${X}> -> tensor<${D}xf32>
    tile.append key %k, %kv[%column], %batch[%row] : tensor<${D}xf32>, ${KV}
    tile.append value %v, %kv[%column], %batch[%row] : tensor<${D}xf32>, ${KV}
  }
  tile.task @attend rows(%row, %column of ${H}) (%x: !tile.rows<${X}>, %kv: ${KV}, %batch: !llm.batch, %y: !tile.rows<${Q}>, %p: !tile.rows<${P}>) {
    %gd = arith.constant ${GD} : index
    %at = arith.muli %column, %gd : index
    %q = tile.load %x[%row, %at] : !tile.rows<${X}> -> tensor<${GD}xf32>
    %o = tile.attend %q, %kv[%column], %batch[%row] ${PARTIALS} {scale = ${SCALE} : f32, softcap = ${CAP} : f32, window = ${WINDOW} : i64, span = ${SPAN} : i64} : tensor<${GD}xf32>, ${KV}
    tile.store %o, %y[%row, %at] : tensor<${GD}xf32>, !tile.rows<${Q}>
  }
  func.func @step(%batch: !llm.batch) {
    %kv = llm.use_state @kv : ${KV}
    %x = tile.alloc at 0 : !tile.rows<${X}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${Q}>
    %p = tile.alloc at ${XYBYTES} : !tile.rows<${P}>
    tile.launch @append(%x, %kv, %batch) : !tile.rows<${X}>, ${KV}, !llm.batch
    tile.launch @attend(%x, %kv, %batch, %y, %p) : !tile.rows<${X}>, ${KV}, !llm.batch, !tile.rows<${Q}>, !tile.rows<${P}>
    return
  }
})mlir";

struct Case {
  int64_t depth = 64, group = 3, heads = 2, page = 64, window = 0, span = 0;
  bool partials = true;
  bool pairs = false; // of bf16
  std::string element = "bf16";
  std::string cap = "0.0";
  reference::CacheElement cacheElement() const {
    using enum reference::CacheElement;
    return element == "bf16" ? BF16 : element == "f16" ? F16 : element == "i8" ? I8 : F32;
  }
  // Of one layer: keys and values, and the scales of codes.
  int64_t layerBytes() const {
    int64_t bytes = element == "f32" ? 4 : element == "i8" ? 1 : 2;
    return 2 * heads * page * (depth * bytes + (element == "i8" ? 4 : 0));
  }
  int64_t queryChannels() const { return heads * group * depth; }
  int64_t partialChannels() const { return heads * group * (depth + 32); }
  int64_t channels() const { return queryChannels() + 2 * heads * depth; }
};

int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

std::string moduleOf(const Case &c) {
  auto text = [](int64_t value) { return std::to_string(value); };
  int64_t layer = c.layerBytes();
  return fill(kAttention,
              {{"KV", "!llm.kv<" + text(c.heads) + "x" + text(c.depth) + "x" + c.element + ", page = " + text(c.page) +
                          ", panel = 16" + (c.pairs ? ", pack = 2>" : ">")},
               {"PAGEBYTES", text(2 * layer)},
               {"OFFSET", text(layer)},
               {"H", text(c.heads)},
               {"D", text(c.depth)},
               {"GD", text(c.group * c.depth)},
               {"Q", text(c.queryChannels())},
               {"X", text(c.channels())},
               {"KSTART", text(c.queryChannels())},
               {"VSTART", text(c.queryChannels() + c.heads * c.depth)},
               {"SCALE", "0.125"},
               {"CAP", c.cap},
               {"WINDOW", text(c.window)},
               {"SPAN", text(c.span)},
               {"P", text(c.partialChannels())},
               {"PARTIALS", c.partials ? "partials %p : !tile.rows<" + text(c.partialChannels()) + ">" : ""},
               {"XBYTES", text(strideOf(c.channels()) * 4)},
               {"XYBYTES", text((strideOf(c.channels()) + strideOf(c.queryChannels())) * 4)}});
}

// Feeds sequences of `inputs[s]` ([length][channels]) in the given chunks; returns all results [s][length][query].
using Rows = std::vector<std::vector<float>>; // per sequence
Rows runSequences(StepProgram &program, const Case &c, const Rows &inputs,
                  const std::vector<std::vector<int32_t>> &steps, int workers) {
  size_t sequences = inputs.size();
  std::vector<int32_t> done(sequences, 0);
  Batch whole(std::vector<Sequence>(sequences, {0, 200}), static_cast<int32_t>(c.page));
  // Pages start as NaN: what was never written must never count.
  AlignedBytes kv(static_cast<size_t>(whole.numPages * 2 * c.layerBytes()), 0xff);
  Rows outputs(sequences);
  for (const std::vector<int32_t> &step : steps) {
    std::vector<Sequence> batchSequences;
    int64_t arenaStride = strideOf(c.channels()) + strideOf(c.queryChannels()) + strideOf(c.partialChannels());
    AlignedBytes arena(static_cast<size_t>(256 * arenaStride * 4), 0xff);
    int64_t row = 0;
    for (size_t s = 0; s < sequences; ++s) {
      batchSequences.push_back({done[s], step[s]});
      for (int32_t i = 0; i < step[s]; ++i, ++row)
        std::copy_n(inputs[s].begin() + (done[s] + i) * c.channels(), c.channels(),
                    arena.floats() + row * strideOf(c.channels()));
      done[s] += step[s];
    }
    Batch batch(batchSequences, static_cast<int32_t>(c.page));
    batch.pageTable = whole.pageTable;
    batch.pageTableStride = whole.pageTableStride;
    StepProgram::Memory memory;
    memory.arena = arena.data();
    memory.kv = kv.data();
    program.run(batch, memory, workers);
    row = 0;
    for (size_t s = 0; s < sequences; ++s)
      for (int32_t i = 0; i < step[s]; ++i, ++row) {
        float *out = arena.floats() + 256 * strideOf(c.channels()) + row * strideOf(c.queryChannels());
        outputs[s].insert(outputs[s].end(), out, out + c.queryChannels());
      }
  }
  return outputs;
}

// Attention of one sequence in double precision from the cached (rounded) keys and values.
void checkSequence(const Case &c, std::vector<float> x, const std::vector<float> &y) {
  for (size_t at = 0; at < x.size(); at += static_cast<size_t>(c.depth)) {
    bool isQuery = static_cast<int64_t>(at) % c.channels() < c.queryChannels();
    std::span<float> head(&x[at], static_cast<size_t>(c.depth));
    if (isQuery && !c.pairs)
      continue; // only a matrix unit rounds queries
    float scale = reference::roundToCache(head, c.cacheElement());
    for (float &value : head)
      value *= scale;
  }
  int64_t length = static_cast<int64_t>(x.size()) / c.channels();
  double cap = std::stod(c.cap);
  for (int64_t t = 0; t < length; ++t)
    for (int64_t h = 0; h < c.heads * c.group; ++h) {
      int64_t keyHead = h / c.group, first = c.window ? std::max<int64_t>(0, t - c.window + 1) : 0;
      const float *q = &x[static_cast<size_t>(t * c.channels() + h * c.depth)];
      std::vector<double> p;
      double sum = 0;
      for (int64_t j = first; j <= t; ++j) {
        const float *k = &x[static_cast<size_t>(j * c.channels() + c.queryChannels() + keyHead * c.depth)];
        double score = 0;
        for (int64_t d = 0; d < c.depth; ++d)
          score += static_cast<double>(q[d]) * k[d];
        score *= 0.125;
        if (cap > 0)
          score = cap * std::tanh(score / cap);
        p.push_back(std::exp(score));
        sum += p.back();
      }
      for (int64_t d = 0; d < c.depth; ++d) {
        double expected = 0;
        for (int64_t j = first; j <= t; ++j)
          expected += p[static_cast<size_t>(j - first)] / sum *
                      x[static_cast<size_t>(j * c.channels() + c.queryChannels() + (c.heads + keyHead) * c.depth + d)];
        float actual = y[static_cast<size_t>(t * c.queryChannels() + h * c.depth + d)];
        // Values are at most 1 and weights sum to 1: the error is that of scores of about 10 in f32, 1e-6 each. In
        // pairs weights are off by up to 2^-9 of themselves, which moves their sum and the result.
        ASSERT_NEAR(actual, expected, c.pairs ? 2.0 / 512 : 4e-6) << "row " << t << " head " << h << " channel " << d;
      }
    }
}

// The interpreted op on the same keys and values, in pages of their own.
void checkInterpreted(const Case &c, const std::vector<float> &x, const std::vector<float> &y) {
  int64_t length = static_cast<int64_t>(x.size()) / c.channels(), pages = (length + c.page - 1) / c.page;
  int64_t pageBytes = c.layerBytes();
  std::vector<uint8_t> memory(static_cast<size_t>(pages * pageBytes));
  std::vector<int32_t> table;
  for (int32_t page = 0; page < pages; ++page)
    table.push_back(page);
  reference::CacheView cache{memory.data(), pageBytes, 0,  table.data(),     c.heads,
                             c.depth,       c.page,    16, c.cacheElement(), c.pairs};
  for (int64_t t = 0; t < length; ++t)
    for (int64_t head = 0; head < c.heads; ++head)
      for (bool value : {false, true}) {
        int64_t at = t * c.channels() + c.queryChannels() + ((value ? c.heads : 0) + head) * c.depth;
        cache.append(value, head, t, std::span(&x[static_cast<size_t>(at)], static_cast<size_t>(c.depth)));
      }
  size_t width = static_cast<size_t>(c.group * c.depth);
  std::vector<float> expected(width);
  for (int64_t t = 0; t < length; ++t)
    for (int64_t head = 0; head < c.heads; ++head) {
      std::span<const float> query(&x[static_cast<size_t>(t * c.channels()) + static_cast<size_t>(head) * width],
                                   width);
      reference::attend(query, cache, head, t, {0.125f, std::stof(c.cap), c.window, c.span}, expected);
      const float *actual = &y[static_cast<size_t>(t * c.queryChannels()) + static_cast<size_t>(head) * width];
      for (size_t i = 0; i < width; ++i)
        ASSERT_EQ(actual[i], expected[i]) << "row " << t << " head " << head << " element " << i;
    }
}

Rows randomRows(const Case &c, const std::vector<int64_t> &lengths, uint64_t state) {
  Rows rows;
  for (int64_t length : lengths) {
    rows.emplace_back(static_cast<size_t>(length * c.channels()));
    for (float &value : rows.back())
      value = randomFloat(state);
  }
  return rows;
}

void checkCase(const Case &c) {
  Rows inputs = randomRows(c, {70, 17}, static_cast<uint64_t>(c.depth + c.window));
  for (const Way &way : runnableWays()) {
    SCOPED_TRACE(nameOf(way) + " depth " + std::to_string(c.depth) + " group " + std::to_string(c.group) + " window " +
                 std::to_string(c.window) + " " + c.element + (c.pairs ? " in pairs" : ""));
    auto program = StepProgram::compile(moduleOf(c), way.target, way.emulate);
    ASSERT_TRUE(program);
    Rows whole = runSequences(*program, c, inputs, {{70, 17}}, 1);
    for (size_t s = 0; s < inputs.size(); ++s) {
      ASSERT_NO_FATAL_FAILURE(checkSequence(c, inputs[s], whole[s]));
      if (c.cap == "0.0") // kernels have a tanh of their own
        ASSERT_NO_FATAL_FAILURE(checkInterpreted(c, inputs[s], whole[s]));
    }
    // The same rows in other chunks, around pages and blocks, with other workers: the same bits.
    EXPECT_EQ(runSequences(*program, c, inputs, {{63, 1}, {1, 15}, {1, 0}, {5, 1}}, 3), whole);
    Rows one = runSequences(*program, c, {inputs[1]}, {{16}, {1}}, 2);
    EXPECT_EQ(one[0], whole[1]);
  }
}

} // namespace

TEST(AttendTask, HeadSizes) {
  for (auto [depth, pairs] : std::initializer_list<std::pair<int64_t, bool>>{
           {16, false}, {80, false}, {256, false}, {16, true}, {64, true}, {80, true}, {96, true}, {128, true}}) {
    Case c;
    c.depth = depth;
    c.pairs = pairs;
    checkCase(c);
  }
}

TEST(AttendTask, GroupSizesAndElements) {
  for (int64_t group : {1, 3, 4})
    for (const char *element : {"f32", "bf16", "f16", "i8"}) {
      Case c;
      c.group = group;
      c.element = element;
      checkCase(c);
      c.pairs = c.element == "bf16" && group != 3; // which the other tests have
      if (c.pairs)
        checkCase(c);
    }
}

TEST(AttendTask, WindowsPagesAndSoftcap) {
  for (int64_t window : {1, 16, 33, 64, 65}) {
    Case c;
    c.window = window;
    c.page = window == 33 ? 16 : 64;
    c.pairs = window % 2;
    checkCase(c);
  }
  Case capped;
  capped.cap = "5.0";
  checkCase(capped);
}

// Sums of spans are put together by one worker or by many; a window may begin inside a span, or skip some.
TEST(AttendTask, Spans) {
  for (const char *element : {"f32", "bf16", "i8"})
    for (int64_t window : {0, 20, 40}) {
      Case c;
      c.element = element;
      c.window = window;
      c.page = 16;
      c.span = 32;
      c.pairs = c.element == "bf16" && window > 0;
      checkCase(c);
    }
  Case alone;
  alone.page = alone.span = 16;
  alone.partials = false;
  checkCase(alone);
}
