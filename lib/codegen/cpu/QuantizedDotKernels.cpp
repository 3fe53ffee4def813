// Kernels on 8-bit and 4-bit weights: exact integer sums per group of 32, then one fused multiply-add per group.
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/Instructions.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// Codes of the input have one byte, or are radix * high + low: then every sum is taken over both bytes and put together
// at the end, exactly.
enum class Plane { High, Low };

// Codes of f4 as kernels multiply them: twice the value, and 12 more, so that they have no sign.
constexpr int8_t float4Codes[] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
constexpr int64_t float4ZeroPoint = 12;

// Rows that share a group's codes; lane counts of this target's integer vectors.
struct GroupKernel {
  KernelBuilder &k;
  const PackedLayout &weight;
  const QuantizedInputLayout &layout;
  int64_t rows;
  RowArray input;
  int64_t lanes; // 16 with VNNI, else 8

  VectorType bytesType() const { return k.vectorOf(4 * lanes, k.i8Type); }
  VectorType wordsType() const { return k.vectorOf(lanes, k.i32Type); }

  Value row(int64_t r) { return k.at(input.pointer, r * input.strideBytes); }
  // One byte of four codes of a row, in every lane.
  Value codes(int64_t r, Value at, Plane plane) {
    Value from = k.at(row(r), plane == Plane::Low ? k.add(at, layout.lowAt) : at);
    return k.bitcast(k.broadcast(k.load(k.i32Type, from), lanes), bytesType());
  }
  Value nibbles(Value words, bool high) {
    if (high)
      words = arith::ShRUIOp::create(k.b, words, k.splatInt(4, lanes));
    Value codes = k.bitcast(arith::AndIOp::create(k.b, words, k.splatInt(0x0f0f0f0f, lanes)).getResult(), bytesType());
    return weight.form == llm::WeightForm::F4 ? lookup(k, float4Codes, codes) : codes;
  }

  bool hasLow() const { return layout.codeBytes == 2; }

  // Sums of one group: of every row, part after part.
  SmallVector<Value> sums(Value group, Value codesAt, Value groupIndex);
  SmallVector<Value> sumsVnni(Value group, Value codesAt);
  SmallVector<Value> sumsBytes(Value group, Value codesAt, Plane plane);
  SmallVector<Value> sumsNibbles(Value group, Value codesAt, Plane plane, int64_t part);
  Value join(Value high, Value low) { return joinPlanes(k, layout, high, low); }
  // Takes the zero point of the weights back.
  Value start(int64_t r, Value groupIndex, int64_t part) {
    Value at = k.at(row(r), k.add(k.mul(groupIndex, 4 * layout.parts), layout.startAt));
    return k.broadcast(k.load(k.i32Type, at, 4 * part), lanes);
  }
};

// vpdpbusd: weights are the unsigned factor, unpacked once for both bytes of the codes.
SmallVector<Value> GroupKernel::sumsVnni(Value group, Value codesAt) {
  SmallVector<Value> high(rows * layout.parts, k.splatInt(0, lanes)), low = high;
  auto multiply = [&](Value unsignedBytes, int64_t quad) {
    Value at = k.add(codesAt, 4 * quad);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t sum = quad * layout.parts / 8 * rows + r;
      high[sum] = emitInstruction(k, Instruction::DotU8S8, {high[sum], unsignedBytes, codes(r, at, Plane::High)});
      if (hasLow())
        low[sum] = emitInstruction(k, Instruction::DotU8S8, {low[sum], unsignedBytes, codes(r, at, Plane::Low)});
    }
  };
  if (weight.form == llm::WeightForm::I8) {
    for (int64_t quad = 0; quad < 8; ++quad)
      multiply(k.load(bytesType(), group, 64 * quad), quad);
  } else {
    for (int64_t quad = 0; quad < 4; ++quad) {
      Value words = k.load(wordsType(), group, 64 * quad);
      multiply(nibbles(words, /*high=*/false), quad);
      multiply(nibbles(words, /*high=*/true), quad + 4);
    }
  }
  if (hasLow())
    for (auto [sum, lowSum] : llvm::zip_equal(high, low))
      sum = join(sum, lowSum);
  return high;
}

// Without VNNI, 8 bits: |w| times x * sign(w) fits vpmaddubsw's 16 bits, as 2 * 128 * 127 < 32768.
SmallVector<Value> GroupKernel::sumsBytes(Value group, Value codesAt, Plane plane) {
  SmallVector<Value> init(rows, k.splatInt(0, lanes));
  Value ones =
      arith::ConstantOp::create(k.b, DenseElementsAttr::get(k.vectorOf(2 * lanes, k.i16Type), static_cast<int16_t>(1)));
  Value flip = arith::ConstantOp::create(k.b, DenseElementsAttr::get(bytesType(), static_cast<int8_t>(-128)));
  return k.loop(k.i64(0), k.i64(8), 1, init, [&](Value quad, ValueRange carried) {
    SmallVector<Value> acc(carried);
    Value w = arith::XOrIOp::create(k.b, k.load(bytesType(), k.at(group, k.mul(quad, 64))), flip);
    Value magnitude = math::AbsIOp::create(k.b, w); // 128 of -128, as a byte without a sign
    for (int64_t r = 0; r < rows; ++r) {
      Value x = codes(r, k.add(codesAt, k.mul(quad, 4)), plane);
      Value pairs =
          emitInstruction(k, Instruction::MaddU8S8, {magnitude, emitInstruction(k, Instruction::SignS8, {x, w})});
      acc[r] = k.add(acc[r], emitInstruction(k, Instruction::MaddS16, {pairs, ones}));
    }
    return acc;
  });
}

// Without VNNI, 4 bits: a group's 8 steps of two products stay below 8 * 2 * 15 * 127 = 30480 in 16 bits, the 4 steps
// of a half of f4 below 4 * 2 * 24 * 127 = 24384.
SmallVector<Value> GroupKernel::sumsNibbles(Value group, Value codesAt, Plane plane, int64_t part) {
  VectorType shorts = k.vectorOf(2 * lanes, k.i16Type);
  SmallVector<Value> init(rows, arith::ConstantOp::create(k.b, k.b.getZeroAttr(shorts)));
  Value ones = arith::ConstantOp::create(k.b, DenseElementsAttr::get(shorts, static_cast<int16_t>(1)));
  // A loop, not straight code: LLVM would re-associate the sums, hoist the loads and spill.
  SmallVector<Value> acc = k.loop(k.i64(0), k.i64(4), 1, init, [&](Value quad, ValueRange carried) {
    SmallVector<Value> next(carried);
    Value words = k.load(wordsType(), k.at(group, k.mul(quad, 64)));
    for (bool high : {false, true}) {
      if (layout.parts == 2 && part != high)
        continue;
      Value w = nibbles(words, high);
      for (int64_t r = 0; r < rows; ++r) {
        Value x = codes(r, k.add(k.add(codesAt, k.mul(quad, 4)), high ? 16 : 0), plane);
        next[r] = k.add(next[r], emitInstruction(k, Instruction::MaddU8S8, {w, x}));
      }
    }
    return next;
  });
  for (int64_t r = 0; r < rows; ++r)
    acc[r] = emitInstruction(k, Instruction::MaddS16, {acc[r], ones});
  return acc;
}

SmallVector<Value> GroupKernel::sums(Value group, Value codesAt, Value groupIndex) {
  bool bytes = weight.form == llm::WeightForm::I8;
  SmallVector<Value> sums;
  if (k.target.hasVnni) {
    sums = sumsVnni(group, codesAt);
  } else {
    for (int64_t part = 0; part < layout.parts; ++part) {
      auto sumsOf = [&](Plane plane) {
        return bytes ? sumsBytes(group, codesAt, plane) : sumsNibbles(group, codesAt, plane, part);
      };
      SmallVector<Value> ofPart = sumsOf(Plane::High);
      if (hasLow())
        for (auto [sum, low] : llvm::zip_equal(ofPart, sumsOf(Plane::Low)))
          sum = join(sum, low);
      llvm::append_range(sums, ofPart);
    }
    if (bytes) // these kernels make the weights signed themselves
      return sums;
  }
  if (layout.zeroPoint)
    for (int64_t part = 0; part < layout.parts; ++part)
      for (int64_t r = 0; r < rows; ++r)
        sums[part * rows + r] = k.add(sums[part * rows + r], start(r, groupIndex, part));
  return sums;
}

// All groups of one block for the lanes from `half` on: acc[r] += sums * scales.
void emitBlock(GroupKernel &g, Value block, Value blockIndex, int64_t half, MutableArrayRef<Value> acc) {
  KernelBuilder &k = g.k;
  VectorType halfType = k.vectorOf(g.lanes, k.b.getF16Type()), floatType = k.vectorOf(g.lanes, k.f32Type);
  auto column = [&](int64_t at) -> Value {
    return arith::ExtFOp::create(k.b, floatType, k.load(halfType, block, at + 2 * g.lanes * half));
  };
  for (int64_t group = 0; group < 2; ++group) {
    Value groupIndex = k.add(k.mul(blockIndex, 2), group);
    SmallVector<Value> sums =
        g.sums(k.at(block, group * g.weight.groupBytes() + 4 * g.lanes * half), k.mul(groupIndex, 32), groupIndex);
    SmallVector<Value> scales;
    for (int64_t part = 0; part < g.layout.parts; ++part)
      scales.push_back(column(g.weight.scalesAt() + 64 * part + 32 * group));
    Value minima;
    if (g.weight.form == llm::WeightForm::I4M)
      minima = column(g.weight.minimaAt() + 32 * group);
    for (int64_t r = 0; r < g.rows; ++r) {
      Value perGroup = k.at(g.row(r), k.mul(groupIndex, 4));
      Value scale = k.broadcast(k.load(k.f32Type, perGroup, g.layout.scalesAt), g.lanes);
      for (int64_t part = 0; part < g.layout.parts; ++part)
        acc[r] = k.fma(arith::SIToFPOp::create(k.b, floatType, sums[part * g.rows + r]), k.mulF(scales[part], scale),
                       acc[r]);
      if (!minima)
        continue;
      Value sum = k.broadcast(k.load(k.f32Type, perGroup, g.layout.sumsAt), g.lanes);
      acc[r] = k.fma(sum, k.mulF(minima, scale), acc[r]);
    }
  }
}

} // namespace

Value llmc::cpu::joinPlanes(KernelBuilder &k, const QuantizedInputLayout &layout, Value high, Value low) {
  int64_t lanes = cast<VectorType>(high.getType()).getDimSize(0);
  Value times256 = arith::ShLIOp::create(k.b, high, k.splatInt(8, lanes));
  return k.add(layout.radix == 256 ? times256 : k.sub(times256, high), low);
}

QuantizedInputLayout llmc::cpu::quantizedInputLayout(const CpuTarget &target, const PackedLayout &weight,
                                                     int64_t codeBytes) {
  QuantizedInputLayout layout;
  layout.codeBytes = codeBytes;
  layout.radix = target.hasVnni ? 256 : 255;
  layout.parts = weight.numParts();
  layout.lowAt = weight.numGroups() * 32;
  layout.scalesAt = codeBytes * layout.lowAt;
  layout.startAt = layout.scalesAt + weight.numGroups() * 4;
  layout.sumsAt = layout.startAt + weight.numGroups() * layout.parts * 4;
  layout.strideBytes = (layout.sumsAt + weight.numGroups() * 4 + 63) / 64 * 64 + 64;
  layout.zeroPoint = weight.form == llm::WeightForm::F4 ? float4ZeroPoint : weight.zeroPoint();
  return layout;
}

void llmc::cpu::emitQuantizedDotTile(KernelBuilder &k, const PackedLayout &weight, const QuantizedInputLayout &layout,
                                     int64_t rows, RowArray input, Value tile, RowArray result, const DepthPart &part) {
  GroupKernel g{k, weight, layout, rows, input, k.target.hasVnni ? 16 : 8};
  int64_t halves = kLanes / g.lanes, vectors = vectorsOf(weight);
  VectorType floats = k.vectorOf(g.lanes, k.f32Type);
  auto at = [&](int64_t row, int64_t half) { return row * result.strideBytes + half * 4 * g.lanes; };
  // Sums stay in memory between blocks: a tile is read from its first to its last byte, as memory is fastest, and what
  // is live at a time fits the registers.
  if (!part.from)
    clearResult(k, weight, k.i64(rows), result);
  Value from = part.from ? k.mul(part.from, vectors) : k.i64(0), to = k.i64(weight.numKBlocks() * vectors);
  if (part.to)
    to = k.min(to, k.mul(part.to, vectors));
  // One loop over both, so that LLVM does not take a block's broadcasts out of the loop over its vectors and spill
  // them.
  k.loop(from, to, 1, [&](Value index) {
    Value panel = k.at(tile, k.mul(index, weight.blockBytes()));
    Value sums = k.at(result.pointer, k.mul(k.rem(index, vectors), 64));
    if (k.target.prefetchBytes && rows <= 2)
      for (int64_t line = 0; line < weight.blockBytes(); line += 64)
        k.prefetch(panel, line + k.target.prefetchBytes, KernelBuilder::Cache::Second);
    for (int64_t half = 0; half < halves; ++half) {
      SmallVector<Value> acc;
      for (int64_t r = 0; r < rows; ++r)
        acc.push_back(k.load(floats, sums, at(r, half)));
      emitBlock(g, panel, k.div(index, vectors), half, acc);
      for (int64_t r = 0; r < rows; ++r)
        k.store(acc[r], sums, at(r, half));
    }
  });
}
