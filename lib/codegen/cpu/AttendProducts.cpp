// Products of attention by vectors of 16: in f32, and on pairs of bf16 as a matrix unit adds them.
#include "lib/codegen/cpu/AttendProducts.h"
#include "lib/codegen/cpu/AttendRows.h"
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"
#include "lib/codegen/cpu/MatrixTiles.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr int64_t kLine = 64;

class PairProducts : public AttendProducts {
public:
  PairProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule)
      : AttendProducts(kernel, kv, maxRows, schedule) {
    expanded = k.allocate(maxRows * depth * 4);
  }
  void beginItem(Value queryRows) override;
  void emitScores(Value queryRows, const AttendPage &current) override;
  void emitValues(Value queryRows, const AttendPage &current) override;

private:
  // Even and odd sums per row and vector, from zero, over the pairs `from` .. `to` - 1 of one block.
  struct Block {
    int64_t rows, vectors;
    Value from, to;
    llvm::function_ref<SmallVector<Value>(Value)> words;       // of a pair: one vector of words for each vector
    llvm::function_ref<Value(Value, int64_t, int64_t)> factor; // of a pair, row, and 0 (even) or 1 (odd): f32
    Value lastOdd;                                             // pairs from here on have no odd element
  };
  SmallVector<Value> sumsOf(const Block &block);
  // to[r][v] += sums, in memory.
  void addSums(ArrayRef<Value> sums, int64_t rows, int64_t vectors, Value to, int64_t strideBytes);
  // As the instruction does that this stands for.
  Value flushed(Value vector) { return flushSubnormal(k, vector); }

  Value expanded; // queries as f32
};

} // namespace

AttendProducts::AttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule)
    : k(kernel), kv(kv), depth(kv.getHeadDim()), page(kv.getPage()), kernelRows(schedule.kernelRows), maxRows(maxRows),
      resultBytes(valueVectors(kv) * 64), path(schedule.products) {
  queries = k.allocate(maxRows * depth * 4 + 64);
  results = k.allocate(maxRows * resultBytes + 64);
  scores = k.allocate(maxRows * page * 4);
  if (path == AttendPath::Tiles || path == AttendPath::Dots)
    weights = k.allocate(maxRows * page * 2);
}

Type AttendProducts::queryElement() const {
  bool plain = path == AttendPath::Panels || path == AttendPath::Rows;
  return plain ? k.f32Type : Type(k.b.getBF16Type());
}

Value AttendProducts::queryOf(Value row) {
  return k.at(queries, k.mul(row, depth * queryElement().getIntOrFloatBitWidth() / 8));
}

void AttendProducts::storeProbabilities(Value probabilities, Value row, int64_t v) {
  if (!weights)
    return k.store(probabilities, scoresOf(row), v * 64);
  Value high = arith::ShRUIOp::create(k.b, k.bitcast(probabilities, k.vi), k.splatInt(16));
  k.store(arith::TruncIOp::create(k.b, k.vectorOf(kLanes, k.i16Type), high), k.at(weights, k.mul(row, page * 2)),
          v * 32);
}

void AttendProducts::fetch(Value half, int64_t bytes) {
  constexpr int64_t streamBytes = 4096, lines = 16;
  for (int64_t start = 0; start < bytes; start += streamBytes)
    for (int64_t line = 0; line < lines; ++line)
      k.prefetch(half, start + line * kLine, KernelBuilder::Cache::Second);
}

std::unique_ptr<AttendProducts> AttendProducts::create(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                       const Schedule &schedule) {
  // Without the instruction vectors stand for it.
  Schedule pairs = schedule;
  pairs.products = AttendPath::Pairs;
  switch (schedule.products) {
  case AttendPath::Tiles:
    return usesPairTiles(kernel) ? makeTiledAttendProducts(kernel, kv, maxRows, schedule)
                                 : std::make_unique<PairProducts>(kernel, kv, maxRows, pairs);
  case AttendPath::Pairs:
    return std::make_unique<PairProducts>(kernel, kv, maxRows, schedule);
  case AttendPath::Dots:
    return makeDotAttendProducts(kernel, kv, maxRows, schedule);
  case AttendPath::Panels:
    return std::make_unique<PlainProducts>(kernel, kv, maxRows, schedule);
  case AttendPath::Rows:
    return std::make_unique<RowProducts>(kernel, kv, maxRows, schedule);
  }
  llvm_unreachable("a path without products");
}

//===-- f32
//---------------------------------------------------------------------------------------------------------===//

void PlainProducts::emitScores(Value queryRows, const AttendPage &current) {
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    Value input = k.at(queries, k.mul(first, depth * 4)), output = scoresOf(first);
    int64_t elementBytes = keyElement.getIntOrFloatBitWidth() / 8, panelBytes = depth * kLanes * elementBytes;
    emitPasses(k, page / kLanes, vectorsPerPass(rows, k.target), 1, panelBytes, current.keys,
               [&](Value base, ArrayRef<int64_t> offsets, Value firstVector) {
                 int64_t count = offsets.size();
                 SmallVector<Value> init(rows * count, k.splat(0.0f));
                 auto dots = k.loop(k.i64(0), k.i64(depth), 1, init, [&](Value channel, ValueRange carried) {
                   SmallVector<Value> acc(carried), keys;
                   Value at = k.at(base, k.mul(channel, kLanes * elementBytes));
                   for (int64_t offset : offsets)
                     keys.push_back(loadAsF32(k, keyElement, at, offset));
                   for (int64_t r = 0; r < rows; ++r) {
                     Value x = k.broadcast(k.load(k.f32Type, k.at(input, k.mul(channel, 4)), r * depth * 4));
                     for (int64_t v = 0; v < count; ++v)
                       acc[r * count + v] = k.fma(keys[v], x, acc[r * count + v]);
                   }
                   return acc;
                 });
                 Value to = k.at(output, k.mul(firstVector, 64));
                 for (int64_t r = 0; r < rows; ++r)
                   for (int64_t v = 0; v < count; ++v)
                     k.store(dots[r * count + v], to, r * page * 4 + v * 64);
               });
  });
}

Value PlainProducts::valueAt(const AttendPage &current, Value j) {
  return k.at(current.values, k.mul(j, kv.getValueDim() * valueElement.getIntOrFloatBitWidth() / 8));
}

void PlainProducts::emitValues(Value queryRows, const AttendPage &current) {
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    Value weights = scoresOf(first), output = resultOf(first);
    int64_t vectors = valueVectors(kv), vectorBytes = kLanes * valueElement.getIntOrFloatBitWidth() / 8;
    int64_t perPass = vectorsPerPass(rows, k.target);
    int64_t passes = (vectors + perPass - 1) / perPass, per = (vectors + passes - 1) / passes;
    for (int64_t from = 0; from < vectors; from += per) {
      int64_t count = std::min(per, vectors - from);
      SmallVector<Value> init;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < count; ++v)
          init.push_back(k.load(k.vf, output, r * resultBytes + (from + v) * 64));
      auto sums = k.loop(k.i64(0), current.valid, 1, init, [&](Value j, ValueRange carried) {
        SmallVector<Value> acc(carried), values;
        Value at = valueAt(current, j);
        for (int64_t v = from; v < from + count; ++v)
          values.push_back(loadAsF32(k, valueElement, at, v * vectorBytes, valueWidth - v * kLanes));
        for (int64_t r = 0; r < rows; ++r) {
          Value p = k.broadcast(k.load(k.f32Type, k.at(weights, k.mul(j, 4)), r * page * 4));
          for (int64_t v = 0; v < count; ++v)
            acc[r * count + v] = k.fma(values[v], p, acc[r * count + v]);
        }
        return acc;
      });
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < count; ++v)
          k.store(sums[r * count + v], output, r * resultBytes + (from + v) * 64);
    }
  });
}

//===-- pairs of bf16
//-----------------------------------------------------------------------------------------------===//

void PairProducts::beginItem(Value queryRows) {
  k.loop(k.i64(0), k.mul(queryRows, depth), kLanes, [&](Value element) {
    Value narrow = k.load(k.vectorOf(kLanes, k.b.getBF16Type()), k.at(queries, k.mul(element, 2)));
    k.store(flushed(extendBf16(k, narrow)), k.at(expanded, k.mul(element, 4)));
  });
}

SmallVector<Value> PairProducts::sumsOf(const Block &block) {
  int64_t count = block.rows * block.vectors;
  SmallVector<Value> init(2 * count, k.splat(0.0f));
  SmallVector<Value> halves = k.loop(block.from, block.to, 1, init, [&](Value pair, ValueRange carried) {
    SmallVector<Value> acc(carried), words = block.words(pair);
    Value high = k.i32(static_cast<int32_t>(0xffff0000));
    if (block.lastOdd) // what was never written is not even multiplied by zero
      high = k.select(k.less(pair, block.lastOdd), high, k.i32(0));
    Value highs = k.broadcast(high);
    for (int64_t odd : {0, 1}) {
      SmallVector<Value> factors;
      for (int64_t v = 0; v < block.vectors; ++v) {
        Value bits = odd ? arith::AndIOp::create(k.b, words[v], highs).getResult()
                         : arith::ShLIOp::create(k.b, words[v], k.splatInt(16)).getResult();
        factors.push_back(flushed(k.bitcast(bits, k.vf)));
      }
      for (int64_t r = 0; r < block.rows; ++r) {
        Value x = k.broadcast(block.factor(pair, r, odd));
        for (int64_t v = 0; v < block.vectors; ++v) {
          Value &sum = acc[odd * count + r * block.vectors + v];
          sum = flushed(k.fma(factors[v], x, sum));
        }
      }
    }
    return acc;
  });
  SmallVector<Value> sums;
  for (int64_t i = 0; i < count; ++i)
    sums.push_back(flushed(k.addF(halves[i], halves[count + i])));
  return sums;
}

void PairProducts::addSums(ArrayRef<Value> sums, int64_t rows, int64_t vectors, Value to, int64_t strideBytes) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v) {
      Value old = flushed(k.load(k.vf, to, r * strideBytes + v * 64));
      k.store(flushed(k.addF(old, sums[r * vectors + v])), to, r * strideBytes + v * 64);
    }
}

void PairProducts::emitScores(Value queryRows, const AttendPage &current) {
  k.loop(k.i64(0), k.mul(queryRows, page), kLanes,
         [&](Value element) { k.store(k.splat(0.0f), k.at(scores, k.mul(element, 4))); });
  int64_t panelBytes = depth * kLanes * 2, pairsOfKey = depth / 2;
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    Value input = k.at(expanded, k.mul(first, depth * 4)), output = scoresOf(first);
    emitPasses(k, page / kLanes, vectorsPerPass(2 * rows, k.target, 2), 1, panelBytes, current.keys,
               [&](Value base, ArrayRef<int64_t> offsets, Value firstVector) {
                 int64_t count = offsets.size();
                 Value to = k.at(output, k.mul(firstVector, 64));
                 auto words = [&](Value pair) {
                   SmallVector<Value> loaded;
                   Value at = k.at(base, k.mul(pair, kLine));
                   for (int64_t offset : offsets)
                     loaded.push_back(k.load(k.vi, at, offset));
                   return loaded;
                 };
                 auto factor = [&](Value pair, int64_t r, int64_t odd) {
                   return k.load(k.f32Type, k.at(input, k.mul(pair, 8)), r * depth * 4 + odd * 4);
                 };
                 k.loop(k.i64(0), k.i64(pairsOfKey), kTileDepth / 2, [&](Value from) {
                   Value end = k.min(k.add(from, kTileDepth / 2), k.i64(pairsOfKey));
                   addSums(sumsOf({rows, count, from, end, words, factor, {}}), rows, count, to, page * 4);
                 });
               });
  });
}

void PairProducts::emitValues(Value queryRows, const AttendPage &current) {
  Value pairsOfPage = k.ceilDiv(current.valid, 2), wholePairs = k.div(current.valid, 2);
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    Value weights = scoresOf(first), output = resultOf(first);
    int64_t vectors = depth / kLanes, perPass = vectorsPerPass(2 * rows, k.target, 2);
    int64_t passes = (vectors + perPass - 1) / perPass, per = (vectors + passes - 1) / passes;
    for (int64_t from = 0; from < vectors; from += per) {
      int64_t count = std::min(per, vectors - from);
      auto words = [&](Value pair) {
        SmallVector<Value> loaded;
        Value at = k.at(current.values, k.mul(pair, kLine));
        for (int64_t v = from; v < from + count; ++v)
          loaded.push_back(k.load(k.vi, at, v * kLanes * page * 2));
        return loaded;
      };
      auto factor = [&](Value pair, int64_t r, int64_t odd) {
        return k.load(k.f32Type, k.at(weights, k.mul(pair, 8)), r * page * 4 + odd * 4);
      };
      k.loop(k.i64(0), pairsOfPage, kTileDepth / 2, [&](Value block) {
        Value end = k.min(k.add(block, kTileDepth / 2), pairsOfPage);
        addSums(sumsOf({rows, count, block, end, words, factor, wholePairs}), rows, count, k.at(output, from * 64),
                depth * 4);
      });
    }
  });
}
