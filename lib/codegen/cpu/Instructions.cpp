// The instruction table and the expansion of each row.
#include "lib/codegen/cpu/Instructions.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr InstructionRow kRows[] = {
    {Instruction::DotBf16, "vdpbf16ps", "llvm.x86.avx512bf16.dpbf16ps.512", "avx512_bf16"},
    {Instruction::DotU8S8, "vpdpbusd", "llvm.x86.avx512.vpdpbusd.512", "avx512_vnni"},
    {Instruction::MaddU8S8, "vpmaddubsw", "llvm.x86.avx2.pmadd.ub.sw", "avx2"},
    {Instruction::MaddS16, "vpmaddwd", "llvm.x86.avx2.pmadd.wd", "avx2"},
    {Instruction::SignS8, "vpsignb", "llvm.x86.avx2.psign.b", "avx2"},
    {Instruction::Lookup64, "vpshufb", "llvm.x86.avx512.pshuf.b.512", "avx512bw"},
    {Instruction::Lookup32, "vpshufb", "llvm.x86.avx2.pshuf.b", "avx2"},
    {Instruction::TileDotS8, "tdpbssd", "llvm.x86.tdpbssd", "amx-int8"},
    {Instruction::TileDotBf16, "tdpbf16ps", "llvm.x86.tdpbf16ps", "amx-bf16"},
};

VectorType resultTypeOf(KernelBuilder &k, Instruction instruction) {
  switch (instruction) {
  case Instruction::DotBf16:
    return k.vf;
  case Instruction::DotU8S8:
    return k.vi;
  case Instruction::MaddU8S8:
    return k.vectorOf(16, k.i16Type);
  case Instruction::MaddS16:
    return k.vectorOf(8, k.i32Type);
  case Instruction::SignS8:
  case Instruction::Lookup32:
    return k.vectorOf(32, k.i8Type);
  case Instruction::Lookup64:
    return k.vectorOf(64, k.i8Type);
  case Instruction::TileDotS8:
  case Instruction::TileDotBf16:
    break;
  }
  llvm_unreachable("an instruction without a result type");
}

Value expandDotBf16(KernelBuilder &k, ValueRange operands) {
  auto half = [&](Value pairs, bool odd) { return flushSubnormal(k, halfOfPairs(k, k.bitcast(pairs, k.vi), odd)); };
  Value acc = flushSubnormal(k, operands[0]);
  for (bool odd : {true, false})
    acc = flushSubnormal(k, k.fma(half(operands[1], odd), half(operands[2], odd), acc));
  return acc;
}

// Element `first` of every `count` neighbours, in s32. Shifts inside 32-bit lanes: for byte shuffles LLVM takes twice
// as long to select instructions.
Value strided(KernelBuilder &k, Value vector, int64_t first, int64_t count, bool isSigned) {
  auto type = cast<VectorType>(vector.getType());
  int64_t bits = type.getElementTypeBitWidth(), lanes = type.getDimSize(0) / count;
  Value words = k.bitcast(vector, k.vectorOf(lanes, k.b.getIntegerType(static_cast<unsigned>(count * bits))));
  VectorType wide = k.vectorOf(lanes, k.i32Type);
  if (words.getType() != wide)
    words = arith::ExtUIOp::create(k.b, wide, words);
  auto shift = [&](int64_t by) { return k.splatInt(static_cast<int32_t>(by), lanes); };
  Value top = arith::ShLIOp::create(k.b, words, shift(32 - bits * (first + 1)));
  if (isSigned)
    return arith::ShRSIOp::create(k.b, top, shift(32 - bits));
  return arith::ShRUIOp::create(k.b, top, shift(32 - bits));
}

Value expandMaddU8S8(KernelBuilder &k, ValueRange operands) {
  Value sum = sumOfProducts(k, operands[0], /*xSigned=*/false, operands[1], 2);
  sum = arith::MinSIOp::create(k.b, sum, k.splatInt(32767));
  sum = arith::MaxSIOp::create(k.b, sum, k.splatInt(-32768));
  return arith::TruncIOp::create(k.b, resultTypeOf(k, Instruction::MaddU8S8), sum);
}

Value expandSignS8(KernelBuilder &k, ValueRange operands) {
  Value x = operands[0], sign = operands[1];
  Value zero = arith::ConstantOp::create(k.b, k.b.getZeroAttr(x.getType()));
  Value negated = k.sub(zero, x);
  Value negative = arith::CmpIOp::create(k.b, arith::CmpIPredicate::slt, sign, zero);
  Value none = arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq, sign, zero);
  return k.select(none, zero, k.select(negative, negated, x));
}

Value expandLookup(KernelBuilder &k, ValueRange operands) {
  Value codes = operands[1];
  auto type = cast<VectorType>(codes.getType());
  Value result = arith::ConstantOp::create(k.b, k.b.getZeroAttr(type));
  for (int64_t code = 0; code < 16; ++code) {
    Value entry = k.broadcast(vector::ExtractOp::create(k.b, operands[0], ArrayRef<int64_t>{code}), type.getDimSize(0));
    Value wanted = arith::ConstantOp::create(k.b, DenseElementsAttr::get(type, static_cast<int8_t>(code)));
    result = k.select(arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq, codes, wanted), entry, result);
  }
  return result;
}

Value expand(KernelBuilder &k, Instruction instruction, ValueRange operands) {
  switch (instruction) {
  case Instruction::DotBf16:
    return expandDotBf16(k, operands);
  case Instruction::DotU8S8:
    return k.add(operands[0], sumOfProducts(k, operands[1], /*xSigned=*/false, operands[2], 4));
  case Instruction::MaddU8S8:
    return expandMaddU8S8(k, operands);
  case Instruction::MaddS16:
    return sumOfProducts(k, operands[0], /*xSigned=*/true, operands[1], 2);
  case Instruction::SignS8:
    return expandSignS8(k, operands);
  case Instruction::Lookup64:
  case Instruction::Lookup32:
    return expandLookup(k, operands);
  case Instruction::TileDotS8:
  case Instruction::TileDotBf16:
    break;
  }
  llvm_unreachable("an instruction without an expansion");
}

} // namespace

const InstructionRow &llmc::cpu::rowOf(Instruction instruction) {
  return *llvm::find_if(kRows, [&](const InstructionRow &row) { return row.instruction == instruction; });
}

bool llmc::cpu::isLegal(Instruction instruction, const CpuTarget &target) {
  return target.needs(rowOf(instruction).feature);
}

Value llmc::cpu::emitInstruction(KernelBuilder &k, Instruction instruction, ValueRange operands) {
  // A schedule that chose an illegal instruction is our mistake; the expansion is right all the same, an abort is not.
  if (k.emulate || !isLegal(instruction, k.target))
    return expand(k, instruction, operands);
  return LLVM::CallIntrinsicOp::create(k.b, resultTypeOf(k, instruction),
                                       k.b.getStringAttr(rowOf(instruction).intrinsic), operands)
      .getResult(0);
}

Value llmc::cpu::lookup(KernelBuilder &k, ArrayRef<int8_t> table, Value codes) {
  auto type = cast<VectorType>(codes.getType());
  SmallVector<int8_t> repeated;
  for (int64_t lane = 0; lane < type.getDimSize(0); ++lane)
    repeated.push_back(table[static_cast<size_t>(lane % 16)]);
  Value entries = arith::ConstantOp::create(k.b, DenseElementsAttr::get(type, ArrayRef<int8_t>(repeated)));
  return emitInstruction(k, type.getDimSize(0) == 64 ? Instruction::Lookup64 : Instruction::Lookup32, {entries, codes});
}

Value llmc::cpu::flushSubnormal(KernelBuilder &k, Value x) {
  Value bits = k.bitcast(x, k.vi);
  Value exponent = arith::AndIOp::create(k.b, bits, k.splatInt(0x7f800000));
  Value subnormal = arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq, exponent, k.splatInt(0));
  Value sign = arith::AndIOp::create(k.b, bits, k.splatInt(INT32_MIN));
  return k.bitcast(k.select(subnormal, sign, bits), k.vf);
}

Value llmc::cpu::halfOfPairs(KernelBuilder &k, Value words, bool odd) {
  Value bits = odd ? arith::AndIOp::create(k.b, words, k.splatInt(static_cast<int32_t>(0xffff0000))).getResult()
                   : arith::ShLIOp::create(k.b, words, k.splatInt(16)).getResult();
  return k.bitcast(bits, k.vf);
}

Value llmc::cpu::sumOfProducts(KernelBuilder &k, Value x, bool xSigned, Value y, int64_t count) {
  Value sum;
  for (int64_t i = 0; i < count; ++i) {
    Value product =
        arith::MulIOp::create(k.b, strided(k, x, i, count, xSigned), strided(k, y, i, count, /*isSigned=*/true));
    sum = sum ? k.add(sum, product) : product;
  }
  return sum;
}

Value llmc::cpu::roundToBf16(KernelBuilder &k, Value vector) {
  Value bits = k.bitcast(vector, k.vi);
  Value odd = arith::AndIOp::create(k.b, arith::ShRUIOp::create(k.b, bits, k.splatInt(16)), k.splatInt(1));
  Value rounded = k.add(k.add(bits, k.splatInt(0x7fff)), odd);
  Value quiet = arith::OrIOp::create(k.b, bits, k.splatInt(0x00400000));
  Value nan = arith::CmpFOp::create(k.b, arith::CmpFPredicate::UNO, vector, vector);
  Value high = arith::ShRUIOp::create(k.b, k.select(nan, quiet, rounded), k.splatInt(16));
  Value narrow = arith::TruncIOp::create(k.b, k.vectorOf(kLanes, k.i16Type), high);
  return k.bitcast(narrow, k.vectorOf(kLanes, k.b.getBF16Type()));
}

Value llmc::cpu::roundPositiveToBf16(KernelBuilder &k, Value vector) {
  Value bits = k.bitcast(vector, k.vi);
  Value odd = arith::AndIOp::create(k.b, arith::ShRUIOp::create(k.b, bits, k.splatInt(16)), k.splatInt(1));
  return halfOfPairs(k, k.add(k.add(bits, k.splatInt(0x7fff)), odd), /*odd=*/true);
}

Value llmc::cpu::extendBf16(KernelBuilder &k, Value vector) {
  Value bits = k.bitcast(vector, k.vectorOf(kLanes, k.i16Type));
  Value wide = arith::ExtUIOp::create(k.b, k.vi, bits);
  return k.bitcast(arith::ShLIOp::create(k.b, wide, k.splatInt(16)), k.vf);
}

// Masks of bytes and of halves are not instructions of every target: half a vector is read as such.
static Value loadPart(KernelBuilder &k, Type element, Value pointer, int64_t readable) {
  if (readable >= kLanes)
    return k.load(k.vectorOf(kLanes, element), pointer);
  if (readable != kLanes / 2)
    return k.maskedLoad(k.vectorOf(kLanes, element), pointer, k.laneMask(readable));
  VectorType half = k.vectorOf(kLanes / 2, element);
  Value zero = arith::ConstantOp::create(k.b, k.b.getZeroAttr(half));
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    lanes.push_back(lane);
  return vector::ShuffleOp::create(k.b, k.load(half, pointer), zero, lanes);
}

Value llmc::cpu::loadAsF32(KernelBuilder &k, Type element, Value pointer, int64_t bytes, int64_t readable) {
  Type read = element.getIntOrFloatBitWidth() == 16 ? k.i16Type : element;
  Value loaded = loadPart(k, read, k.at(pointer, bytes), readable);
  if (element.isF32())
    return loaded;
  if (element.isF16())
    return arith::ExtFOp::create(k.b, k.vf, k.bitcast(loaded, k.vectorOf(kLanes, element)));
  if (element.isBF16())
    return extendBf16(k, loaded);
  return arith::SIToFPOp::create(k.b, k.vf, arith::ExtSIOp::create(k.b, k.vi, loaded));
}

Value llmc::cpu::exp2Polynomial(KernelBuilder &k, Value x) {
  // Minimax on [-1/2, 1/2] with the constant fixed to 1.
  constexpr float kCoefficients[] = {0.00132647271f, 0.00967151265f, 0.0555073374f, 0.240222421f, 0.693146978f, 1.0f};
  x = k.maxF(x, k.splat(-126.0f));
  Value whole = math::RoundEvenOp::create(k.b, x);
  Value rest = arith::SubFOp::create(k.b, x, whole);
  Value result = k.splat(kCoefficients[0]);
  for (float coefficient : ArrayRef<float>(kCoefficients).drop_front())
    result = k.fma(result, rest, k.splat(coefficient));
  Value exponent = arith::FPToSIOp::create(k.b, k.vi, whole);
  Value shifted = arith::ShLIOp::create(k.b, exponent, k.splatInt(23));
  return k.bitcast(k.add(k.bitcast(result, k.vi), shifted), k.vf);
}
