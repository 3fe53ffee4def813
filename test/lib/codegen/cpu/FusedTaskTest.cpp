// Tasks as the compiler fuses them around a dot: queries, keys and values with biases, rope and cache writes; gated
// projections of interleaved weights; logits of wanted rows. Against plain loops, to the bit where no libm is involved.
#include "lib/weights/PackedLayout.h"
#include "test/lib/codegen/cpu/PackedWeight.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr int64_t kMaxTokens = 64;
constexpr int64_t kDepth = 48; // K of every weight here
int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

std::vector<float> randomFloats(int64_t count, uint64_t &state) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = randomFloat(state);
  return values;
}

int64_t panelOf(const std::string &form, int64_t tile) { return !plainForm(form) ? 16 : tile; }

// The product of %v, 48 elements, with ${W}, for the body of a task: its input conversion and the dot.
std::string productOf(const std::string &form) {
  if (form == "bf16")
    return "%b16 = arith.truncf %v : tensor<48xf32> to tensor<48xbf16>\n"
           "%d = tile.dot %b16, %w[%column] : tensor<48xbf16>, ${W} -> tensor<${TN}xf32>";
  if (form == "f32" || form == "f8")
    return "%d = tile.dot %v, %w[%column] : tensor<48xf32>, ${W} -> tensor<${TN}xf32>";
  return "%codes, %scales = tile.quantize %v : tensor<48xf32> -> tensor<64xi16>, tensor<2xf32>\n"
         "%d = tile.scaled_dot %codes, %scales, %w[%column] : tensor<64xi16>, tensor<2xf32>, ${W} -> tensor<${TN}xf32>";
}

std::string typeOf(const std::string &form, int64_t rows, int64_t tile, const std::string &rest = "") {
  return "!llm.weight<" + std::to_string(rows) + "x48, " + form + ", tile = " + std::to_string(tile) +
         ", panel = " + std::to_string(panelOf(form, tile)) + rest + ">";
}

// Emulation is the same code for every form: one of them shows it.
std::vector<Way> waysOf(const std::string &form) {
  std::vector<Way> ways = runnableWays();
  std::erase_if(ways, [&](const Way &way) { return way.emulate && form != "bf16"; });
  return ways;
}

// Rows of `width` channels, each at the stride of a buffer.
void putRows(float *to, const std::vector<float> &rows, int64_t width) {
  for (size_t row = 0; row * static_cast<size_t>(width) < rows.size(); ++row)
    std::copy_n(rows.data() + row * static_cast<size_t>(width), width,
                to + static_cast<int64_t>(row) * strideOf(width));
}
std::vector<float> rowOf(const std::vector<float> &rows, int64_t row, int64_t width) {
  return {rows.begin() + row * width, rows.begin() + (row + 1) * width};
}

// 4 query heads over 2 key-value heads of 16: a column tile is a head. Turns %h by the angles in %rope.
const char *kTurn = R"mlir(
      %first = tile.slice %h at 0 : tensor<16xf32> -> tensor<8xf32>
      %second = tile.slice %h at 8 : tensor<16xf32> -> tensor<8xf32>
      %fc = arith.mulf %first, %cos : tensor<8xf32>
      %ss = arith.mulf %second, %sin : tensor<8xf32>
      %low = arith.subf %fc, %ss : tensor<8xf32>
      %sc = arith.mulf %second, %cos : tensor<8xf32>
      %fs = arith.mulf %first, %sin : tensor<8xf32>
      %high = arith.addf %sc, %fs : tensor<8xf32>
      %turned = tile.concat %low, %high : tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>)mlir";

const char *kQueryKeyValue = R"mlir(
module attributes {llmc.max_tokens = 64 : i64, llmc.page_bytes = ${PAGEBYTES} : i64} {
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  llm.weight @bias : !llm.weight<128, plain> from [{tensor = "b"}] {offset = ${BIASAT} : i64}
  llm.state @kv : ${KV} {offset = ${KVAT} : i64}
  tile.task @qkv rows(%row, %column of 8) (%x: !tile.rows<48>, %w: ${W}, %bias: !llm.weight<128, plain>, %rope: !tile.rows<16>, %q: !tile.rows<64>, %kv: ${KV}, %batch: !llm.batch) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    %c16 = arith.constant 16 : index
    %v = tile.load %x[%row, %c0] : !tile.rows<48> -> tensor<48xf32>
    ${PRODUCT}
    %at = arith.muli %column, %c16 : index
    %biases = tile.load_vector %bias[%at] : !llm.weight<128, plain> -> tensor<16xf32>
    %h = arith.addf %d, %biases : tensor<16xf32>
    %angles = tile.load %rope[%row, %c0] : !tile.rows<16> -> tensor<16xf32>
    %cos = tile.slice %angles at 0 : tensor<16xf32> -> tensor<8xf32>
    %sin = tile.slice %angles at 8 : tensor<16xf32> -> tensor<8xf32>
    tile.when %column in 0 to 4 {
      ${TURN}
      tile.store %turned, %q[%row, %at] : tensor<16xf32>, !tile.rows<64>
    }
    tile.when %column in 4 to 6 {
      ${TURN}
      %head = arith.subi %column, %c4 : index
      tile.append key %turned, %kv[%head], %batch[%row] : tensor<16xf32>, ${KV}
    }
    tile.when %column in 6 to 8 {
      %head = arith.subi %column, %c6 : index
      tile.append value %h, %kv[%head], %batch[%row] : tensor<16xf32>, ${KV}
    }
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @w : ${W}
    %bias = llm.use_weight @bias : !llm.weight<128, plain>
    %kv = llm.use_state @kv : ${KV}
    %x = tile.alloc at 0 : !tile.rows<48>
    %rope = tile.alloc at 256 : !tile.rows<16>
    %q = tile.alloc at 512 : !tile.rows<64>
    tile.launch @qkv(%x, %w, %bias, %rope, %q, %kv, %batch) : !tile.rows<48>, ${W}, !llm.weight<128, plain>, !tile.rows<16>, !tile.rows<64>, ${KV}, !llm.batch
    return
  }
})mlir";

// Pages of 32 positions of 2 heads, keys before values; keys in panels of 16 positions, values of 16 channels, pairs.
constexpr int64_t kHeads = 2, kHeadDim = 16, kPage = 32, kPageElements = 2 * kHeads * kHeadDim * kPage;

int64_t keyAt(int64_t head, int64_t slot, int64_t channel) {
  return head * kPage * kHeadDim + slot / 16 * 16 * kHeadDim + (channel / 2 * 16 + slot % 16) * 2 + channel % 2;
}
int64_t valueAt(int64_t head, int64_t slot, int64_t channel) {
  return (kHeads + head) * kPage * kHeadDim + channel / 16 * 16 * kPage + (slot / 2 * 16 + channel % 16) * 2 + slot % 2;
}

struct ExpectedCache {
  std::vector<float> queries; // [row][64]
  std::vector<uint16_t> kv;   // all pages, ffff where nothing is written
};

ExpectedCache expectQueryKeyValue(const PackedWeight &weight, const std::vector<float> &bias,
                                  const std::vector<float> &x, const std::vector<float> &rope, const Batch &batch,
                                  const std::string &target) {
  ExpectedCache expected;
  // Every page holds two layers: this cache is the second.
  expected.kv.assign(static_cast<size_t>(batch.numPages * 2 * kPageElements), 0xffff);
  for (int64_t row = 0; row < batch.rows(); ++row) {
    std::vector<float> h = referenceDot(weight, rowOf(x, row, kDepth), target);
    const float *cosine = &rope[static_cast<size_t>(row * 16)], *sine = cosine + 8;
    for (size_t c = 0; c < 128; ++c)
      h[c] += bias[c];
    for (size_t head = 0; head < 6; ++head)
      for (size_t c = 0; c < 8; ++c) {
        float &first = h[head * 16 + c], &second = h[head * 16 + 8 + c], low = first * cosine[c] - second * sine[c];
        second = second * cosine[c] + first * sine[c];
        first = low;
      }
    expected.queries.insert(expected.queries.end(), h.begin(), h.begin() + 64);
    int64_t position = batch.positions[static_cast<size_t>(row)];
    int64_t entry = batch.tokenSequence[static_cast<size_t>(row)] * batch.pageTableStride + position / kPage;
    int64_t page = batch.pageTable[static_cast<size_t>(entry)] * 2 * kPageElements + kPageElements;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t c = 0; c < kHeadDim; ++c) {
        expected.kv[static_cast<size_t>(page + keyAt(head, position % kPage, c))] =
            bf16Bits(h[static_cast<size_t>((4 + head) * 16 + c)]);
        expected.kv[static_cast<size_t>(page + valueAt(head, position % kPage, c))] =
            bf16Bits(h[static_cast<size_t>((6 + head) * 16 + c)]);
      }
  }
  return expected;
}

void checkQueryKeyValue(const std::string &form) {
  uint64_t state = 77;
  PackedWeight weight = makeWeight(form, 128, kDepth, 16, 16, state);
  // The first sequence goes from one page to the next.
  Batch batch({{29, 5}, {0, 3}}, kPage);
  std::vector<float> bias = randomFloats(128, state), x = randomFloats(batch.rows() * kDepth, state),
                     rope = randomFloats(batch.rows() * 16, state);
  size_t biasAt = (weight.bytes.size() + 63) / 64 * 64;
  std::string text = fill(kQueryKeyValue, {{"PRODUCT", productOf(form)},
                                           {"TURN", kTurn},
                                           {"W", typeOf(form, 128, 16)},
                                           {"TN", "16"},
                                           {"KV", "!llm.kv<2x16xbf16, page = 32, panel = 16, pack = 2>"},
                                           {"PAGEBYTES", std::to_string(2 * kPageElements * 2)},
                                           {"KVAT", std::to_string(kPageElements * 2)},
                                           {"BIASAT", std::to_string(biasAt)}});
  AlignedBytes weights(biasAt + 128 * 4);
  std::copy(weight.bytes.begin(), weight.bytes.end(), weights.data());
  std::copy(bias.begin(), bias.end(), weights.floats() + biasAt / 4);
  for (const Way &way : waysOf(form)) {
    ExpectedCache expected = expectQueryKeyValue(weight, bias, x, rope, batch, way.target);
    auto program = StepProgram::compile(text, way.target, way.emulate);
    ASSERT_TRUE(program);
    for (int workers : {1, 3}) {
      SCOPED_TRACE(nameOf(way) + " " + form + ", " + std::to_string(workers) + " workers");
      AlignedBytes arena(kMaxTokens * 3 * 256), kv(expected.kv.size() * 2, 0xff);
      putRows(arena.floats(), x, kDepth);
      putRows(arena.floats() + kMaxTokens * 64, rope, 16);
      StepProgram::Memory memory;
      memory.weights = weights.data();
      memory.arena = arena.data();
      memory.kv = kv.data();
      program->run(batch, memory, workers);
      const float *queries = arena.floats() + 2 * kMaxTokens * 64;
      for (size_t i = 0; i < expected.queries.size(); ++i)
        ASSERT_EQ(queries[i], expected.queries[i]) << "row " << i / 64 << " channel " << i % 64;
      const auto *written = reinterpret_cast<const uint16_t *>(kv.data());
      for (size_t i = 0; i < expected.kv.size(); ++i)
        ASSERT_EQ(written[i], expected.kv[i])
            << "page " << i / (2 * kPageElements) << " element " << i % (2 * kPageElements);
    }
  }
}

// A gate of 40 channels in blocks of 32: the second tile holds 8 of the gate and 8 of what it gates.
const char *kGated = R"mlir(
module attributes {llmc.max_tokens = 64 : i64, llmc.page_bytes = 0 : i64} {
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  tile.task @gated rows(%row, %column of 2) (%x: !tile.rows<48>, %w: ${W}, %y: !tile.rows<40>) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %v = tile.load %x[%row, %c0] : !tile.rows<48> -> tensor<48xf32>
    ${PRODUCT}
    %gate = tile.slice %d at 0 : tensor<64xf32> -> tensor<32xf32>
    %up = tile.slice %d at 32 : tensor<64xf32> -> tensor<32xf32>
    %open = arith.maximumf %gate, %zero : tensor<32xf32>
    %z = arith.mulf %open, %up : tensor<32xf32>
    %at = arith.muli %column, %c32 : index
    tile.store %z, %y[%row, %at] : tensor<32xf32>, !tile.rows<40>
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @w : ${W}
    %x = tile.alloc at 0 : !tile.rows<48>
    %y = tile.alloc at 256 : !tile.rows<40>
    tile.launch @gated(%x, %w, %y) : !tile.rows<48>, ${W}, !tile.rows<40>
    return
  }
})mlir";

void checkGated(const std::string &form) {
  uint64_t state = 78;
  const int64_t rows = 7, channels = 40, panel = panelOf(form, 64);
  // Packed by places: two whole tiles, of which the interleaved weight has rows at the places that its layout names.
  PackedWeight places = makeWeight(form, 128, kDepth, 64, panel, state);
  PackedLayout layout{2 * channels, kDepth, *llm::symbolizeWeightForm(form), 64, panel, 32};
  ASSERT_TRUE(checkLayout(layout).ok());
  auto placeOf = [&](int64_t row) {
    TilePlace place = layout.placeOf(row);
    return static_cast<size_t>(place.tile * 64 + place.place);
  };
  std::vector<float> x = randomFloats(rows * kDepth, state);
  std::string text =
      fill(kGated, {{"PRODUCT", productOf(form)}, {"W", typeOf(form, 80, 64, ", interleave = 32")}, {"TN", "64"}});
  AlignedBytes weights(places.bytes.size());
  std::copy(places.bytes.begin(), places.bytes.end(), weights.data());
  for (const Way &way : waysOf(form)) {
    SCOPED_TRACE(nameOf(way) + " " + form);
    auto program = StepProgram::compile(text, way.target, way.emulate);
    ASSERT_TRUE(program);
    AlignedBytes arena(kMaxTokens * 2 * 256);
    putRows(arena.floats(), x, kDepth);
    StepProgram::Memory memory;
    memory.weights = weights.data();
    memory.arena = arena.data();
    program->run(Batch({{0, rows}}, 64), memory, 2);
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> product = referenceDot(places, rowOf(x, row, kDepth), way.target);
      for (int64_t c = 0; c < channels; ++c)
        ASSERT_EQ(arena.floats()[kMaxTokens * 64 + row * 64 + c],
                  std::max(product[placeOf(c)], 0.0f) * product[placeOf(channels + c)])
            << "row " << row << " channel " << c;
    }
  }
}

// 37 words: logits lie 37 apart, not at the stride of a buffer, and the last tile goes past its row.
const char *kLogits = R"mlir(
module attributes {llmc.max_tokens = 64 : i64, llmc.page_bytes = 0 : i64} {
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  tile.task @head logit_rows(%row, %column of 3) (%x: !tile.rows<48>, %w: ${W}, %batch: !llm.batch, %y: !tile.rows<37>) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %wanted = tile.batch logit_row %batch[%row]
    %v = tile.load %x[%wanted, %c0] : !tile.rows<48> -> tensor<48xf32>
    ${PRODUCT}
    %cap = arith.constant dense<2.0> : tensor<16xf32>
    %scaled = arith.divf %d, %cap : tensor<16xf32>
    %bent = math.tanh %scaled : tensor<16xf32>
    %capped = arith.mulf %bent, %cap : tensor<16xf32>
    %at = arith.muli %column, %c16 : index
    tile.store ${RESULT}, %y[%row, %at] : tensor<16xf32>, !tile.rows<37>
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @w : ${W}
    %x = tile.alloc at 0 : !tile.rows<48>
    %y = tile.logits : !tile.rows<37>
    tile.launch @head(%x, %w, %batch, %y) : !tile.rows<48>, ${W}, !llm.batch, !tile.rows<37>
    return
  }
})mlir";

void checkLogits(const std::string &form, bool softcap) {
  uint64_t state = 79;
  const int64_t words = 37;
  PackedWeight weight = makeWeight(form, words, kDepth, 16, 16, state);
  Batch batch({{0, 6}, {3, 2}}, 64);
  batch.logitRows = {5, 1, 7};
  std::vector<float> x = randomFloats(batch.rows() * kDepth, state);
  std::string text = fill(kLogits, {{"PRODUCT", productOf(form)},
                                    {"W", typeOf(form, words, 16)},
                                    {"TN", "16"},
                                    {"RESULT", softcap ? "%capped" : "%d"}});
  AlignedBytes weights(weight.bytes.size());
  std::copy(weight.bytes.begin(), weight.bytes.end(), weights.data());
  for (const Way &way : waysOf(form)) {
    auto program = StepProgram::compile(text, way.target, way.emulate);
    ASSERT_TRUE(program);
    for (int workers : {1, 2, 3}) {
      SCOPED_TRACE(nameOf(way) + " " + form + ", " + std::to_string(workers) + " workers");
      AlignedBytes arena(kMaxTokens * 256);
      putRows(arena.floats(), x, kDepth);
      std::vector<float> logits(3 * words + 32, -7.0f);
      StepProgram::Memory memory;
      memory.weights = weights.data();
      memory.arena = arena.data();
      memory.logits = logits.data();
      program->run(batch, memory, workers);
      for (int64_t row = 0; row < 3; ++row) {
        std::vector<float> product =
            referenceDot(weight, rowOf(x, batch.logitRows[static_cast<size_t>(row)], kDepth), way.target);
        for (int64_t n = 0; n < words; ++n) {
          float actual = logits[static_cast<size_t>(row * words + n)], raw = product[static_cast<size_t>(n)];
          // tanh is a rational function of 7 ulp at most: 7 * 2^-24 of 1, times the cap of 2.
          if (softcap)
            ASSERT_NEAR(actual, 2 * std::tanh(static_cast<double>(raw) / 2), 9e-7) << "row " << row << " word " << n;
          else
            ASSERT_EQ(actual, raw) << "row " << row << " word " << n;
        }
      }
      for (size_t i = 3 * static_cast<size_t>(words); i < logits.size(); ++i)
        ASSERT_EQ(logits[i], -7.0f) << "written past the logits, element " << i;
    }
  }
}

} // namespace

TEST(FusedTask, QueriesKeysAndValues) {
  for (const char *form : {"f32", "bf16", "i8", "i4m", "f4", "f8"})
    checkQueryKeyValue(form);
}

TEST(FusedTask, GatedWithAPartialLastBlock) {
  for (const char *form : {"f32", "bf16", "i8", "i4"})
    checkGated(form);
}

TEST(FusedTask, LogitsAreDense) {
  for (const char *form : {"f32", "bf16", "i4m"})
    checkLogits(form, /*softcap=*/false);
}

TEST(FusedTask, LogitsWithSoftcap) { checkLogits("bf16", /*softcap=*/true); }
