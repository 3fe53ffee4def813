// f32 and bf16 kernels: an outer product of inputs and weights per step along K, accumulators in registers.
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"
#include "lib/codegen/cpu/Schedule.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

bool usesDotBf16(KernelBuilder &k, const PackedLayout &weight) {
  return weight.form == llm::WeightForm::BF16 && k.target.hasBf16Dot;
}

// One step along K for all rows and vectors: updates `acc`, rows outermost.
void emitStep(KernelBuilder &k, const PackedLayout &weight, int64_t rows, Value step, RowArray input, Value weights,
              ArrayRef<int64_t> offsets, MutableArrayRef<Value> acc) {
  int64_t count = offsets.size();
  auto row = [&](int64_t r, int64_t bytesPerStep) {
    return k.at(k.at(input.pointer, k.mul(step, bytesPerStep)), r * input.strideBytes);
  };
  if (usesDotBf16(k, weight)) {
    VectorType pairs = k.vectorOf(2 * kLanes, k.b.getBF16Type());
    SmallVector<Value> w;
    for (int64_t offset : offsets)
      w.push_back(k.load(pairs, weights, offset));
    for (int64_t r = 0; r < rows; ++r) {
      Value x = k.bitcast(k.broadcast(k.load(k.i32Type, row(r, 4))), pairs);
      for (int64_t v = 0; v < count; ++v)
        acc[r * count + v] = emitInstruction(k, Instruction::DotBf16, {acc[r * count + v], w[v], x});
    }
    return;
  }
  auto multiply = [&](ArrayRef<Value> w, int64_t bytesPerStep, int64_t at) {
    for (int64_t r = 0; r < rows; ++r) {
      Value x = k.broadcast(k.load(k.f32Type, row(r, bytesPerStep), at));
      for (int64_t v = 0; v < count; ++v)
        acc[r * count + v] = k.fma(w[v], x, acc[r * count + v]);
    }
  };
  SmallVector<Value> words;
  if (weight.form == llm::WeightForm::F32) {
    for (int64_t offset : offsets)
      words.push_back(k.load(k.vf, weights, offset));
    return multiply(words, 4, 0);
  }
  // Pairs: the odd element is one mask away, the even one a shift. Odd first, as vdpbf16ps does.
  for (int64_t offset : offsets)
    words.push_back(k.load(k.vi, weights, offset));
  auto halvesOf = [&](bool odd) {
    return llvm::map_to_vector(words, [&](Value word) { return halfOfPairs(k, word, odd); });
  };
  multiply(halvesOf(/*odd=*/true), 8, 4);
  multiply(halvesOf(/*odd=*/false), 8, 0);
}

} // namespace

bool llmc::cpu::usesPairTiles(KernelBuilder &k, const PackedLayout &weight) {
  return weight.form == llm::WeightForm::BF16 && k.target.hasBf16Tiles;
}

DotInputLayout llmc::cpu::dotInputLayout(KernelBuilder &k, const PackedLayout &weight) {
  DotInputLayout layout;
  bool pairs = usesDotBf16(k, weight) || usesPairTiles(k, weight);
  layout.element = pairs ? k.b.getBF16Type() : k.f32Type;
  layout.paddedDepth = (weight.k + 31) / 32 * 32;
  // One line more than the row: rows a power of two apart would share cache sets.
  layout.strideBytes = (layout.paddedDepth * (pairs ? 2 : 4) + 63) / 64 * 64 + 64;
  return layout;
}

void llmc::cpu::emitPasses(KernelBuilder &k, int64_t vectors, int64_t perPass, int64_t panelVectors, int64_t panelBytes,
                           Value base, llvm::function_ref<void(Value, ArrayRef<int64_t>, Value)> body) {
  auto offsetOf = [&](int64_t v) { return v / panelVectors * panelBytes + v % panelVectors * 64; };
  int64_t passes = (vectors + perPass - 1) / perPass, per = (vectors + passes - 1) / passes;
  SmallVector<int64_t> offsets;
  bool regular = vectors % per == 0 && (panelVectors % per == 0 || per % panelVectors == 0);
  if (passes > 1 && regular) {
    for (int64_t v = 0; v < per; ++v)
      offsets.push_back(offsetOf(v));
    k.loop(k.i64(0), k.i64(vectors), per, [&](Value first) {
      Value panel = k.mul(k.div(first, panelVectors), panelBytes);
      body(k.at(base, k.add(panel, k.mul(k.rem(first, panelVectors), 64))), offsets, first);
    });
    return;
  }
  for (int64_t first = 0; first < vectors; first += per) {
    offsets.clear();
    for (int64_t v = first; v < std::min(vectors, first + per); ++v)
      offsets.push_back(offsetOf(v));
    body(base, offsets, k.i64(first));
  }
}

void llmc::cpu::clearResult(KernelBuilder &k, const PackedLayout &weight, Value rows, RowArray result) {
  k.loop(k.i64(0), rows, 1, [&](Value row) {
    Value to = k.at(result.pointer, k.mul(row, result.strideBytes));
    for (int64_t v = 0; v < vectorsOf(weight); ++v)
      k.store(k.splat(0.0f), to, v * 64);
  });
}

void llmc::cpu::emitDotTile(KernelBuilder &k, const PackedLayout &weight, int64_t rows, RowArray input, Value tile,
                            RowArray result, const DepthPart &part) {
  int64_t stepBytes = weight.panel * 4, stepsPerBlock = weight.form == llm::WeightForm::BF16 ? 32 : 64;
  Value from = part.from ? k.mul(part.from, stepsPerBlock) : k.i64(0), to = k.i64(weight.numSteps());
  if (part.to)
    to = k.min(to, k.mul(part.to, stepsPerBlock));
  // Expanded pairs are a word and a half at a time.
  int64_t registersPerWeight = weight.form == llm::WeightForm::BF16 && !usesDotBf16(k, weight) ? 2 : 1;
  emitPasses(k, vectorsOf(weight), vectorsPerPass(rows, k.target, registersPerWeight), weight.panel / kLanes,
             weight.panelBytes(), tile, [&](Value base, ArrayRef<int64_t> offsets, Value first) {
               int64_t count = offsets.size();
               Value place = k.at(result.pointer, k.mul(first, 64));
               SmallVector<Value> init(rows * count, k.splat(0.0f));
               for (int64_t i = 0; i < rows * count && part.from; ++i)
                 init[i] = k.load(k.vf, place, i / count * result.strideBytes + i % count * 64);
               SmallVector<Value> sums = k.loop(from, to, 1, init, [&](Value step, ValueRange carried) {
                 SmallVector<Value> acc(carried);
                 Value weights = k.at(base, k.mul(step, stepBytes));
                 // Kernels read memory (few rows) or cache faster than the hardware looks ahead on some targets.
                 bool few = rows <= 4;
                 if (int64_t ahead = few ? k.target.prefetchBytes : k.target.cachePrefetchBytes)
                   for (int64_t offset : offsets)
                     k.prefetch(weights, offset + ahead,
                                few ? KernelBuilder::Cache::Second : KernelBuilder::Cache::First);
                 emitStep(k, weight, rows, step, input, weights, offsets, acc);
                 return acc;
               });
               for (int64_t r = 0; r < rows; ++r)
                 for (int64_t v = 0; v < count; ++v)
                   k.store(sums[r * count + v], place, r * result.strideBytes + v * 64);
             });
}
