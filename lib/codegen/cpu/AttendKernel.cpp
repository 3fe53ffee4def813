// Online softmax, page by page. Query rows of an item share each key and value load; whatever a row does not see is
// selected away exactly, so its bits do not depend on the item it is in.
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
} // namespace

AttendKernel::AttendKernel(KernelBuilder &kernel, TaskContext &task, tile::AttendOp op, const Schedule &schedule)
    : k(kernel), task(task), op(op), kv(op.getKv().getType()), depth(kv.getHeadDim()), page(kv.getPage()),
      elementBytes(kv.getElementType().getIntOrFloatBitWidth() / 8), kernelRows(schedule.kernelRows) {
  group = op.getQuery().getType().getDimSize(0) / depth;
  int64_t rows = schedule.rowBlock * group;
  queries = k.allocate(rows * depth * 4 + 64);
  results = k.allocate(rows * depth * 4 + 64);
  scores = k.allocate(rows * page * 4);
  sums = k.allocate(rows * 64);
  maxima = k.allocate(rows * 4);
  rescale = k.allocate(rows * 4);
}

Value AttendKernel::rowAt(Value buffer, Value row, int64_t stride) { return k.at(buffer, k.mul(row, stride)); }
Value AttendKernel::queryOf(Value i) { return rowAt(queries, i, group * depth * 4); }
Value AttendKernel::resultOf(Value i) { return rowAt(results, i, group * depth * 4); }

Value AttendKernel::loadCache(Value pointer, int64_t bytes) {
  if (elementBytes == 4)
    return k.load(k.vf, pointer, bytes);
  return extendBf16(k, k.load(k.vectorOf(kLanes, k.b.getBF16Type()), pointer, bytes));
}

void AttendKernel::emit(const AttendItem &item) {
  Value queryRows = k.mul(item.rows, group);
  k.loop(k.i64(0), queryRows, 1, [&](Value row) {
    k.store(k.f32(kNothing), rowAt(maxima, row, 4));
    k.store(k.splat(0.0f), rowAt(sums, row, 64));
  });
  k.loop(k.i64(0), k.mul(queryRows, depth), kLanes,
         [&](Value element) { k.store(k.splat(0.0f), rowAt(results, element, 4)); });

  Value positions = k.load(k.pointerType, task.batch, offsetof(llmc_batch, positions));
  Value firstPosition = k.loadInt(rowAt(positions, item.firstRow, 4));
  Value lastPosition = k.add(k.add(firstPosition, item.rows), -1);
  int64_t window = static_cast<int64_t>(op.getWindow());
  Value oldest = window ? k.max(k.add(firstPosition, 1 - window), k.i64(0)) : k.i64(0);
  k.loop(k.div(oldest, page), k.add(k.div(lastPosition, page), 1), 1, [&](Value index) {
    Page current = pageAt(item, index, lastPosition);
    emitScores(queryRows, current);
    emitSoftmax(queryRows, firstPosition, current);
    emitWeightedValues(queryRows, current);
  });
  emitFinish(queryRows);
}

AttendKernel::Page AttendKernel::pageAt(const AttendItem &item, Value index, Value lastPosition) {
  Value table = k.load(k.pointerType, task.batch, offsetof(llmc_batch, page_table));
  Value stride = k.loadInt(task.batch, offsetof(llmc_batch, page_table_stride));
  Value entry = k.add(k.mul(item.sequence, stride), index);
  Value start = rowAt(task.operands.lookup(op.getKv()), k.loadInt(rowAt(table, entry, 4)), task.plan.pageBytes);
  int64_t headBytes = page * depth * elementBytes;
  Page result;
  result.keys = rowAt(start, item.head, headBytes);
  result.values = k.at(result.keys, k.i64(kv.getHeads() * headBytes));
  result.base = k.mul(index, page);
  result.valid = k.min(k.sub(k.add(lastPosition, 1), result.base), k.i64(page));
  return result;
}

// scores[r][j] = query[r] . key[j], in ascending order of the channel, for all positions of the page: those that hold
// nothing yet are selected away later.
void AttendKernel::emitScores(Value queryRows, const Page &current) {
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    Value input = rowAt(queries, first, depth * 4), output = rowAt(scores, first, page * 4);
    int64_t panelBytes = depth * kLanes * elementBytes;
    emitPasses(k, page / kLanes, vectorsPerPass(rows, k.target), 1, panelBytes, current.keys,
               [&](Value base, ArrayRef<int64_t> offsets, Value firstVector) {
                 int64_t count = offsets.size();
                 SmallVector<Value> init(rows * count, k.splat(0.0f));
                 auto dots = k.loop(k.i64(0), k.i64(depth), 1, init, [&](Value channel, ValueRange carried) {
                   SmallVector<Value> acc(carried), keys;
                   Value at = rowAt(base, channel, kLanes * elementBytes);
                   for (int64_t offset : offsets)
                     keys.push_back(loadCache(at, offset));
                   for (int64_t r = 0; r < rows; ++r) {
                     Value x = k.broadcast(k.load(k.f32Type, rowAt(input, channel, 4), r * depth * 4));
                     for (int64_t v = 0; v < count; ++v)
                       acc[r * count + v] = k.fma(keys[v], x, acc[r * count + v]);
                   }
                   return acc;
                 });
                 Value to = rowAt(output, firstVector, 64);
                 for (int64_t r = 0; r < rows; ++r)
                   for (int64_t v = 0; v < count; ++v)
                     k.store(dots[r * count + v], to, r * page * 4 + v * 64);
               });
  });
}

// Scores of one row become probabilities relative to its running maximum; masked ones exactly 0.
void AttendKernel::emitSoftmax(Value queryRows, Value firstPosition, const Page &current) {
  float scale = op.getScale().convertToFloat(), cap = op.getSoftcap().convertToFloat();
  int64_t window = static_cast<int64_t>(op.getWindow()), vectors = page / kLanes;
  k.loop(k.i64(0), queryRows, 1, [&](Value row) {
    // Lanes from `low` to `high` of this page are visible to the row.
    Value high = k.add(k.sub(k.add(firstPosition, k.div(row, group)), current.base), 1);
    Value low = window ? k.add(high, -window) : Value();
    Value scoreRow = rowAt(scores, row, page * 4);
    SmallVector<Value> exponents, masks;
    Value largest = k.splat(kNothing);
    for (int64_t v = 0; v < vectors; ++v) {
      Value mask = k.laneMask(k.add(high, -v * kLanes));
      if (low) {
        Value before = k.laneMask(k.add(low, -v * kLanes));
        mask = arith::AndIOp::create(k.b, mask, arith::XOrIOp::create(k.b, before, k.laneMask(kLanes)));
      }
      Value score = k.load(k.vf, scoreRow, v * 64);
      if (cap > 0) {
        Value inner = k.mulF(score, k.splat(scale / cap));
        score = k.mulF(math::TanhOp::create(k.b, inner), k.splat(static_cast<float>(cap * kLog2E)));
      } else {
        score = k.mulF(score, k.splat(static_cast<float>(scale * kLog2E)));
      }
      score = k.select(mask, score, k.splat(kNothing));
      largest = k.maxF(largest, score);
      exponents.push_back(score);
      masks.push_back(mask);
    }
    Value old = k.load(k.f32Type, rowAt(maxima, row, 4));
    Value next = k.maxF(old, k.reduceMax(largest));
    Value nextLanes = k.broadcast(next);
    Value factor = exp2Polynomial(k, arith::SubFOp::create(k.b, k.broadcast(old), nextLanes));
    Value sum = k.mulF(k.load(k.vf, rowAt(sums, row, 64)), factor);
    for (int64_t v = 0; v < vectors; ++v) {
      Value p = exp2Polynomial(k, arith::SubFOp::create(k.b, exponents[v], nextLanes));
      p = k.select(masks[v], p, k.splat(0.0f));
      sum = k.addF(sum, p);
      k.store(p, scoreRow, v * 64);
    }
    k.store(sum, rowAt(sums, row, 64));
    k.store(next, rowAt(maxima, row, 4));
    k.store(vector::ExtractOp::create(k.b, factor, ArrayRef<int64_t>{0}), rowAt(rescale, row, 4));
  });
}

// results[r] = results[r] * rescale[r] + sum_j p[r][j] * value[j]; positions past the last valid one are never read.
void AttendKernel::emitWeightedValues(Value queryRows, const Page &current) {
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    Value weights = rowAt(scores, first, page * 4), output = rowAt(results, first, depth * 4);
    Value factors = rowAt(rescale, first, 4);
    int64_t vectors = depth / kLanes, vectorBytes = kLanes * elementBytes;
    int64_t perPass = vectorsPerPass(rows, k.target);
    int64_t passes = (vectors + perPass - 1) / perPass, per = (vectors + passes - 1) / passes;
    for (int64_t from = 0; from < vectors; from += per) {
      int64_t count = std::min(per, vectors - from);
      SmallVector<Value> init;
      for (int64_t r = 0; r < rows; ++r) {
        Value factor = k.broadcast(k.load(k.f32Type, factors, r * 4));
        for (int64_t v = 0; v < count; ++v)
          init.push_back(k.mulF(k.load(k.vf, output, r * depth * 4 + (from + v) * 64), factor));
      }
      auto sums = k.loop(k.i64(0), current.valid, 1, init, [&](Value j, ValueRange carried) {
        SmallVector<Value> acc(carried), values;
        Value at = rowAt(current.values, j, depth * elementBytes);
        for (int64_t v = 0; v < count; ++v)
          values.push_back(loadCache(at, (from + v) * vectorBytes));
        for (int64_t r = 0; r < rows; ++r) {
          Value p = k.broadcast(k.load(k.f32Type, rowAt(weights, j, 4), r * page * 4));
          for (int64_t v = 0; v < count; ++v)
            acc[r * count + v] = k.fma(values[v], p, acc[r * count + v]);
        }
        return acc;
      });
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < count; ++v)
          k.store(sums[r * count + v], output, r * depth * 4 + (from + v) * 64);
    }
  });
}

void AttendKernel::emitFinish(Value queryRows) {
  k.loop(k.i64(0), queryRows, 1, [&](Value row) {
    Value sum = k.broadcast(k.reduceAdd(k.load(k.vf, rowAt(sums, row, 64))));
    Value output = rowAt(results, row, depth * 4);
    for (int64_t v = 0; v < depth / kLanes; ++v)
      k.store(arith::DivFOp::create(k.b, k.load(k.vf, output, v * 64), sum), output, v * 64);
  });
}
