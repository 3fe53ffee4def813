// Kernels on 8-bit floats: codes become f32 on the way, a group of 32 is summed up and then scaled.
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"
#include "lib/codegen/cpu/Schedule.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

Value llmc::cpu::loadFloat8(KernelBuilder &k, Value pointer, int64_t bytes) {
  // e4m3 has the mantissa of f16 but for seven bits, and its exponent but for one: as f16 it is 2^-8 of the value,
  // subnormals too.
  VectorType words = k.vectorOf(kLanes, k.i16Type);
  auto splat = [&](int16_t value) { return arith::ConstantOp::create(k.b, DenseElementsAttr::get(words, value)); };
  Value codes = arith::ExtSIOp::create(k.b, words, k.load(k.vectorOf(kLanes, k.i8Type), pointer, bytes));
  Value shifted = arith::ShLIOp::create(k.b, codes, splat(7));
  Value half =
      arith::AndIOp::create(k.b, shifted, splat(static_cast<int16_t>(0xbfff))); // the sign twice, once too many
  return arith::ExtFOp::create(k.b, k.vf, k.bitcast(half, k.vectorOf(kLanes, k.b.getF16Type())));
}

void llmc::cpu::emitFloat8DotTile(KernelBuilder &k, const PackedLayout &weight, int64_t rows, RowArray input,
                                  Value tile, RowArray result, const DepthPart &part) {
  Value from = part.from ? k.mul(part.from, 2) : k.i64(0), to = k.i64((weight.k + valuesPerGroup - 1) / valuesPerGroup);
  if (part.to)
    to = k.min(to, k.mul(part.to, 2));
  emitPasses(k, vectorsOf(weight), vectorsPerPass(rows, k.target, /*registersPerWeight=*/2), 1, weight.blockBytes(),
             tile, [&](Value base, ArrayRef<int64_t> offsets, Value first) {
               int64_t count = offsets.size();
               SmallVector<Value> zeros(rows * count, k.splat(0.0f));
               Value place = k.at(result.pointer, k.mul(first, 64));
               SmallVector<Value> init = zeros;
               for (int64_t i = 0; i < rows * count && part.from; ++i)
                 init[i] = k.load(k.vf, place, i / count * result.strideBytes + i % count * 64);
               SmallVector<Value> sums = k.loop(from, to, 1, init, [&](Value group, ValueRange carried) {
                 Value block = k.at(base, k.mul(k.div(group, 2), vectorsOf(weight) * weight.blockBytes()));
                 Value inBlock = k.rem(group, 2), codes = k.at(block, k.mul(inBlock, weight.groupBytes()));
                 Value x = k.at(input.pointer, k.mul(group, 4 * valuesPerGroup));
                 if (k.target.prefetchBytes && rows <= 4)
                   for (int64_t offset : offsets)
                     for (int64_t line = 0; line < weight.groupBytes(); line += 64)
                       k.prefetch(codes, offset + line + k.target.prefetchBytes, KernelBuilder::Cache::Second);
                 SmallVector<Value> products =
                     k.loop(k.i64(0), k.i64(valuesPerGroup), 1, zeros, [&](Value step, ValueRange partial) {
                       SmallVector<Value> acc(partial);
                       Value at = k.at(codes, k.mul(step, lanesPerBlock)), row = k.at(x, k.mul(step, 4));
                       SmallVector<Value> w;
                       for (int64_t offset : offsets)
                         w.push_back(loadFloat8(k, at, offset));
                       for (int64_t r = 0; r < rows; ++r) {
                         Value element = k.broadcast(k.load(k.f32Type, row, r * input.strideBytes));
                         for (int64_t v = 0; v < count; ++v)
                           acc[r * count + v] = k.fma(w[v], element, acc[r * count + v]);
                       }
                       return acc;
                     });
                 SmallVector<Value> total(carried);
                 Value scales = k.at(block, k.add(k.mul(inBlock, 4 * kLanes), weight.scalesAt()));
                 for (int64_t v = 0; v < count; ++v) {
                   Value scale = k.mulF(k.load(k.vf, scales, offsets[v]), k.splat(float8Factor));
                   for (int64_t r = 0; r < rows; ++r)
                     total[r * count + v] = k.fma(products[r * count + v], scale, total[r * count + v]);
                 }
                 return total;
               });
               for (int64_t r = 0; r < rows; ++r)
                 for (int64_t v = 0; v < count; ++v)
                   k.store(sums[r * count + v], place, r * result.strideBytes + v * 64);
             });
}
