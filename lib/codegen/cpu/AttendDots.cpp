// Products of attention by an instruction that adds the two products of a pair of bf16, one pair after the other.
#include "lib/codegen/cpu/AttendProducts.h"
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr int64_t kLine = 64; // of 16 pairs

class DotProducts : public AttendProducts {
public:
  DotProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule)
      : AttendProducts(kernel, kv, maxRows, schedule) {}
  void emitScores(Value queryRows, const AttendPage &current) override;
  void emitValues(Value queryRows, const AttendPage &current) override;

private:
  // Pairs of one side in vectors of 16, at `base` + offset + 64 * pair; of the other one after the other in every row.
  struct Block {
    int64_t rows;
    Value base;
    ArrayRef<int64_t> offsets;
    Value factors;
    int64_t factorStride; // bytes from row to row
  };
  // sums[row, vector] of the pairs `from` .. `to` - 1 added; `mask` (where there is one) cuts words of `base`.
  SmallVector<Value> add(const Block &block, Value from, Value to, ValueRange sums, Value mask);
};

} // namespace

std::unique_ptr<AttendProducts> llmc::cpu::makeDotAttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                                 const Schedule &schedule) {
  return std::make_unique<DotProducts>(kernel, kv, maxRows, schedule);
}

SmallVector<Value> DotProducts::add(const Block &block, Value from, Value to, ValueRange sums, Value mask) {
  VectorType pairs = k.vectorOf(2 * kLanes, k.b.getBF16Type());
  int64_t count = block.offsets.size();
  return k.loop(from, to, 1, sums, [&](Value pair, ValueRange carried) {
    SmallVector<Value> acc(carried), words;
    Value at = k.at(block.base, k.mul(pair, kLine));
    for (int64_t offset : block.offsets) {
      Value word = k.load(k.vi, at, offset);
      words.push_back(k.bitcast(mask ? arith::AndIOp::create(k.b, word, mask).getResult() : word, pairs));
    }
    Value factors = k.at(block.factors, k.mul(pair, 4));
    for (int64_t r = 0; r < block.rows; ++r) {
      Value x = k.bitcast(k.broadcast(k.load(k.i32Type, factors, r * block.factorStride)), pairs);
      for (int64_t v = 0; v < count; ++v)
        acc[r * count + v] = emitInstruction(k, Instruction::DotBf16, {acc[r * count + v], words[v], x});
    }
    return acc;
  });
}

void DotProducts::emitScores(Value queryRows, const AttendPage &current) {
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    emitPasses(k, page / kLanes, vectorsPerPass(rows, k.target), 1, depth * kLanes * 2, current.keys,
               [&](Value base, ArrayRef<int64_t> offsets, Value firstVector) {
                 int64_t count = offsets.size();
                 SmallVector<Value> zero(rows * count, k.splat(0.0f));
                 SmallVector<Value> sums = add({rows, base, offsets, queryOf(first), depth * 2}, k.i64(0),
                                               k.i64(depth / 2), zero, /*mask=*/{});
                 Value to = k.at(scoresOf(first), k.mul(firstVector, 64));
                 for (int64_t r = 0; r < rows; ++r)
                   for (int64_t v = 0; v < count; ++v)
                     k.store(sums[r * count + v], to, r * page * 4 + v * 64);
               });
  });
}

void DotProducts::emitValues(Value queryRows, const AttendPage &current) {
  Value pairs = k.ceilDiv(current.valid, 2), wholePairs = k.div(current.valid, 2);
  k.rowGroups(queryRows, kernelRows, [&](int64_t rows, Value first) {
    emitPasses(k, depth / kLanes, vectorsPerPass(rows, k.target), 1, kLanes * page * 2, current.values,
               [&](Value base, ArrayRef<int64_t> offsets, Value firstVector) {
                 int64_t count = offsets.size();
                 Value to = k.at(resultOf(first), k.mul(firstVector, 64));
                 Block block = {rows, base, offsets, k.at(weights, k.mul(first, page * 2)), page * 2};
                 SmallVector<Value> sums;
                 for (int64_t r = 0; r < rows; ++r)
                   for (int64_t v = 0; v < count; ++v)
                     sums.push_back(k.load(k.vf, to, r * resultBytes + v * 64));
                 sums = add(block, k.i64(0), wholePairs, sums, /*mask=*/{});
                 // Of a last position alone: what was never written is not even multiplied by zero.
                 sums = add(block, wholePairs, pairs, sums, k.splatInt(0xffff));
                 for (int64_t r = 0; r < rows; ++r)
                   for (int64_t v = 0; v < count; ++v)
                     k.store(sums[r * count + v], to, r * resultBytes + v * 64);
               });
  });
}
