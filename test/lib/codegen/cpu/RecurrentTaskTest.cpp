// Linear attention, short convolutions and sums over windows as whole tasks: against the interpreted ops to the bit,
// states included; against double precision with an error bound; and for bits that must not depend on batch, chunks,
// slots or workers.
#include "lib/reference/RecurrentFormulas.h"
#include "lib/reference/RecurrentKernels.h"
#include "mlir/IR/MLIRContext.h"
#include "test/lib/codegen/cpu/PackedWeight.h"
#include <gtest/gtest.h>
#include <map>

using namespace llmc;
using namespace llmc::test;

namespace {

// Query, key, value, decay and beta of all heads lie side by side in the rows of %x.
const char *kRecur = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = 0 : i64, llmc.state_bytes = ${SLOT} : i64} {
  llm.state @s : ${S} {offset = 64 : i64}
  tile.task @recur rows(%row, %column of ${COLUMNS}) (%x: !tile.rows<${X}>, %s: ${S}, %batch: !llm.batch, %y: !tile.rows<${Y}>) {
    %n = arith.constant ${N} : index
    %v = arith.constant ${V} : index
    %k = arith.constant ${K} : index
    %group = arith.constant ${GROUP} : index
    %dn = arith.constant ${DN} : index
    %keystart = arith.constant ${KEYSTART} : index
    %valuestart = arith.constant ${VALUESTART} : index
    %decaystart = arith.constant ${DECAYSTART} : index
    %betastart = arith.constant ${BETASTART} : index
    %at = arith.muli %column, %n : index
    %head = arith.divui %at, %v : index
    %keyhead = arith.divui %head, %group : index
    %qat = arith.muli %keyhead, %k : index
    %kat = arith.addi %qat, %keystart : index
    %vat = arith.addi %at, %valuestart : index
    %head_decay = arith.muli %head, %dn : index
    %dat = arith.addi %head_decay, %decaystart : index
    %bat = arith.addi %head, %betastart : index
    %q = tile.load %x[%row, %qat] : !tile.rows<${X}> -> tensor<${K}xf32>
    %key = tile.load %x[%row, %kat] : !tile.rows<${X}> -> tensor<${K}xf32>
    %value = tile.load %x[%row, %vat] : !tile.rows<${X}> -> tensor<${N}xf32>
    %a = tile.load %x[%row, %dat] : !tile.rows<${X}> -> tensor<${A}xf32>
    %b = tile.load %x[%row, %bat] : !tile.rows<${X}> -> tensor<${G}xf32>
    %o = tile.recur %q, %key, %value ${OPTIONS}, %s[%column], %batch[%row] : tensor<${K}xf32>, tensor<${N}xf32>${TYPES}, ${S}
    tile.store %o, %y[%row, %at] : tensor<${N}xf32>, !tile.rows<${Y}>
  }
  func.func @step(%batch: !llm.batch) {
    %s = llm.use_state @s : ${S}
    %x = tile.alloc at 0 : !tile.rows<${X}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${Y}>
    tile.launch @recur(%x, %s, %batch, %y) : !tile.rows<${X}>, ${S}, !llm.batch, !tile.rows<${Y}>
    return
  }
})mlir";

const char *kConvolve = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = 0 : i64, llmc.state_bytes = ${SLOT} : i64} {
  llm.state @s : ${S} {offset = 64 : i64}
  llm.weight @w : ${W} from [{tensor = "w"}] {offset = 0 : i64}
  tile.task @convolve rows(%row, %column of ${COLUMNS}) (%x: !tile.rows<${X}>, %w: ${W}, %s: ${S}, %batch: !llm.batch, %y: !tile.rows<${Y}>) {
    %n = arith.constant ${N} : index
    %at = arith.muli %column, %n : index
    %in = tile.load %x[%row, %at] : !tile.rows<${X}> -> tensor<${N}xf32>
    %o = tile.convolve %in, %w[%column], %s, %batch[%row] : tensor<${N}xf32>, ${W}, ${S}
    tile.store %o, %y[%row, %at] : tensor<${N}xf32>, !tile.rows<${Y}>
  }
  func.func @step(%batch: !llm.batch) {
    %s = llm.use_state @s : ${S}
    %w = llm.use_weight @w : ${W}
    %x = tile.alloc at 0 : !tile.rows<${X}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${Y}>
    tile.launch @convolve(%x, %w, %s, %batch, %y) : !tile.rows<${X}>, ${W}, ${S}, !llm.batch, !tile.rows<${Y}>
    return
  }
})mlir";

// Values, then gates, of ${PARTS} parts each.
const char *kPool = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = 0 : i64, llmc.state_bytes = ${SLOT} : i64} {
  llm.state @s : ${S} {offset = 64 : i64}
  tile.task @pool rows(%row, %column of ${COLUMNS}) (%x: !tile.rows<${X}>, %s: ${S}, %batch: !llm.batch, %y: !tile.rows<${Y}>) {
    %n = arith.constant ${N} : index
    %c = arith.constant ${Y} : index
    %at = arith.muli %column, %n : index
    %b = arith.addi %at, %c : index
    %d = arith.addi %b, %c : index
    %e = arith.addi %d, %c : index
    ${LOADS}
    %o = tile.pool %v, %g, %s[%column], %batch[%row] {window = ${WINDOW} : i64} : tensor<${GIVEN}xf32>, ${S} -> tensor<${N}xf32>
    tile.store %o, %y[%row, %at] : tensor<${N}xf32>, !tile.rows<${Y}>
  }
  func.func @step(%batch: !llm.batch) {
    %s = llm.use_state @s : ${S}
    %x = tile.alloc at 0 : !tile.rows<${X}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${Y}>
    tile.launch @pool(%x, %s, %batch, %y) : !tile.rows<${X}>, ${S}, !llm.batch, !tile.rows<${Y}>
    return
  }
})mlir";

std::string str(int64_t value) { return std::to_string(value); }
int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

enum class Decay { None, PerHead, PerKey };

mlir::MLIRContext &context() {
  static mlir::MLIRContext made;
  made.loadDialect<llm::LlmDialect>();
  return made;
}

// What the shapes of a task have in common for a run.
struct Shape {
  llm::RecurrentType state;
  int64_t x = 0, y = 0, columns = 0, tile = 0; // channels; column tiles, values in each
  const uint8_t *weights = nullptr;
  int64_t stateAt() const { return 64; }
  int64_t slotBytes() const { return stateAt() + (state.bytes() + 63) / 64 * 64; }
  std::string stateText() const {
    return "!llm.recurrent<" + str(state.getHeads()) + "x" + str(state.getKeys()) + "x" + str(state.getValues()) + ">";
  }
};

using Rows = std::vector<std::vector<float>>; // per sequence, [length][channels]
using Steps = std::vector<std::vector<int32_t>>;
constexpr int kSlots = 4;

// What sequences keep: sequence s in slot `slots[s]`. Starts as NaN: a state that was never cleared shows.
struct States {
  explicit States(const Shape &shape) : bytes(static_cast<size_t>(kSlots * shape.slotBytes()), 0xff) {}
  std::vector<int32_t> slots = {2, 0, 3};
  AlignedBytes bytes;
  std::vector<float> of(const Shape &shape, size_t sequence) {
    auto *start = reinterpret_cast<float *>(bytes.data() + slots[sequence] * shape.slotBytes() + shape.stateAt());
    return {start, start + shape.state.bytes() / 4};
  }
};

Rows runSequences(StepProgram &program, const Shape &shape, const Rows &inputs, const Steps &steps, int workers,
                  States &states) {
  std::vector<int32_t> done(inputs.size(), 0);
  Rows outputs(inputs.size());
  for (const std::vector<int32_t> &step : steps) {
    AlignedBytes arena(static_cast<size_t>(256 * (strideOf(shape.x) + strideOf(shape.y)) * 4), 0xff);
    std::vector<Sequence> sequences;
    std::vector<int32_t> slots;
    float *row = arena.floats();
    std::vector<size_t> present;
    for (size_t s = 0; s < inputs.size(); ++s) {
      if (step[s] == 0)
        continue;
      present.push_back(s);
      sequences.push_back({done[s], step[s]});
      slots.push_back(states.slots[s]);
      for (int32_t i = 0; i < step[s]; ++i, row += strideOf(shape.x)) {
        std::fill_n(row, strideOf(shape.x), 7.0f); // padding is finite
        std::copy_n(inputs[s].begin() + (done[s] + i) * shape.x, shape.x, row);
      }
      done[s] += step[s];
    }
    Batch batch(sequences, 16);
    batch.stateSlots = slots;
    StepProgram::Memory memory;
    memory.arena = arena.data();
    memory.state = states.bytes.data();
    memory.weights = const_cast<uint8_t *>(shape.weights);
    program.run(batch, memory, workers);
    const float *out = arena.floats() + 256 * strideOf(shape.x);
    for (size_t s : present)
      for (int32_t i = 0; i < step[s]; ++i, out += strideOf(shape.y))
        outputs[s].insert(outputs[s].end(), out, out + shape.y);
  }
  return outputs;
}

// Every sequence in chunks of `chunk`, all beginning at once.
Steps chunksOf(const Shape &shape, const Rows &inputs, int32_t chunk) {
  Steps steps;
  std::vector<int32_t> left;
  for (const std::vector<float> &input : inputs)
    left.push_back(static_cast<int32_t>(static_cast<int64_t>(input.size()) / shape.x));
  while (std::any_of(left.begin(), left.end(), [](int32_t rows) { return rows > 0; })) {
    steps.emplace_back();
    for (int32_t &rows : left) {
      steps.back().push_back(std::min(rows, chunk));
      rows -= steps.back().back();
    }
  }
  return steps;
}

// Runs one row, which is given with the view of a state, in the interpreter: fills the row's results.
using InterpretedRow = std::function<void(const float *x, const reference::StateView &state, float *y)>;

void checkProgram(const std::string &module, const Shape &shape, const Rows &inputs,
                  const InterpretedRow &interpreted) {
  Rows expected, expectedStates;
  for (const std::vector<float> &input : inputs) {
    std::vector<float> &state = expectedStates.emplace_back(static_cast<size_t>(shape.state.bytes() / 4), 0.0f);
    std::vector<float> &output = expected.emplace_back();
    for (size_t at = 0; at < input.size(); at += static_cast<size_t>(shape.x)) {
      output.resize(output.size() + static_cast<size_t>(shape.y));
      interpreted(&input[at], {shape.state, state.data()}, &output[output.size() - static_cast<size_t>(shape.y)]);
    }
  }
  for (const Way &way : runnableWays()) {
    SCOPED_TRACE(nameOf(way));
    auto program = StepProgram::compile(module, way.target, way.emulate);
    ASSERT_TRUE(program);
    for (auto [chunk, workers] : {std::pair(1, 3), std::pair(5, 2), std::pair(16, 1), std::pair(100, 3)}) {
      States states(shape);
      Rows outputs = runSequences(*program, shape, inputs, chunksOf(shape, inputs, chunk), workers, states);
      for (size_t s = 0; s < inputs.size(); ++s) {
        ASSERT_EQ(outputs[s], expected[s]) << "sequence " << s << " in chunks of " << chunk;
        ASSERT_EQ(states.of(shape, s), expectedStates[s]) << "state of " << s << " in chunks of " << chunk;
      }
      // A slot that another sequence has left: nothing of it stays.
      states.slots = {3, 2, 0};
      ASSERT_EQ(runSequences(*program, shape, {inputs[1]}, {{3}, {4}, {2}}, workers, states)[0], expected[1]);
    }
    // Prefill in one go, then decode, while others begin and end.
    States states(shape);
    Rows outputs =
        runSequences(*program, shape, inputs, {{33, 0, 0}, {1, 4, 0}, {1, 1, 5}, {1, 4, 0}, {1, 0, 0}}, 2, states);
    EXPECT_EQ(outputs, expected);
  }
}

//===-- linear attention --===//

struct RecurCase {
  int64_t heads = 4, keyHeads = 2, keys = 16, values = 32;
  Decay decay = Decay::PerHead;
  bool beta = true;
  int64_t tileHeads = 1; // of a column tile, where lanes are keys

  int64_t decayPerHead() const { return decay == Decay::PerKey ? keys : 1; }
  int64_t keyAt() const { return keyHeads * keys; }
  int64_t valueAt() const { return 2 * keyAt(); }
  int64_t decayAt() const { return valueAt() + heads * values; }
  int64_t betaAt() const { return decayAt() + heads * decayPerHead(); }
  Shape shape() const {
    Shape shape;
    shape.state = llm::RecurrentType::get(&context(), heads, keys, values);
    shape.tile = shape.state.lanesAreKeys() ? tileHeads * values : std::min(values, shape.state.blockLanes());
    shape.x = betaAt() + heads;
    shape.y = heads * values;
    shape.columns = heads * values / shape.tile;
    return shape;
  }
};

std::string moduleOf(const RecurCase &c, const Shape &shape) {
  int64_t tileHeads = std::max<int64_t>(1, shape.tile / c.values);
  std::string decay = "tensor<" + str(tileHeads * c.decayPerHead()) + "xf32>",
              beta = "tensor<" + str(tileHeads) + "xf32>";
  return fill(kRecur, {{"OPTIONS", std::string(c.decay == Decay::None ? "" : "decay %a ") + (c.beta ? "beta %b" : "")},
                       {"TYPES", (c.decay == Decay::None ? "" : " decay " + decay) + (c.beta ? " beta " + beta : "")},
                       {"S", shape.stateText()},
                       {"SLOT", str(shape.slotBytes())},
                       {"COLUMNS", str(shape.columns)},
                       {"X", str(shape.x)},
                       {"Y", str(shape.y)},
                       {"N", str(shape.tile)},
                       {"V", str(c.values)},
                       {"K", str(c.keys)},
                       {"GROUP", str(c.heads / c.keyHeads)},
                       {"DN", str(c.decayPerHead())},
                       {"A", str(tileHeads * c.decayPerHead())},
                       {"G", str(tileHeads)},
                       {"KEYSTART", str(c.keyAt())},
                       {"VALUESTART", str(c.valueAt())},
                       {"DECAYSTART", str(c.decayAt())},
                       {"BETASTART", str(c.betaAt())},
                       {"XBYTES", str(strideOf(shape.x) * 4)}});
}

// Keys shorter than 1 and factors in 0 .. 1, as models make them: the state stays bounded.
Rows randomRows(const RecurCase &c, const Shape &shape) {
  Rows rows;
  uint64_t state = static_cast<uint64_t>(c.keys * 1000 + c.values);
  for (int64_t length : {37, 9, 5}) {
    std::vector<float> &row = rows.emplace_back(static_cast<size_t>(length * shape.x));
    for (size_t i = 0; i < row.size(); ++i) {
      auto channel = static_cast<int64_t>(i) % shape.x;
      row[i] = randomFloat(state);
      if (channel < c.valueAt())
        row[i] /= std::sqrt(static_cast<float>(c.keys));
      if (channel >= c.decayAt())
        row[i] = (row[i] + 1) / 2;
    }
  }
  return rows;
}

// The formula of llm.linear_attention in double precision.
void checkSequence(const RecurCase &c, const std::vector<float> &x, int64_t channels, const std::vector<float> &y) {
  std::vector<double> state(static_cast<size_t>(c.heads * c.keys * c.values));
  auto length = static_cast<int64_t>(x.size()) / channels;
  for (int64_t t = 0; t < length; ++t)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t v = 0; v < c.values; ++v) {
        const float *row = &x[static_cast<size_t>(t * channels)];
        const float *query = row + h / (c.heads / c.keyHeads) * c.keys, *key = query + c.keyAt();
        double *column = &state[static_cast<size_t>((h * c.values + v) * c.keys)];
        double seen = 0, result = 0;
        for (int64_t k = 0; k < c.keys; ++k) {
          if (c.decay != Decay::None)
            column[k] *= row[c.decayAt() + h * c.decayPerHead() + (c.decay == Decay::PerKey ? k : 0)];
          seen += column[k] * key[k];
        }
        double update = row[c.valueAt() + h * c.values + v];
        if (c.beta)
          update = row[c.betaAt() + h] * (update - seen);
        for (int64_t k = 0; k < c.keys; ++k) {
          column[k] += key[k] * update;
          result += query[k] * column[k];
        }
        // Elements stay below 10, and each is rounded some 40 times: 40 * 10 * 2^-24, less by averaging.
        ASSERT_NEAR(y[static_cast<size_t>((t * c.heads + h) * c.values + v)], result, 1e-5)
            << "row " << t << " head " << h << " value " << v;
      }
}

void checkCase(const RecurCase &c) {
  Shape shape = c.shape();
  SCOPED_TRACE(str(c.heads) + " heads, " + str(c.keyHeads) + " of keys, " + str(c.keys) + " x " + str(c.values) +
               " decay " + str(static_cast<int>(c.decay)) + (c.beta ? ", beta" : ""));
  Rows inputs = randomRows(c, shape);
  int64_t tileHeads = std::max<int64_t>(1, shape.tile / c.values);
  auto part = [](const float *start, int64_t size) { return std::span(start, static_cast<size_t>(size)); };
  auto interpreted = [&](const float *x, const reference::StateView &state, float *y) {
    for (int64_t column = 0; column < shape.columns; ++column) {
      int64_t head = column * shape.tile / c.values, keyHead = head / (c.heads / c.keyHeads);
      reference::RecurOperands operands;
      operands.query = part(x + keyHead * c.keys, c.keys);
      operands.key = part(x + c.keyAt() + keyHead * c.keys, c.keys);
      operands.value = part(x + c.valueAt() + column * shape.tile, shape.tile);
      if (c.decay != Decay::None)
        operands.decay = part(x + c.decayAt() + head * c.decayPerHead(), tileHeads * c.decayPerHead());
      if (c.beta)
        operands.beta = part(x + c.betaAt() + head, tileHeads);
      reference::recur(operands, column, state, {y + column * shape.tile, static_cast<size_t>(shape.tile)});
    }
  };
  ASSERT_NO_FATAL_FAILURE(checkProgram(moduleOf(c, shape), shape, inputs, interpreted));
  std::vector<float> state(static_cast<size_t>(shape.state.bytes() / 4), 0.0f),
      outputs(static_cast<size_t>(37 * shape.y));
  for (int64_t t = 0; t < 37; ++t)
    interpreted(&inputs[0][static_cast<size_t>(t * shape.x)], {shape.state, state.data()},
                &outputs[static_cast<size_t>(t * shape.y)]);
  checkSequence(c, inputs[0], shape.x, outputs);
}

} // namespace

TEST(RecurrentTask, KeysAndValues) {
  for (auto [keys, values] : {std::pair(8, 24), std::pair(16, 16), std::pair(24, 128), std::pair(32, 8),
                              std::pair(128, 32), std::pair(7, 40), std::pair(1, 17), std::pair(80, 1)})
    checkCase({4, 2, keys, values});
}

TEST(RecurrentTask, DecayAndBeta) {
  for (Decay decay : {Decay::None, Decay::PerHead, Decay::PerKey})
    for (bool beta : {false, true}) {
      checkCase({3, 1, 24, 32, decay, beta});
      checkCase({3, 3, 24, 5, decay, beta});
    }
}

// One value for each head, as selective scans have it: many heads make one tile.
TEST(RecurrentTask, ManyHeadsOfOneValue) {
  checkCase({64, 1, 16, 1, Decay::PerKey, false, 32});
  checkCase({12, 2, 16, 1, Decay::PerHead, true, 3});
  checkCase({1, 1, 16, 1, Decay::PerKey, false, 1});
}

TEST(RecurrentTask, Convolutions) {
  for (auto [channels, taps] : {std::pair(64, 4), std::pair(200, 3), std::pair(24, 2), std::pair(80, 16)}) {
    SCOPED_TRACE(str(channels) + " channels, " + str(taps) + " taps");
    Shape shape;
    shape.state = llm::RecurrentType::get(&context(), 1, channels, taps - 1);
    shape.tile = shape.state.blockLanes();
    shape.x = shape.y = channels;
    shape.columns = (channels + shape.tile - 1) / shape.tile;
    uint64_t random = 5;
    PackedWeight weight = makeWeight("f32", channels, taps, shape.tile, shape.tile, random);
    AlignedBytes bytes(weight.bytes.size());
    std::copy(weight.bytes.begin(), weight.bytes.end(), bytes.data());
    shape.weights = bytes.data();
    std::string packed = ", tile = " + str(shape.tile) + ", panel = " + str(shape.tile) + ">";
    std::string module = fill(kConvolve, {{"W", "!llm.weight<" + str(channels) + "x" + str(taps) + ", f32" + packed},
                                          {"S", shape.stateText()},
                                          {"SLOT", str(shape.slotBytes())},
                                          {"COLUMNS", str(shape.columns)},
                                          {"X", str(channels)},
                                          {"Y", str(channels)},
                                          {"N", str(shape.tile)},
                                          {"XBYTES", str(strideOf(channels) * 4)}});
    Rows inputs;
    for (int64_t length : {37, 9, 5}) {
      inputs.emplace_back(static_cast<size_t>(length * channels));
      for (float &value : inputs.back())
        value = randomFloat(random);
    }
    PackedLayout layout{channels, taps, WeightForm::F32, shape.tile, shape.tile, 0};
    int64_t tileBytes = taps * shape.tile * 4;
    auto interpreted = [&](const float *x, const reference::StateView &state, float *y) {
      std::vector<float> row(static_cast<size_t>(shape.columns * shape.tile), 7.0f), result(row.size());
      std::copy_n(x, channels, row.begin());
      for (int64_t column = 0; column < shape.columns; ++column) {
        auto at = static_cast<size_t>(column * shape.tile), size = static_cast<size_t>(shape.tile);
        reference::convolve({&row[at], size}, shape.weights + column * tileBytes, layout, column, state,
                            {&result[at], size});
      }
      std::copy_n(result.begin(), channels, y);
    };
    ASSERT_NO_FATAL_FAILURE(checkProgram(module, shape, inputs, interpreted));
    // The formula itself, for the last row of the first sequence.
    std::vector<float> state(static_cast<size_t>(shape.state.bytes() / 4), 0.0f), y(static_cast<size_t>(channels));
    for (int64_t t = 0; t < 37; ++t)
      interpreted(&inputs[0][static_cast<size_t>(t * channels)], {shape.state, state.data()}, y.data());
    for (int64_t c = 0; c < channels; ++c) {
      double expected = 0;
      for (int64_t i = 0; i < taps; ++i)
        expected += static_cast<double>(weight.values[static_cast<size_t>(c * taps + i)]) *
                    inputs[0][static_cast<size_t>((37 - taps + i) * channels + c)];
      ASSERT_NEAR(y[static_cast<size_t>(c)], expected, 1e-5) << "channel " << c;
    }
  }
}

TEST(RecurrentTask, SumsOverWindows) {
  for (auto [channels, parts, window] : {std::tuple(32, 2, 4), std::tuple(80, 2, 3), std::tuple(48, 1, 16),
                                         std::tuple(37, 2, 5), std::tuple(16, 1, 1)}) {
    SCOPED_TRACE(str(channels) + " channels, " + str(parts) + " parts, windows of " + str(window));
    Shape shape;
    shape.state = llm::RecurrentType::get(&context(), 1, parts == 1 ? 3 : 9, channels);
    shape.tile = shape.state.blockLanes();
    shape.x = 2 * parts * channels;
    shape.y = channels;
    shape.columns = shape.state.blocksPerHead();
    auto load = [&](const std::string &name, const std::string &at) {
      return "%" + name + " = tile.load %x[%row, " + at + "] : !tile.rows<" + str(shape.x) + "> -> tensor<" +
             str(shape.tile) + "xf32>\n    ";
    };
    std::string tile = "tensor<" + str(shape.tile) + "xf32>", both = "tensor<" + str(2 * shape.tile) + "xf32>";
    std::string loads = load("v", "%at") + load("g", "%b");
    if (parts == 2) {
      loads = load("v0", "%at") + load("v1", "%b") + load("g0", "%d") + load("g1", "%e");
      for (std::string name : {"v", "g"})
        loads += "%" + name + " = tile.concat %" + name + "0, %" + name + "1 : " + tile + ", " + tile + " -> " + both +
                 "\n    ";
    }
    std::string module = fill(kPool, {{"LOADS", loads},
                                      {"S", shape.stateText()},
                                      {"SLOT", str(shape.slotBytes())},
                                      {"COLUMNS", str(shape.columns)},
                                      {"X", str(shape.x)},
                                      {"Y", str(channels)},
                                      {"N", str(shape.tile)},
                                      {"GIVEN", str(parts * shape.tile)},
                                      {"WINDOW", str(window)},
                                      {"XBYTES", str(strideOf(shape.x) * 4)}});
    Rows inputs;
    uint64_t random = 5;
    for (int64_t length : {37, 9, 5}) {
      inputs.emplace_back(static_cast<size_t>(length * shape.x));
      for (size_t i = 0; i < inputs.back().size(); ++i) // gates of some size
        inputs.back()[i] = randomFloat(random) * (static_cast<int64_t>(i) % shape.x < parts * channels ? 1.0f : 30.0f);
    }
    // Rows are given in order: which one it is follows from how many there were.
    std::map<const float *, int64_t> rowsBefore;
    auto interpreted = [&](const float *x, const reference::StateView &state, float *y) {
      int64_t position = rowsBefore[state.memory]++;
      std::vector<float> row(static_cast<size_t>(strideOf(shape.x)), 7.0f);
      std::copy_n(x, shape.x, row.begin());
      for (int64_t column = 0; column < shape.columns; ++column) {
        auto gather = [&](int64_t first) {
          std::vector<float> tiles;
          for (int64_t part = 0; part < parts; ++part) {
            auto from = row.begin() + first + part * channels + column * shape.tile;
            tiles.insert(tiles.end(), from, from + shape.tile);
          }
          return tiles;
        };
        std::vector<float> result(static_cast<size_t>(shape.tile));
        reference::pool(gather(0), gather(parts * channels), position % window == 0, column, state, result);
        std::copy_n(result.begin(), std::min(shape.tile, channels - column * shape.tile), y + column * shape.tile);
      }
    };
    ASSERT_NO_FATAL_FAILURE(checkProgram(module, shape, inputs, interpreted));
    // The formula itself, for the first sequence.
    rowsBefore.clear();
    std::vector<float> state(static_cast<size_t>(shape.state.bytes() / 4), 0.0f), y(static_cast<size_t>(channels));
    std::vector<float> expected(y.size());
    std::vector<double> sums(static_cast<size_t>(shape.state.elements()));
    for (int64_t t = 0; t < 37; ++t) {
      std::span<const float> x(&inputs[0][static_cast<size_t>(t * shape.x)], static_cast<size_t>(shape.x));
      interpreted(x.data(), {shape.state, state.data()}, y.data());
      const size_t given = x.size() / 2;
      reference::windowPoolRow(x.first(given), x.last(given), t, window, sums, expected);
      // Values are at most 1: the error is that of exponents of up to 90 in f32.
      for (size_t c = 0; c < y.size(); ++c)
        ASSERT_NEAR(y[c], expected[c], 2e-5) << "row " << t << " channel " << c;
    }
  }
}
