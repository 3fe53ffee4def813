// Row programs: norms, residuals, conditions with rope and cache writes, gathers, records, logits.
#include "test/lib/codegen/cpu/PackedWeight.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

// Sixteen partial sums, then halves: the order of tile.reduce.
float reduceAdd(const std::vector<float> &x) {
  float partial[16] = {};
  for (size_t i = 0; i < x.size(); ++i)
    partial[i % 16] += x[i];
  for (int half = 8; half >= 1; half /= 2)
    for (int i = 0; i < half; ++i)
      partial[i] += partial[half + i];
  return partial[0];
}

std::vector<float> rmsNorm(const std::vector<float> &x, const std::vector<float> &gain) {
  std::vector<float> squares;
  for (float v : x)
    squares.push_back(v * v);
  float inverse = 1.0f / std::sqrt(reduceAdd(squares) / static_cast<float>(x.size()) + 1e-5f);
  std::vector<float> y;
  for (size_t i = 0; i < x.size(); ++i)
    y.push_back(x[i] * inverse * gain[i]);
  return y;
}

std::vector<float> randomFloats(size_t count, uint64_t &state) {
  std::vector<float> values(count);
  for (float &value : values)
    value = randomFloat(state);
  return values;
}

const char *kNormAdd = R"mlir(
module attributes {llmc.max_tokens = 64 : i64, llmc.page_bytes = 0 : i64} {
  llm.weight @g : !llm.weight<${C}, plain> from [{tensor = "g"}] {offset = 0 : i64}
  tile.task @norm rows(%row, %column of 1) (%x: !tile.rows<${C}>, %g: !llm.weight<${C}, plain>, %y: !tile.rows<${C}>, %batch: !llm.batch) {
    %c0 = arith.constant 0 : index
    %n = arith.constant ${C}.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %v = tile.load %x[%row, %c0] : !tile.rows<${C}> -> tensor<${C}xf32>
    %sq = arith.mulf %v, %v : tensor<${C}xf32>
    %sum = tile.reduce add %sq : tensor<${C}xf32>
    %mean = arith.divf %sum, %n : f32
    %shifted = arith.addf %mean, %eps : f32
    %inverse = math.rsqrt %shifted : f32
    %spread = tile.splat %inverse : tensor<${C}xf32>
    %gain = tile.load_vector %g[%c0] : !llm.weight<${C}, plain> -> tensor<${C}xf32>
    %scaled = arith.mulf %v, %spread : tensor<${C}xf32>
    %normed = arith.mulf %scaled, %gain : tensor<${C}xf32>
    tile.store %normed, %y[%row, %c0] : tensor<${C}xf32>, !tile.rows<${C}>
    %twice = arith.addf %normed, %v : tensor<${C}xf32>
    tile.store %twice, %x[%row, %c0] : tensor<${C}xf32>, !tile.rows<${C}>
    tile.record %v, %batch[%row] at 1 : tensor<${C}xf32>
  }
  func.func @layer(%x: !tile.rows<${C}>, %g: !llm.weight<${C}, plain>, %y: !tile.rows<${C}>, %batch: !llm.batch) {
    tile.launch @norm(%x, %g, %y, %batch) : !tile.rows<${C}>, !llm.weight<${C}, plain>, !tile.rows<${C}>, !llm.batch
    return
  }
  func.func @step(%batch: !llm.batch) {
    %g = llm.use_weight @g : !llm.weight<${C}, plain>
    %x = tile.alloc at 0 : !tile.rows<${C}>
    %y = tile.alloc at ${BYTES} : !tile.rows<${C}>
    func.call @layer(%x, %g, %y, %batch) : (!tile.rows<${C}>, !llm.weight<${C}, plain>, !tile.rows<${C}>, !llm.batch) -> ()
    return
  }
})mlir";

int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

} // namespace

// A value loaded before a store to its buffer keeps its old contents: the record is of %v, not of what replaced it.
TEST(RowTask, NormStoreAndRecord) {
  for (int64_t channels : {1, 15, 16, 17, 63, 64, 65, 576}) {
    uint64_t state = static_cast<uint64_t>(channels);
    const int64_t rows = 5, stride = strideOf(channels);
    std::vector<float> x = randomFloats(static_cast<size_t>(rows * channels), state);
    std::vector<float> gain = randomFloats(static_cast<size_t>(channels), state);
    std::string text = fill(kNormAdd, {{"C", std::to_string(channels)}, {"BYTES", std::to_string(stride * 4)}});
    for (const Way &way : runnableWays()) {
      SCOPED_TRACE(nameOf(way) + " " + std::to_string(channels));
      auto program = StepProgram::compile(text, way.target, way.emulate);
      ASSERT_TRUE(program);
      for (int workers : {1, 2, 3}) {
        AlignedBytes arena(static_cast<size_t>(64 * stride * 8)), weights(static_cast<size_t>(stride * 4));
        std::copy(gain.begin(), gain.end(), weights.floats());
        const int64_t recordChannels = channels + 3; // there are wider records
        std::vector<float> record(static_cast<size_t>(2 * rows * recordChannels), -7.0f);
        for (int64_t t = 0; t < rows; ++t)
          std::copy_n(x.begin() + t * channels, channels, arena.floats() + t * stride);
        StepProgram::Memory memory;
        memory.weights = weights.data();
        memory.arena = arena.data();
        memory.record = record.data();
        memory.recordRows = rows;
        memory.recordChannels = recordChannels;
        program->run(Batch({{0, static_cast<int32_t>(rows)}}, 64), memory, workers);
        for (int64_t t = 0; t < rows; ++t) {
          std::vector<float> row(x.begin() + t * channels, x.begin() + (t + 1) * channels);
          std::vector<float> normed = rmsNorm(row, gain);
          for (int64_t c = 0; c < channels; ++c) {
            size_t i = static_cast<size_t>(c);
            ASSERT_EQ(arena.floats()[64 * stride + t * stride + c], normed[i]) << t << " " << c;
            ASSERT_EQ(arena.floats()[t * stride + c], normed[i] + row[i]) << t << " " << c;
            ASSERT_EQ(record[static_cast<size_t>((rows + t) * recordChannels + c)], row[i]) << t << " " << c;
          }
        }
        EXPECT_EQ(record[record.size() - 3], -7.0f); // nothing past the record
      }
    }
  }
}

namespace {
const char *kGather = R"mlir(
module attributes {llmc.max_tokens = 64 : i64, llmc.page_bytes = 0 : i64} {
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  tile.task @embed rows(%row, %column of 1) (%batch: !llm.batch, %w: ${W}, %y: !tile.rows<${K}>) {
    %c0 = arith.constant 0 : index
    %token = tile.batch token %batch[%row]
    %v = tile.gather %w[%token] : ${W} -> tensor<${K}xf32>
    %two = arith.constant dense<2.0> : tensor<${K}xf32>
    %s = arith.mulf %v, %two : tensor<${K}xf32>
    tile.store %s, %y[%row, %c0] : tensor<${K}xf32>, !tile.rows<${K}>
  }
  func.func @step(%batch: !llm.batch) {
    %w = llm.use_weight @w : ${W}
    %y = tile.alloc at 0 : !tile.rows<${K}>
    tile.launch @embed(%batch, %w, %y) : !llm.batch, ${W}, !tile.rows<${K}>
    return
  }
})mlir";
} // namespace

TEST(RowTask, GatherDequantizes) {
  for (const char *form : {"f32", "bf16", "i8", "i4", "i4m", "f4", "f8"}) {
    uint64_t state = 9;
    const int64_t columns = 70, stride = strideOf(columns), rows = 7;
    PackedWeight w = makeWeight(form, 90, columns, 64, !plainForm(form) ? 16 : 32, state);
    std::string type =
        std::string("!llm.weight<90x70, ") + form + ", tile = 64, panel = " + std::to_string(w.panel) + ">";
    for (const Way &way : runnableWays()) {
      SCOPED_TRACE(nameOf(way) + " " + form);
      auto program = StepProgram::compile(fill(kGather, {{"W", type}, {"K", "70"}}), way.target, way.emulate);
      ASSERT_TRUE(program);
      AlignedBytes arena(static_cast<size_t>(64 * stride * 4)), weights(w.bytes.size());
      std::copy(w.bytes.begin(), w.bytes.end(), weights.data());
      Batch batch({{0, static_cast<int32_t>(rows)}}, 64);
      batch.tokens = {0, 15, 16, 63, 64, 89, 33};
      StepProgram::Memory memory;
      memory.weights = weights.data();
      memory.arena = arena.data();
      program->run(batch, memory, 2);
      for (int64_t t = 0; t < rows; ++t)
        for (int64_t k = 0; k < columns; ++k) {
          int64_t n = batch.tokens[static_cast<size_t>(t)];
          float expected;
          if (w.values.empty()) {
            size_t group = static_cast<size_t>(n * w.groups() + k / 32);
            bool second = w.form == "f4" && k % 32 >= 16;
            expected = static_cast<float>(w.codes[static_cast<size_t>(n * w.groups() * 32 + k)]) *
                       (second ? w.minima : w.scales)[group];
            if (w.form == "f8")
              expected = fromF8E4M3(static_cast<uint8_t>(w.codes[static_cast<size_t>(n * w.groups() * 32 + k)])) *
                         w.scales[group];
            if (w.form == "i4m")
              expected += w.minima[group];
          } else {
            expected = w.values[static_cast<size_t>(n * columns + k)];
          }
          ASSERT_EQ(arena.floats()[t * stride + k], 2 * expected) << t << " " << k;
        }
    }
  }
}
