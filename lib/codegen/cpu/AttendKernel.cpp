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
    : k(kernel), task(task), op(op), kv(op.getKv().getType()), depth(kv.getHeadDim()), page(kv.getPage()),
      span(static_cast<int64_t>(op.getSpan())) {
  group = op.getQuery().getType().getDimSize(0) / depth;
  int64_t rows = schedule.rowBlock * group;
  products = AttendProducts::create(kernel, kv, rows, schedule);
  partials = k.allocate(rows * kStateBytes);
  totals = k.allocate(rows * kStateBytes);
  totalResults = k.allocate(rows * depth * 4 + 64);
}

AttendState AttendKernel::stateAt(Value base, Value row, Value result) {
  Value sums = k.at(base, k.mul(row, kStateBytes));
  return {k.at(sums, 64), sums, result};
}

void AttendKernel::clear(const AttendState &state) {
  k.store(k.f32(kNothing), state.maximum);
  k.store(k.splat(0.0f), state.sums);
  for (int64_t v = 0; v < depth / kLanes; ++v)
    k.store(k.splat(0.0f), state.result, v * 64);
}

Value AttendKernel::positionOf(Value row) {
  Value positions = k.load(k.pointerType, task.batch, offsetof(llmc_batch, positions));
  return k.loadInt(k.at(positions, k.mul(row, 4)));
}

std::pair<Value, Value> AttendKernel::spansOf(Value first, Value last) {
  if (span == 0)
    return {k.i64(0), k.i64(1)};
  int64_t window = static_cast<int64_t>(op.getWindow());
  Value oldest = window ? k.max(k.add(first, 1 - window), k.i64(0)) : k.i64(0);
  return {k.div(oldest, span), k.add(k.div(last, span), 1)};
}

void AttendKernel::emitSpan(const AttendItem &item, Value index) {
  Value queryRows = k.mul(item.rows, group), firstPosition = positionOf(item.firstRow);
  Value lastPosition = k.add(k.add(firstPosition, item.rows), -1);
  k.loop(k.i64(0), queryRows, 1, [&](Value row) { clear(partialOf(row)); });
  products->beginItem(queryRows);
  int64_t window = static_cast<int64_t>(op.getWindow());
  Value from = window ? k.div(k.max(k.add(firstPosition, 1 - window), k.i64(0)), page) : k.i64(0);
  Value to = k.add(k.div(lastPosition, page), 1);
  if (span > 0) {
    from = k.max(from, k.mul(index, span / page));
    to = k.min(to, k.mul(k.add(index, 1), span / page));
  }
  k.loop(from, to, 1, [&](Value index) {
    AttendPage current = pageAt(item, index, lastPosition);
    products->fetch(current.values);
    products->emitScores(queryRows, current);
    emitSoftmax(queryRows, firstPosition, lastPosition, current);
    products->fetch(current.nextKeys);
    products->emitValues(queryRows, current);
  });
}

AttendPage AttendKernel::pageAt(const AttendItem &item, Value index, Value lastPosition) {
  Value table = k.load(k.pointerType, task.batch, offsetof(llmc_batch, page_table));
  Value stride = k.loadInt(task.batch, offsetof(llmc_batch, page_table_stride));
  Value entries = k.at(table, k.mul(k.mul(item.sequence, stride), 4));
  int64_t headBytes = page * depth * kv.getElementType().getIntOrFloatBitWidth() / 8;
  auto startOf = [&](Value index) {
    Value start = k.mul(k.loadInt(k.at(entries, k.mul(index, 4))), task.plan.pageBytes);
    return k.at(task.operands.lookup(op.getKv()), start);
  };
  auto keysAt = [&](Value index) { return k.at(startOf(index), k.mul(item.head, headBytes)); };
  AttendPage result;
  result.keys = keysAt(index);
  if (kv.getElementType().isInteger(8)) {
    Value scales = k.at(startOf(index), k.i64(2 * kv.getHeads() * headBytes));
    result.keyScales = k.at(scales, k.mul(item.head, page * 4));
    result.valueScales = k.at(result.keyScales, k.i64(kv.getHeads() * page * 4));
  }
  result.values = k.at(result.keys, k.i64(kv.getHeads() * headBytes));
  result.nextKeys = keysAt(k.min(k.add(index, 1), k.div(lastPosition, page)));
  result.base = k.mul(index, page);
  result.valid = k.min(k.sub(k.add(lastPosition, 1), result.base), k.i64(page));
  return result;
}

void AttendKernel::emitSoftmax(Value queryRows, Value firstPosition, Value lastPosition, const AttendPage &current) {
  // Most pages are seen whole by all rows.
  Value whole = k.less(k.add(current.base, page - 2), firstPosition);
  if (int64_t window = static_cast<int64_t>(op.getWindow()))
    whole = arith::AndIOp::create(k.b, whole, k.less(lastPosition, k.add(current.base, window)));
  Value cut = arith::XOrIOp::create(k.b, whole, arith::ConstantOp::create(k.b, k.b.getBoolAttr(true)));
  for (bool masked : {false, true})
    k.when(masked ? cut : whole, [&] {
      k.loop(k.i64(0), queryRows, 1, [&](Value row) { emitSoftmaxRow(row, firstPosition, current, masked); });
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

// Lanes of vector v below `high`, and within the window before it.
Value AttendKernel::visibleLanes(Value high, int64_t v) {
  Value mask = k.laneMask(k.add(high, -v * kLanes));
  if (int64_t window = static_cast<int64_t>(op.getWindow())) {
    Value before = k.laneMask(k.add(high, -window - v * kLanes));
    mask = arith::AndIOp::create(k.b, mask, arith::XOrIOp::create(k.b, before, k.laneMask(kLanes)));
  }
  return mask;
}

// Scores of one row become probabilities relative to its running maximum; masked ones exactly 0.
void AttendKernel::emitSoftmaxRow(Value row, Value firstPosition, const AttendPage &current, bool masked) {
  Value high = k.add(k.sub(k.add(firstPosition, k.div(row, group)), current.base), 1);
  Value scoreRow = products->scoresOf(row);
  SmallVector<Value> exponents, masks;
  Value largest = k.splat(kNothing);
  for (int64_t v = 0; v < page / kLanes; ++v) {
    Value score = k.load(k.vf, scoreRow, v * 64);
    if (current.keyScales)
      score = k.mulF(score, k.load(k.vf, current.keyScales, v * 64));
    score = scaled(score);
    if (masked) {
      masks.push_back(visibleLanes(high, v));
      score = k.select(masks.back(), score, k.splat(kNothing));
    }
    largest = k.maxF(largest, score);
    exponents.push_back(score);
  }
  AttendState state = partialOf(row);
  Value old = k.load(k.f32Type, state.maximum);
  Value next = k.maxF(old, k.reduceMax(largest));
  Value nextLanes = k.broadcast(next);
  Value factor = exp2Polynomial(k, arith::SubFOp::create(k.b, k.broadcast(old), nextLanes));
  Value sum = k.mulF(k.load(k.vf, state.sums), factor);
  for (int64_t v = 0; v < page / kLanes; ++v) {
    Value p = exp2Polynomial(k, arith::SubFOp::create(k.b, exponents[v], nextLanes));
    if (masked)
      p = k.select(masks[v], p, k.splat(0.0f));
    if (products->roundsProbabilities())
      p = roundPositiveToBf16(k, p);
    sum = k.addF(sum, p);
    if (current.valueScales) {
      p = k.mulF(p, k.load(k.vf, current.valueScales, v * 64));
      if (masked) // a scale that was never written may be no number
        p = k.select(masks[v], p, k.splat(0.0f));
    }
    products->storeProbabilities(p, row, v);
  }
  k.store(sum, state.sums);
  k.store(next, state.maximum);
  // Where the maximum stays the factor is exactly 1.
  k.when(arith::CmpFOp::create(k.b, arith::CmpFPredicate::UNE, old, next), [&] {
    for (int64_t v = 0; v < depth / kLanes; ++v)
      k.store(k.mulF(k.load(k.vf, state.result, v * 64), factor), state.result, v * 64);
  });
}

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
  for (int64_t v = 0; v < depth / kLanes; ++v)
    combine(total.result, state.result, v * 64);
  k.store(next, total.maximum);
}

void AttendKernel::finishTotals(Value queryRows) {
  k.loop(k.i64(0), queryRows, 1, [&](Value row) {
    AttendState total = totalOf(row);
    Value sum = k.broadcast(k.reduceAdd(k.load(k.vf, total.sums)));
    for (int64_t v = 0; v < depth / kLanes; ++v)
      k.store(arith::DivFOp::create(k.b, k.load(k.vf, total.result, v * 64), sum), total.result, v * 64);
  });
}
