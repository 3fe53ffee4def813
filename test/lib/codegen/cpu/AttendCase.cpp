#include "test/lib/codegen/cpu/AttendCase.h"
#include "lib/reference/TileAttention.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <gtest/gtest.h>
#include <span>
#include <sstream>

using namespace llmc;
using namespace llmc::test;

namespace {

// Everything that a row brings lies side by side in %x; keys and values are appended, then attended to.
const char *kAttention = R"mlir(
module attributes {llmc.max_tokens = 256 : i64, llmc.page_bytes = ${PAGEBYTES} : i64} {
  llm.state @kv : ${KV} {offset = ${OFFSET} : i64}
  tile.task @append rows(%row, %column of ${H}) (%x: !tile.rows<${X}>, %kv: ${KV}, %batch: !llm.batch) {
    %d = arith.constant ${D} : index
    %dv = arith.constant ${DV} : index
    %kstart = arith.constant ${KSTART} : index
    %vstart = arith.constant ${VSTART} : index
    %kfrom = arith.muli %column, %d : index
    %vfrom = arith.muli %column, %dv : index
    %kat = arith.addi %kfrom, %kstart : index
    %vat = arith.addi %vfrom, %vstart : index
    %k = tile.load %x[%row, %kat] : !tile.rows<${X}> -> tensor<${D}xf32>
    tile.append key %k, %kv[%column], %batch[%row] : tensor<${D}xf32>, ${KV}
    ${APPENDVALUE}
  }
  tile.task @attend rows(%row, %column of ${COLUMNS}) (%x: !tile.rows<${X}>, %kv: ${KV}, %batch: !llm.batch, %y: !tile.rows<${Y}>, %p: !tile.rows<${P}>) {
    %gd = arith.constant ${GD} : index
    %gdv = arith.constant ${GDV} : index
    %g = arith.constant ${G} : index
    %per = arith.constant ${PERHEAD} : index
    %sinkstart = arith.constant ${SINKSTART} : index
    %selectedat = arith.constant ${SELECTEDAT} : index
    %head = arith.divui %column, %per : index
    %at = arith.muli %column, %gd : index
    %to = arith.muli %column, %gdv : index
    %sinkfrom = arith.muli %column, %g : index
    %sinkat = arith.addi %sinkfrom, %sinkstart : index
    %q = tile.load %x[%row, %at] : !tile.rows<${X}> -> tensor<${GD}xf32>
    ${LOADSINKS}
    ${LOADSELECTED}
    ${RESULTS} = tile.attend %q, %kv[%head], %batch[%row] ${OPTIONS} {scale = 0.125 : f32, softcap = ${CAP} : f32, window = ${WINDOW} : i64, chunk = ${CHUNK} : i64, span = ${SPAN} : i64${ALIBI}} : tensor<${GD}xf32>, ${KV}
    ${STORELOGSUM}
    tile.store %o, %y[%row, %to] : tensor<${GDV}xf32>, !tile.rows<${Y}>
  }
  func.func @step(%batch: !llm.batch) {
    %kv = llm.use_state @kv : ${KV}
    %x = tile.alloc at 0 : !tile.rows<${X}>
    %y = tile.alloc at ${XBYTES} : !tile.rows<${Y}>
    %p = tile.alloc at ${XYBYTES} : !tile.rows<${P}>
    tile.launch @append(%x, %kv, %batch) : !tile.rows<${X}>, ${KV}, !llm.batch
    tile.launch @attend(%x, %kv, %batch, %y, %p) : !tile.rows<${X}>, ${KV}, !llm.batch, !tile.rows<${Y}>, !tile.rows<${P}>
    return
  }
})mlir";

int64_t strideOf(int64_t channels) { return (channels + 63) / 64 * 64; }

int64_t partialChannels(const AttendCase &c) { return c.queryHeads() * ((c.values() + 15) / 16 * 16 + 32); }

} // namespace

std::string AttendCase::kvText() const {
  std::string dims = std::to_string(heads) + "x" + std::to_string(depth) + "x" + element;
  if (latent)
    dims += ", latent = " + std::to_string(latent) + (every > 1 ? ", every = " + std::to_string(every) : "");
  else if (valueDim && valueDim != depth)
    dims += ", value = " + std::to_string(valueDim);
  return "!llm.kv<" + dims + ", page = " + std::to_string(page) + ", panel = " + (latent ? "1" : "16") +
         (pairs ? ", pack = 2" + (block ? ", block = " + std::to_string(block) : "") + ">" : ">");
}

llm::KvType AttendCase::kv() const {
  static mlir::MLIRContext *context = [] {
    auto *made = new mlir::MLIRContext;
    made->loadDialect<llm::LlmDialect>();
    return made;
  }();
  return mlir::cast<llm::KvType>(mlir::parseType(kvText(), context));
}

std::string llmc::test::nameOf(const AttendCase &c) {
  std::string name = c.kvText() + " group " + std::to_string(c.group) + " window " + std::to_string(c.window) +
                     " chunk " + std::to_string(c.chunk) + " span " + std::to_string(c.span) + " cap " + c.cap;
  return name + (c.logsum ? " logsum" : "") + (c.sinks ? " sinks" : "") + (c.alibi ? " alibi" : "") +
         (c.selected ? " selected " + std::to_string(c.selected) : "");
}

std::string llmc::test::moduleOf(const AttendCase &c) {
  auto text = [](int64_t value) { return std::to_string(value); };
  int64_t layer = c.kv().bytesPerPage();
  std::string x = "!tile.rows<" + text(c.channels()) + ">", dv = "tensor<" + text(c.values()) + "xf32>";
  std::string sinks = "tensor<" + text(c.columnHeads()) + "xf32>", list = "tensor<" + text(c.selected) + "xf32>";
  std::string options = c.partials ? "partials %p : !tile.rows<" + text(partialChannels(c)) + ">" : "";
  options += c.sinks ? " sinks %s : " + sinks : "";
  options += c.selected ? " selected %l : " + list : "";
  std::ostringstream slopes; // which come back exactly
  slopes.precision(9);
  for (int64_t head = 0; head < c.queryHeads(); ++head)
    slopes << (head ? ", " : "") << std::scientific << c.slope(head);
  return fill(
      kAttention,
      {{"APPENDVALUE", c.latent ? ""
                                : "%v = tile.load %x[%row, %vat] : " + x + " -> " + dv +
                                      "\n    tile.append value %v, %kv[%column], %batch[%row] : " + dv + ", ${KV}"},
       {"LOADSINKS", c.sinks ? "%s = tile.load %x[%row, %sinkat] : " + x + " -> " + sinks : ""},
       {"LOADSELECTED", c.selected ? "%l = tile.load %x[%row, %selectedat] : " + x + " -> " + list : ""},
       {"OPTIONS", options},
       {"ALIBI",
        std::string(c.alibi ? ", alibi = array<f32: " + slopes.str() + ">" : "") + (c.logsum ? ", with_logsum" : "")},
       {"RESULTS", c.logsum ? "%o, %ls" : "%o"},
       {"STORELOGSUM", c.logsum
                           ? "%lsstart = arith.constant " + text(c.logsumsAt()) +
                                 " : index\n    %lsat = arith.addi %sinkfrom, %lsstart : index\n    tile.store %ls, "
                                 "%y[%row, %lsat] : " +
                                 sinks + ", !tile.rows<${Y}>"
                           : ""},
       {"KV", c.kvText()},
       {"PAGEBYTES", text(2 * layer)},
       {"OFFSET", text(layer)},
       {"H", text(c.heads)},
       {"COLUMNS", text(c.columns())},
       {"PERHEAD", text(c.columnsPerHead)},
       {"D", text(c.depth)},
       {"DV", text(c.values())},
       {"G", text(c.columnHeads())},
       {"GD", text(c.columnHeads() * c.depth)},
       {"GDV", text(c.columnHeads() * c.values())},
       {"Y", text(c.resultChannels())},
       {"X", text(c.channels())},
       {"KSTART", text(c.keysAt())},
       {"VSTART", text(c.valuesAt())},
       {"SINKSTART", text(c.sinksAt())},
       {"SELECTEDAT", text(c.selectedAt())},
       {"CAP", c.cap},
       {"WINDOW", text(c.window)},
       {"CHUNK", text(c.chunk)},
       {"SPAN", text(c.span)},
       {"P", text(partialChannels(c))},
       {"XBYTES", text(strideOf(c.channels()) * 4)},
       {"XYBYTES", text((strideOf(c.channels()) + strideOf(c.resultChannels())) * 4)}});
}

Rows llmc::test::randomRows(const AttendCase &c, const std::vector<int64_t> &lengths) {
  uint64_t state = static_cast<uint64_t>(c.depth + c.window);
  Rows rows;
  for (int64_t length : lengths) {
    rows.emplace_back(static_cast<size_t>(length * c.channels()));
    for (float &value : rows.back())
      value = randomFloat(state);
    // About two of three positions, ascending, where the list has room; nothing in between here and there.
    for (int64_t t = 0; t < length && c.selected > 0; ++t) {
      std::span<float> list(&rows.back()[static_cast<size_t>(t * c.channels() + c.selectedAt())],
                            static_cast<size_t>(c.selected));
      std::ranges::fill(list, -1.0f);
      size_t count = static_cast<size_t>(t % 3 == 1);
      for (int64_t j = 0; j < c.rowsAt(t) && count < list.size(); ++j)
        if (randomFloat(state) > -0.3f)
          list[count++] = static_cast<float>(j);
    }
  }
  return rows;
}

Rows llmc::test::runSequences(StepProgram &program, const AttendCase &c, const Rows &inputs,
                              const std::vector<std::vector<int32_t>> &steps, int workers) {
  size_t sequences = inputs.size();
  std::vector<int32_t> done(sequences, 0);
  Batch whole(std::vector<Sequence>(sequences, {0, 200}), static_cast<int32_t>(c.page));
  // Pages start as NaN: what was never written must never count.
  AlignedBytes kv(static_cast<size_t>(whole.numPages * 2 * c.kv().bytesPerPage()), 0xff);
  Rows outputs(sequences);
  int64_t inStride = strideOf(c.channels()), outStride = strideOf(c.resultChannels());
  for (const std::vector<int32_t> &step : steps) {
    std::vector<Sequence> batchSequences;
    AlignedBytes arena(static_cast<size_t>(256 * (inStride + outStride + strideOf(partialChannels(c))) * 4), 0xff);
    int64_t row = 0;
    for (size_t s = 0; s < sequences; ++s) {
      batchSequences.push_back({done[s], step[s]});
      for (int32_t i = 0; i < step[s]; ++i, ++row)
        std::copy_n(inputs[s].begin() + (done[s] + i) * c.channels(), c.channels(), arena.floats() + row * inStride);
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
        float *out = arena.floats() + 256 * inStride + row * outStride;
        outputs[s].insert(outputs[s].end(), out, out + c.resultChannels());
      }
  }
  return outputs;
}

namespace {

// Rounds what one row brings as the cache does, and queries where the products do.
void roundRow(const AttendCase &c, std::span<float> row) {
  auto round = [&](int64_t at, int64_t size, reference::CacheElement element) {
    std::span<float> head = row.subspan(static_cast<size_t>(at), static_cast<size_t>(size));
    float scale = reference::roundToCache(head, element);
    for (float &value : head)
      value *= scale;
  };
  for (int64_t head = 0; head < c.queryHeads() && c.roundsToPairs(); ++head)
    round(head * c.depth, c.depth, reference::CacheElement::BF16);
  for (int64_t head = 0; head < c.heads; ++head) {
    round(c.keysAt() + head * c.depth, c.depth, reference::elementOf(c.kv()));
    if (!c.latent)
      round(c.valuesAt() + head * c.values(), c.values(), reference::elementOf(c.kv()));
  }
}

// Rows of the cache, which are positions where it keeps all.
std::vector<int64_t> seenPositions(const AttendCase &c, const float *row, int64_t t) {
  int64_t first = c.window ? std::max<int64_t>(0, t - c.window + 1) : 0;
  if (c.chunk)
    first = std::max(first, t / c.chunk * c.chunk);
  std::vector<int64_t> seen;
  for (int64_t j = first; j < c.rowsAt(t); ++j) {
    const float *list = row + c.selectedAt();
    if (!c.selected || std::find(list, list + c.selected, static_cast<float>(j)) != list + c.selected)
      seen.push_back(j);
  }
  return seen;
}

} // namespace

void llmc::test::checkSequence(const AttendCase &c, std::vector<float> x, const std::vector<float> &y) {
  int64_t length = static_cast<int64_t>(x.size()) / c.channels();
  auto row = [&](int64_t t) { return &x[static_cast<size_t>(t * c.channels())]; };
  for (int64_t t = 0; t < length; ++t)
    roundRow(c, std::span(row(t), static_cast<size_t>(c.channels())));
  double cap = std::stod(c.cap);
  for (int64_t t = 0; t < length; ++t)
    for (int64_t h = 0; h < c.queryHeads(); ++h) {
      int64_t keyHead = h / c.group;
      const float *q = row(t) + h * c.depth;
      std::vector<double> p;
      double sum = c.sinks ? std::exp(static_cast<double>(row(t)[c.sinksAt() + h])) : 0;
      std::vector<int64_t> seen = seenPositions(c, row(t), t);
      for (int64_t j : seen) {
        const float *k = row(c.positionOf(j)) + c.keysAt() + keyHead * c.depth;
        double score = 0;
        for (int64_t d = 0; d < c.depth; ++d)
          score += static_cast<double>(q[d]) * k[d];
        score *= 0.125;
        if (cap > 0)
          score = cap * std::tanh(score / cap);
        p.push_back(std::exp(score + static_cast<double>(c.slope(h)) * static_cast<double>(j - t)));
        sum += p.back();
      }
      for (int64_t d = 0; d < c.values(); ++d) {
        double expected = 0;
        for (size_t i = 0; i < seen.size(); ++i)
          expected +=
              p[i] / sum *
              row(c.positionOf(
                  seen[i]))[c.latent ? c.keysAt() + keyHead * c.depth + d : c.valuesAt() + keyHead * c.values() + d];
        float actual = y[static_cast<size_t>(t * c.resultChannels() + h * c.values() + d)];
        // Values are at most 1 and weights sum to 1: the error is that of scores of about 10 in f32, 1e-6 each. With
        // pairs of bf16 weights are off by up to 2^-9 of themselves, which moves their sum and the result.
        ASSERT_NEAR(actual, expected, c.roundsToPairs() ? 2.0 / 512 : 4e-6)
            << "row " << t << " head " << h << " channel " << d;
      }
      if (c.logsum) {
        // Of sums up to a hundred, whose error is that of scores.
        float actual = y[static_cast<size_t>(t * c.resultChannels() + c.logsumsAt() + h)];
        ASSERT_NEAR(actual, sum > 0 ? std::log(sum) : -1.0e30, sum > 0 ? 4e-6 : 1e24) << "row " << t << " head " << h;
      }
    }
}

void llmc::test::checkInterpreted(const AttendCase &c, const std::vector<float> &x, const std::vector<float> &y) {
  int64_t length = static_cast<int64_t>(x.size()) / c.channels(), pages = (length + c.page - 1) / c.page;
  int64_t pageBytes = c.kv().bytesPerPage();
  std::vector<uint8_t> memory(static_cast<size_t>(pages * pageBytes));
  std::vector<int32_t> table;
  for (int32_t page = 0; page < pages; ++page)
    table.push_back(page);
  reference::CacheView cache{memory.data(), pageBytes, 0, table.data(), c.kv()};
  auto part = [&](int64_t t, int64_t at, int64_t size) {
    return std::span(&x[static_cast<size_t>(t * c.channels() + at)], static_cast<size_t>(size));
  };
  for (int64_t t = 0; t < length; ++t)
    for (int64_t head = 0; head < c.heads && (t + 1) % c.every == 0; ++head) {
      cache.append(/*value=*/false, head, t / c.every, part(t, c.keysAt() + head * c.depth, c.depth));
      if (!c.latent)
        cache.append(/*value=*/true, head, t, part(t, c.valuesAt() + head * c.values(), c.values()));
    }
  size_t width = static_cast<size_t>(c.group * c.values());
  std::vector<float> expected(width), slopes;
  for (int64_t head = 0; head < c.queryHeads() && c.alibi; ++head)
    slopes.push_back(c.slope(head));
  for (int64_t t = 0; t < length; ++t)
    for (int64_t head = 0; head < c.heads; ++head) {
      reference::AttendShape shape{0.125f, std::stof(c.cap), c.window, c.span, c.chunk};
      if (c.alibi)
        shape.slopes = std::span(slopes).subspan(static_cast<size_t>(head * c.group), static_cast<size_t>(c.group));
      if (c.sinks)
        shape.sinks = part(t, c.sinksAt() + head * c.group, c.group);
      if (c.selected)
        shape.selected = part(t, c.selectedAt(), c.selected);
      reference::attend(part(t, head * c.group * c.depth, c.group * c.depth), cache, head, c.rowsAt(t) - 1, shape,
                        expected);
      const float *actual = &y[static_cast<size_t>(t * c.resultChannels()) + static_cast<size_t>(head) * width];
      for (size_t i = 0; i < width; ++i)
        ASSERT_EQ(actual[i], expected[i]) << "row " << t << " head " << head << " element " << i;
    }
}

void llmc::test::checkCase(const AttendCase &c, const std::vector<Way> &ways) {
  Rows inputs = randomRows(c, {70, 17});
  for (const Way &way : ways) {
    SCOPED_TRACE(nameOf(way) + " " + nameOf(c));
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
