// Online softmax, page by page. Query rows of an item share each key and value load; whatever a row does not see is
// selected away exactly, so its bits do not depend on the item it is in. Spans of positions are summed alone and then
// put together, so neither do they depend on who computed them.
#include "lib/codegen/cpu/AttendKernel.h"
#include "lib/codegen/cpu/Instructions.h"
#include "runtime/llmc_abi.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {
// Below every score: the running maximum of a row that has seen nothing. Finite, so that differences are numbers.
constexpr float kNothing = -1.0e30f;
constexpr double kLog2E = 1.4426950408889634;
// Sixteen sums, then the maximum, for each query row.
constexpr int64_t kStateBytes = 128;
} // namespace

AttendKernel::AttendKernel(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule)
    : k(kernel), op(op), pages(kernel, task, op.getKv()), kv(pages.type), page(kv.getPage()),
      span(static_cast<int64_t>(op.getSpan())), vectors(valueVectors(kv)), window(static_cast<int64_t>(op.getWindow())),
      chunk(static_cast<int64_t>(op.getChunk())),
      entries(op.getSelected() ? op.getSelected().getType().getDimSize(0) : 0) {
  group = op.getQuery().getType().getDimSize(0) / kv.getHeadDim();
  int64_t queryRows = schedule.rowBlock * group;
  products = AttendProducts::create(kernel, kv, queryRows, schedule);
  partials = k.allocate(queryRows * kStateBytes);
  totals = k.allocate(queryRows * kStateBytes);
  totalResults = k.allocate(queryRows * vectors * 64 + 64);
  if (op.getSinks())
    sinks = k.allocate(schedule.rowBlock * sinkFloats() * 4);
  if (op.getLogsum())
    logsums = k.allocate(schedule.rowBlock * sinkFloats() * 4);
  if (op.getSelected())
    selected = k.allocate((entries + kLanes) * 4);
  if (op.getSelected() || kv.getEvery() > 1)
    rows = static_cast<RowProducts *>(products.get());
  if (op.getAlibi())
    slopes = k.globalArray(
        llvm::map_to_vector(*op.getAlibi(), [](float slope) { return static_cast<float>(slope * kLog2E); }));
}

AttendState AttendKernel::stateAt(Value base, Value row, Value result) {
  Value sums = k.at(base, k.mul(row, kStateBytes));
  return {k.at(sums, 64), sums, result};
}

void AttendKernel::clear(const AttendState &state) {
  k.store(k.f32(kNothing), state.maximum);
  k.store(k.splat(0.0f), state.sums);
  for (int64_t v = 0; v < vectors; ++v)
    k.store(k.splat(0.0f), state.result, v * 64);
}

void AttendKernel::copyState(const AttendState &from, const AttendState &to) {
  k.store(k.load(k.f32Type, from.maximum), to.maximum);
  k.store(k.load(k.vf, from.sums), to.sums);
  for (int64_t v = 0; v < vectors; ++v)
    k.store(k.load(k.vf, from.result, v * 64), to.result, v * 64);
}

Value AttendKernel::oldestSeen(Value position) {
  Value oldest;
  if (window > 0)
    oldest = k.max(k.add(position, 1 - window), k.i64(0));
  if (chunk > 0) {
    Value start = k.mul(k.div(position, chunk), chunk);
    oldest = oldest ? k.max(oldest, start) : start;
  }
  return oldest;
}

std::pair<Value, Value> AttendKernel::spansOf(Value first, Value last) {
  if (span == 0)
    return {k.i64(0), k.i64(1)};
  if (entries > 0)
    return {k.i64(0), k.i64((entries + span - 1) / span)};
  Value oldest = oldestSeen(first);
  return {oldest ? k.div(oldest, span) : k.i64(0), k.ceilDiv(pages.rowsAt(last), span)};
}

void AttendKernel::emitSpan(const AttendItem &item, Value index) {
  Value queryRows = k.mul(item.rows, group), firstPosition = positionOf(item.firstRow);
  Value lastPosition = k.add(k.add(firstPosition, item.rows), -1);
  k.loop(k.i64(0), queryRows, 1, [&](Value row) { clear(partialOf(row)); });
  products->beginItem(queryRows);
  Value oldest = entries ? Value() : oldestSeen(firstPosition), lastRow = pages.lastRowAt(lastPosition);
  Value from = oldest ? k.div(oldest, page) : k.i64(0);
  Value to = entries ? k.i64((entries + page - 1) / page) : k.ceilDiv(k.add(lastRow, 1), page);
  if (span > 0) {
    from = k.max(from, k.mul(index, span / page));
    to = k.min(to, k.mul(k.add(index, 1), span / page));
  }
  k.loop(from, to, 1, [&](Value index) {
    if (!entries && kv.getEvery() == 1)
      return emitPage(item, pages.at(item.sequence, item.head, index, lastPosition), firstPosition, lastPosition);
    // Where not all positions are kept, the first rows of a sequence see nothing.
    k.when(k.less(k.i64(-1), lastRow), [&] {
      AttendPage current = entries ? selectedPage(item, index, lastRow)
                                   : rows->gatherRows(pages, item.sequence, item.head, index, lastRow);
      k.when(k.less(k.i64(0), current.valid), [&] { emitPage(item, current, firstPosition, lastPosition); });
    });
  });
}

void AttendKernel::emitPage(const AttendItem &item, const AttendPage &current, Value firstPosition,
                            Value lastPosition) {
  Value queryRows = k.mul(item.rows, group);
  if (current.values && !kv.getLatent())
    products->fetch(current.values, pages.valueBytes());
  products->emitScores(queryRows, current);
  emitSoftmax(item, firstPosition, lastPosition, current);
  if (current.nextKeys)
    products->fetch(current.nextKeys, pages.keyBytes());
  products->emitValues(queryRows, current);
}

AttendPage AttendKernel::selectedPage(const AttendItem &item, Value index, Value position) {
  Value first = k.mul(index, page), oldest = oldestSeen(position);
  return rows->gather(pages, {item.sequence, item.head, k.at(selected, k.mul(first, 4)),
                              k.min(k.sub(k.i64(entries), first), k.i64(page)), oldest ? oldest : k.i64(0), position});
}

//===-- softmax --===//

void AttendKernel::emitSoftmax(const AttendItem &item, Value firstPosition, Value lastPosition,
                               const AttendPage &current) {
  // Most pages are seen whole by all rows.
  Value whole;
  if (current.positions) {
    whole = k.equal(current.valid, k.i64(page));
  } else {
    whole = k.less(k.add(current.base, page - 2), pages.lastRowAt(firstPosition));
    if (Value oldest = oldestSeen(lastPosition))
      whole = arith::AndIOp::create(k.b, whole, k.less(oldest, k.add(current.base, 1)));
  }
  Value cut = k.inverted(whole);
  for (bool masked : {false, true})
    k.when(masked ? cut : whole, [&] {
      k.loop(k.i64(0), k.mul(item.rows, group), 1, [&](Value row) {
        Value slope;
        if (slopes)
          slope = k.load(k.f32Type, k.at(slopes, k.mul(k.add(k.mul(item.column, group), k.rem(row, group)), 4)));
        Value position = k.add(firstPosition, k.div(row, group));
        emitSoftmaxRow({row, pages.lastRowAt(position), slope, current, masked});
      });
    });
}

Value AttendKernel::scaled(Value score) {
  float scale = op.getScale().convertToFloat(), cap = op.getSoftcap().convertToFloat();
  if (cap > 0) {
    Value inner = k.mulF(score, k.splat(scale / cap));
    return k.mulF(math::TanhOp::create(k.b, inner), k.splat(static_cast<float>(cap * kLog2E)));
  }
  return k.mulF(score, k.splat(static_cast<float>(scale * kLog2E)));
}

// Lanes of vector v that the row sees.
Value AttendKernel::visibleLanes(const SoftmaxRow &row, int64_t v) {
  if (row.page.positions)
    return k.laneMask(k.add(row.page.valid, -v * kLanes));
  Value high = k.add(k.sub(row.position, row.page.base), 1);
  Value mask = k.laneMask(k.add(high, -v * kLanes));
  if (Value oldest = oldestSeen(row.position)) {
    Value before = k.laneMask(k.add(k.sub(oldest, row.page.base), -v * kLanes));
    mask = arith::AndIOp::create(k.b, mask, arith::XOrIOp::create(k.b, before, k.laneMask(kLanes)));
  }
  return mask;
}

// Positions of vector v less the row's own, f32.
Value AttendKernel::distances(const SoftmaxRow &row, int64_t v) {
  auto narrow = [&](Value wide) { return k.broadcast(arith::TruncIOp::create(k.b, k.i32Type, wide)); };
  Value difference;
  if (row.page.positions)
    difference = k.sub(k.load(k.vi, row.page.positions, v * 64), narrow(row.position));
  else
    difference = k.add(k.iota(), narrow(k.add(k.sub(row.page.base, row.position), v * kLanes)));
  return arith::SIToFPOp::create(k.b, k.vf, difference);
}

// Scores of one row become probabilities relative to its running maximum; masked ones exactly 0.
void AttendKernel::emitSoftmaxRow(const SoftmaxRow &row) {
  const AttendPage &current = row.page;
  Value scoreRow = products->scoresOf(row.row);
  SmallVector<Value> exponents, masks;
  Value largest = k.splat(kNothing);
  for (int64_t v = 0; v < page / kLanes; ++v) {
    Value score = k.load(k.vf, scoreRow, v * 64);
    if (current.keyScales)
      score = k.mulF(score, k.load(k.vf, current.keyScales, v * 64));
    score = scaled(score);
    if (row.slope)
      score = k.fma(k.broadcast(row.slope), distances(row, v), score);
    if (row.masked) {
      masks.push_back(visibleLanes(row, v));
      score = k.select(masks.back(), score, k.splat(kNothing));
    }
    largest = k.maxF(largest, score);
    exponents.push_back(score);
  }
  AttendState state = partialOf(row.row);
  Value old = k.load(k.f32Type, state.maximum);
  Value next = k.maxF(old, k.reduceMax(largest));
  Value nextLanes = k.broadcast(next);
  Value factor = exp2Polynomial(k, arith::SubFOp::create(k.b, k.broadcast(old), nextLanes));
  Value sum = k.mulF(k.load(k.vf, state.sums), factor);
  for (int64_t v = 0; v < page / kLanes; ++v) {
    Value p = exp2Polynomial(k, arith::SubFOp::create(k.b, exponents[v], nextLanes));
    if (row.masked)
      p = k.select(masks[v], p, k.splat(0.0f));
    if (products->roundsProbabilities())
      p = roundPositiveToBf16(k, p);
    sum = k.addF(sum, p);
    if (current.valueScales) {
      p = k.mulF(p, k.load(k.vf, current.valueScales, v * 64));
      if (row.masked) // a scale that was never written may be no number
        p = k.select(masks[v], p, k.splat(0.0f));
    }
    products->storeProbabilities(p, row.row, v);
  }
  k.store(sum, state.sums);
  k.store(next, state.maximum);
  // Where the maximum stays the factor is exactly 1.
  k.when(arith::CmpFOp::create(k.b, arith::CmpFPredicate::UNE, old, next), [&] {
    for (int64_t v = 0; v < vectors; ++v)
      k.store(k.mulF(k.load(k.vf, state.result, v * 64), factor), state.result, v * 64);
  });
}

//===-- spans together --===//

void AttendKernel::beginTotals(Value queryRows) {
  k.loop(k.i64(0), queryRows, 1, [&](Value row) { clear(totalOf(row)); });
}

void AttendKernel::addToTotal(Value queryRow, const AttendState &state) {
  AttendState total = totalOf(queryRow);
  Value old = k.load(k.f32Type, total.maximum), added = k.load(k.f32Type, state.maximum), next = k.maxF(old, added);
  auto factorOf = [&](Value maximum) {
    return exp2Polynomial(k, k.broadcast(arith::SubFOp::create(k.b, maximum, next).getResult()));
  };
  Value oldFactor = factorOf(old), addedFactor = factorOf(added);
  auto combine = [&](Value to, Value from, int64_t bytes) {
    Value kept = k.mulF(k.load(k.vf, to, bytes), oldFactor);
    k.store(k.fma(k.load(k.vf, from, bytes), addedFactor, kept), to, bytes);
  };
  combine(total.sums, state.sums, 0);
  for (int64_t v = 0; v < vectors; ++v)
    combine(total.result, state.result, v * 64);
  k.store(next, total.maximum);
}

// The sink of a row joins its sum and its maximum; `kept` is what becomes of its result.
void AttendKernel::addSink(Value row, Value &maximum, Value &sum, Value &kept) {
  Value sink = k.load(k.f32Type, k.at(sinksOf(k.div(row, group)), k.mul(k.rem(row, group), 4)));
  sink = k.mulF(sink, k.f32(static_cast<float>(kLog2E)));
  Value next = k.maxF(maximum, sink);
  auto factorOf = [&](Value of) {
    return exp2Polynomial(k, k.broadcast(arith::SubFOp::create(k.b, of, next).getResult()));
  };
  kept = factorOf(maximum);
  sum = k.fma(sum, kept, factorOf(sink));
  maximum = next;
}

void AttendKernel::finishTotals(Value queryRows) {
  k.loop(k.i64(0), queryRows, 1, [&](Value row) {
    AttendState total = totalOf(row);
    Value sum = k.broadcast(k.reduceAdd(k.load(k.vf, total.sums))), maximum = k.load(k.f32Type, total.maximum), kept;
    if (sinks)
      addSink(row, maximum, sum, kept);
    // A row that sees nothing has a result of 0.
    Value isNothing = arith::CmpFOp::create(k.b, arith::CmpFPredicate::OEQ, sum, k.splat(0.0f));
    if (logsums) {
      Value log = math::LogOp::create(k.b, k.select(isNothing, k.splat(1.0f), sum));
      Value logsum = k.fma(k.broadcast(maximum), k.splat(static_cast<float>(1 / kLog2E)), log);
      Value first =
          vector::ExtractOp::create(k.b, k.select(isNothing, k.splat(kNothing), logsum), ArrayRef<int64_t>{0});
      k.store(first, k.at(logsumsOf(k.div(row, group)), k.mul(k.rem(row, group), 4)));
    }
    sum = k.select(isNothing, k.splat(1.0f), sum);
    // Channels of all heads side by side; what is written past them is overwritten by the next row.
    Value to = k.at(totalResults, k.mul(row, kv.getValueDim() * 4));
    for (int64_t v = 0; v < vectors; ++v) {
      Value result = k.load(k.vf, total.result, v * 64);
      if (kept)
        result = k.mulF(result, kept);
      k.store(arith::DivFOp::create(k.b, result, sum), to, v * 64);
    }
  });
}
