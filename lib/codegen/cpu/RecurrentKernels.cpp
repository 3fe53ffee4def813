// The arithmetic of tile.recur, tile.convolve and tile.pool in the order that their descriptions fix.
#include "lib/codegen/cpu/RecurrentKernels.h"
#include "lib/codegen/cpu/Instructions.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// Keys that a round of a loop takes: two for each partial sum.
constexpr int64_t kUnrolledKeys = 4;

int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }

class RecurKernel {
public:
  RecurKernel(KernelBuilder &kernel, tile::RecurOp op, const RecurOperands &operands, Value state)
      : k(kernel), op(op), type(op.getState().getType()), at(operands), state(state), keys(type.getKeys()),
        heads(op.numHeads()), keyVectors((keys + kLanes - 1) / kLanes) {
    if (op.getDecay())
      decayPerKey = sizeOf(op.getDecay()) == heads * keys && keys > 1;
  }
  void emit() { type.lanesAreKeys() ? emitKeyLanes() : emitValueLanes(); }

private:
  // Vectors of values; keys one after the other.
  using Sums = SmallVectorImpl<Value>;
  using KeyBody = llvm::function_ref<void(Value key, int64_t parity, Sums &sums)>;
  void emitValueLanes();
  void emitDelta(int64_t vectors, Value first);
  void emitGated(int64_t vectors, Value first);
  SmallVector<Value> forKeys(int64_t numSums, KeyBody body);
  Value line(Value key, Value first) { return k.at(state, k.add(k.mul(key, 4 * type.blockLanes()), k.mul(first, 64))); }
  Value spread(Value numbers, Value index) { return k.broadcast(k.load(k.f32Type, k.at(numbers, k.mul(index, 4)))); }
  Value decayed(Value element, Value key);
  // `vector`, of as many elements as there are keys, times the decay; itself where there is none.
  Value timesDecay(Value vector);

  // Vectors of keys; heads and values one after the other.
  void emitKeyLanes();
  void emitHeadValue(Value head, Value value, Value agreement);
  // Sixteen heads of one value and one vector of keys, without beta.
  void emitScan(Value firstHead);
  Value decayVector(Value head, int64_t vector);

  Value queryTimesKey();

  KernelBuilder &k;
  tile::RecurOp op;
  llm::RecurrentType type;
  RecurOperands at;
  Value state;
  int64_t keys, heads, keyVectors;
  bool decayPerKey = false;
  Value headDecay;                           // in every lane, where the decay is one number
  Value decayedQuery, decayedKey, agreement; // of the delta rule with lanes of values
};

Value RecurKernel::queryTimesKey() {
  Value sum = k.splat(0.0f);
  for (int64_t v = 0; v < keyVectors; ++v)
    sum = k.fma(k.load(k.vf, at.query, 64 * v), k.load(k.vf, at.key, 64 * v), sum);
  return k.reduceAdd(sum);
}

//===-- lanes of values --===//

SmallVector<Value> RecurKernel::forKeys(int64_t numSums, KeyBody body) {
  int64_t whole = keys / kUnrolledKeys * kUnrolledKeys;
  SmallVector<Value> sums(static_cast<size_t>(numSums), k.splat(0.0f));
  auto round = [&](Value first, int64_t count, Sums &values) {
    for (int64_t i = 0; i < count; ++i)
      body(k.add(first, i), i % 2, values);
  };
  if (whole > 0)
    sums = k.loop(k.i64(0), k.i64(whole), kUnrolledKeys, sums, [&](Value first, ValueRange carried) {
      SmallVector<Value> values(carried);
      round(first, kUnrolledKeys, values);
      return values;
    });
  round(k.i64(whole), keys - whole, sums);
  return sums;
}

Value RecurKernel::decayed(Value element, Value key) {
  if (!at.decay)
    return element;
  return k.mulF(decayPerKey ? spread(at.decay, key) : headDecay, element);
}

Value RecurKernel::timesDecay(Value vector) {
  if (!at.decay)
    return vector;
  Value scaled = k.allocate(64 * keyVectors);
  for (int64_t v = 0; v < keyVectors; ++v) {
    Value factor = decayPerKey ? k.load(k.vf, at.decay, 64 * v) : headDecay;
    k.store(k.mulF(factor, k.load(k.vf, vector, 64 * v)), scaled, 64 * v);
  }
  return scaled;
}

void RecurKernel::emitDelta(int64_t vectors, Value first) {
  // Sums 2 i and 2 i + 1 are of the even and the odd keys: y of every vector, then p.
  SmallVector<Value> sums = forKeys(4 * vectors, [&](Value key, int64_t parity, Sums &values) {
    Value byKey = spread(decayedKey, key), byQuery = spread(decayedQuery, key), elements = line(key, first);
    for (int64_t v = 0; v < vectors; ++v) {
      Value element = k.load(k.vf, elements, 64 * v);
      Value &y = values[2 * v + parity], &p = values[2 * (vectors + v) + parity];
      y = k.fma(byKey, element, y);
      p = k.fma(byQuery, element, p);
    }
  });
  SmallVector<Value> update;
  Value beta = k.broadcast(k.load(k.f32Type, at.beta));
  for (int64_t v = 0; v < vectors; ++v) {
    Value place = k.mul(k.add(first, v), 64), y = k.addF(sums[2 * v], sums[2 * v + 1]);
    Value p = k.addF(sums[2 * (vectors + v)], sums[2 * (vectors + v) + 1]);
    update.push_back(k.mulF(beta, arith::SubFOp::create(k.b, k.load(k.vf, k.at(at.value, place)), y)));
    k.store(k.fma(agreement, update.back(), p), k.at(at.result, place));
  }
  forKeys(/*numSums=*/0, [&](Value key, int64_t, Sums &) {
    Value byKey = spread(at.key, key), elements = line(key, first);
    for (int64_t v = 0; v < vectors; ++v)
      k.store(k.fma(byKey, update[v], decayed(k.load(k.vf, elements, 64 * v), key)), elements, 64 * v);
  });
}

void RecurKernel::emitGated(int64_t vectors, Value first) {
  SmallVector<Value> inputs;
  for (int64_t v = 0; v < vectors; ++v)
    inputs.push_back(k.load(k.vf, k.at(at.value, k.mul(k.add(first, v), 64))));
  SmallVector<Value> sums = forKeys(2 * vectors, [&](Value key, int64_t parity, Sums &values) {
    Value byKey = spread(at.key, key), byQuery = spread(at.query, key), elements = line(key, first);
    for (int64_t v = 0; v < vectors; ++v) {
      Value element = k.fma(byKey, inputs[v], decayed(k.load(k.vf, elements, 64 * v), key));
      k.store(element, elements, 64 * v);
      values[2 * v + parity] = k.fma(byQuery, element, values[2 * v + parity]);
    }
  });
  for (int64_t v = 0; v < vectors; ++v)
    k.store(k.addF(sums[2 * v], sums[2 * v + 1]), k.at(at.result, k.mul(k.add(first, v), 64)));
}

void RecurKernel::emitValueLanes() {
  if (at.decay && !decayPerKey)
    headDecay = k.broadcast(k.load(k.f32Type, at.decay));
  if (at.beta) {
    decayedQuery = timesDecay(at.query);
    decayedKey = timesDecay(at.key);
    agreement = k.broadcast(queryTimesKey());
  }
  // Eight sums keep both multipliers of a core busy; more would not fit sixteen registers.
  int64_t group = k.target.vectorRegisters == 32 ? 2 : 1;
  int64_t vectors = (sizeOf(op.getValue()) + kLanes - 1) / kLanes;
  k.rowGroups(k.i64(vectors), group,
              [&](int64_t count, Value first) { at.beta ? emitDelta(count, first) : emitGated(count, first); });
}

//===-- lanes of keys --===//

Value RecurKernel::decayVector(Value head, int64_t vector) {
  if (!decayPerKey)
    return headDecay;
  Value place = k.at(at.decay, k.add(k.mul(head, 4 * keys), 64 * vector));
  int64_t lanes = std::min(kLanes, keys - vector * kLanes);
  return lanes == kLanes ? k.load(k.vf, place) : k.maskedLoad(k.vf, place, k.laneMask(lanes));
}

void RecurKernel::emitHeadValue(Value head, Value value, Value agreement) {
  int64_t lanes = type.blockLanes(), values = type.getValues();
  auto place = [&](int64_t vector) {
    int64_t element = vector * kLanes, block = element / lanes;
    Value start = k.add(k.mul(head, type.blocksPerHead() * values * lanes), k.mul(value, lanes));
    return k.at(state, k.mul(k.add(start, block * values * lanes + element % lanes), 4));
  };
  Value index = k.mul(k.add(k.mul(head, values), value), 4), input = k.load(k.f32Type, k.at(at.value, index));
  if (at.decay && !decayPerKey)
    headDecay = spread(at.decay, head);
  Value y = k.splat(0.0f), p = k.splat(0.0f);
  SmallVector<Value> elements, factors;
  for (int64_t v = 0; v < keyVectors; ++v) {
    Value query = k.load(k.vf, at.query, 64 * v), key = k.load(k.vf, at.key, 64 * v);
    Value element = k.load(k.vf, place(v)), factor = at.decay ? decayVector(head, v) : Value();
    elements.push_back(factor ? k.mulF(factor, element) : element);
    if (!at.beta) {
      elements.back() = k.fma(key, k.broadcast(input), elements.back());
      p = k.fma(query, elements.back(), p);
      continue;
    }
    y = k.fma(factor ? k.mulF(factor, key) : key, element, y);
    p = k.fma(factor ? k.mulF(factor, query) : query, element, p);
  }
  Value result = k.reduceAdd(p);
  if (at.beta) {
    Value beta = k.load(k.f32Type, k.at(at.beta, k.mul(head, 4)));
    Value update = k.mulF(beta, arith::SubFOp::create(k.b, input, k.reduceAdd(y)));
    for (int64_t v = 0; v < keyVectors; ++v)
      elements[v] = k.fma(k.load(k.vf, at.key, 64 * v), k.broadcast(update), elements[v]);
    result = k.fma(agreement, update, result);
  }
  for (int64_t v = 0; v < keyVectors; ++v)
    k.store(elements[v], place(v));
  k.store(result, k.at(at.result, index));
}

// The sum of each of sixteen vectors, in the order of reduceAdd, in a quarter of its instructions: every round adds
// halves of two vectors at once.
Value sumOfEach(KernelBuilder &k, SmallVector<Value> vectors) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < 2 * kLanes; lane += 2 * half)
      for (int64_t i = lane; i < lane + half; ++i) {
        low.push_back(i);
        high.push_back(i + half);
      }
    SmallVector<Value> sums;
    for (size_t i = 0; i < vectors.size(); i += 2)
      sums.push_back(k.addF(vector::ShuffleOp::create(k.b, vectors[i], vectors[i + 1], low),
                            vector::ShuffleOp::create(k.b, vectors[i], vectors[i + 1], high)));
    vectors = std::move(sums);
  }
  return vectors.front();
}

void RecurKernel::emitScan(Value firstHead) {
  Value query = k.load(k.vf, at.query), key = k.load(k.vf, at.key), zero = k.splat(0.0f);
  SmallVector<Value> products;
  for (int64_t i = 0; i < kLanes; ++i) {
    Value head = k.add(firstHead, i), place = k.at(state, k.mul(head, 4 * type.blockLanes()));
    Value element = k.load(k.vf, place);
    if (at.decay)
      element = k.mulF(decayPerKey ? decayVector(head, 0) : spread(at.decay, head), element);
    element = k.fma(key, spread(at.value, head), element);
    k.store(element, place);
    products.push_back(k.fma(query, element, zero));
  }
  k.store(sumOfEach(k, std::move(products)), k.at(at.result, k.mul(firstHead, 4)));
}

void RecurKernel::emitKeyLanes() {
  if (!at.beta && type.getValues() == 1 && keyVectors == 1 && heads % kLanes == 0)
    return k.loop(k.i64(0), k.i64(heads), kLanes, [&](Value head) { emitScan(head); });
  Value agreement = at.beta ? queryTimesKey() : Value();
  k.loop(k.i64(0), k.i64(heads), 1, [&](Value head) {
    k.loop(k.i64(0), k.i64(type.getValues()), 1, [&](Value value) { emitHeadValue(head, value, agreement); });
  });
}

} // namespace

void llmc::cpu::emitRecurRow(KernelBuilder &kernel, tile::RecurOp op, const RecurOperands &operands, Value state) {
  RecurKernel(kernel, op, operands, state).emit();
}

void llmc::cpu::emitConvolveRow(KernelBuilder &k, tile::ConvolveOp op, Value input, Value weight, Value state,
                                Value result) {
  int64_t taps = op.getWeight().getType().getShape()[1], lineBytes = 4 * sizeOf(op.getInput());
  for (int64_t at = 0; at < lineBytes; at += 64) {
    Value sum = k.splat(0.0f), next;
    for (int64_t tap = 0; tap < taps; ++tap) {
      next = tap + 1 < taps ? k.load(k.vf, state, tap * lineBytes + at) : k.load(k.vf, input, at);
      sum = k.fma(k.load(k.vf, weight, tap * lineBytes + at), next, sum);
      if (tap > 0)
        k.store(next, state, (tap - 1) * lineBytes + at);
    }
    k.store(sum, result, at);
  }
}

namespace {

// Sixteen channels of a running sum.
struct PoolSum {
  Value maximum, weights, sum;
};

class PoolKernel {
public:
  PoolKernel(KernelBuilder &kernel, Value begins, Value state, int64_t lineBytes)
      : k(kernel), begins(begins), state(state), lineBytes(lineBytes) {}

  PoolSum load(int64_t index, int64_t at) {
    int64_t first = 3 * index * lineBytes + at;
    return {k.load(k.vf, state, first), k.load(k.vf, state, first + lineBytes),
            k.load(k.vf, state, first + 2 * lineBytes)};
  }
  void store(const PoolSum &sum, int64_t index, int64_t at) {
    int64_t first = 3 * index * lineBytes + at;
    k.store(sum.maximum, state, first);
    k.store(sum.weights, state, first + lineBytes);
    k.store(sum.sum, state, first + 2 * lineBytes);
  }
  // `first` where a window begins.
  PoolSum atBegin(const PoolSum &first, const PoolSum &later) {
    return {k.select(begins, first.maximum, later.maximum), k.select(begins, first.weights, later.weights),
            k.select(begins, first.sum, later.sum)};
  }
  PoolSum nothing() { return {k.splat(0.0f), k.splat(0.0f), k.splat(0.0f)}; }
  // The maximum, or `other` where nothing has been added.
  Value maximumOr(const PoolSum &sum, Value other) {
    Value isEmpty = arith::CmpFOp::create(k.b, arith::CmpFPredicate::OEQ, sum.weights, k.splat(0.0f));
    return k.select(isEmpty, other, sum.maximum);
  }
  Value factor(Value of, Value top) { return exp2Polynomial(k, arith::SubFOp::create(k.b, of, top)); }
  PoolSum added(const PoolSum &sum, Value gate, Value value) {
    Value scaled = k.mulF(gate, k.splat(1.44269504f)), next = k.maxF(maximumOr(sum, scaled), scaled);
    Value kept = factor(maximumOr(sum, next), next), weight = factor(scaled, next);
    return {next, k.fma(sum.weights, kept, weight), k.fma(sum.sum, kept, k.mulF(weight, value))};
  }

private:
  KernelBuilder &k;
  Value begins, state;
  int64_t lineBytes;
};

} // namespace

void llmc::cpu::emitPoolRow(KernelBuilder &k, tile::PoolOp op, Value value, Value gate, Value begins, Value state,
                            Value result) {
  int64_t lineBytes = 4 * sizeOf(op.getResult()), last = 4 * sizeOf(op.getValue()) - lineBytes;
  PoolKernel kernel(k, begins, state, lineBytes);
  auto rowOf = [&](Value tile, int64_t at) { return k.load(k.vf, tile, at); };
  for (int64_t at = 0; at < lineBytes; at += 64) {
    PoolSum here = kernel.added(kernel.atBegin(kernel.nothing(), kernel.load(0, at)), rowOf(gate, last + at),
                                rowOf(value, last + at));
    kernel.store(here, 0, at);
    if (last == 0) {
      k.store(arith::DivFOp::create(k.b, here.sum, here.weights), result, at);
      continue;
    }
    PoolSum kept = kernel.load(1, at), before = kernel.atBegin(kept, kernel.load(2, at));
    kernel.store(kernel.added(kernel.atBegin(kernel.nothing(), kept), rowOf(gate, at), rowOf(value, at)), 1, at);
    kernel.store(before, 2, at);
    Value top = k.maxF(here.maximum, kernel.maximumOr(before, here.maximum));
    Value f = kernel.factor(here.maximum, top), e = kernel.factor(kernel.maximumOr(before, top), top);
    Value sum = k.fma(here.sum, f, k.mulF(before.sum, e));
    k.store(arith::DivFOp::create(k.b, sum, k.fma(here.weights, f, k.mulF(before.weights, e))), result, at);
  }
}
