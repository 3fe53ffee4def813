// Every instruction that is not plain vector arithmetic is a row of one table: its intrinsic, the CPU feature it needs,
// and an expansion in vector arithmetic with the same rounding, which --emulate uses on any host.
#pragma once
#include "lib/codegen/cpu/KernelBuilder.h"

namespace llmc::cpu {

enum class Instruction {
  // (acc f32[16], a bf16[32], b bf16[32]): acc += a.odd * b.odd, then += a.even * b.even, each one fused multiply-add;
  // subnormal inputs and results are zero.
  DotBf16,
  // (acc i32[16], a u8[64], b s8[64]): acc[i] += sum of the four products of lane i, exact.
  DotU8S8,
  // (a u8[32], b s8[32]) -> s16[16]: sums of two products, saturated.
  MaddU8S8,
  // (a s16[16], b s16[16]) -> s32[8]: sums of two products.
  MaddS16,
  // (a s8[32], b s8[32]) -> a * sign(b).
  SignS8,
  // (table i8[16], repeated through the vector; codes u8 below 16) -> i8: the table's entries, for vectors of 64 bytes
  // and of 32.
  Lookup64,
  Lookup32,
  // Matrix tiles: MatrixTiles.h.
  TileDotS8,
  TileDotBf16,
};

struct InstructionRow {
  Instruction instruction;
  const char *name;      // "vdpbf16ps"
  const char *intrinsic; // LLVM's name
  const char *feature;   // of CpuTarget::requiredFeatures
};

const InstructionRow &rowOf(Instruction instruction);

// The instruction, or its expansion when the kernel is emulated. An instruction that the target lacks would make LLVM
// abort the process, so it is refused here: schedules must have checked `isLegal`.
bool isLegal(Instruction instruction, const CpuTarget &target);
mlir::Value emitInstruction(KernelBuilder &kernel, Instruction instruction, mlir::ValueRange operands);

// Entries of a table of sixteen, for each code below 16 in a vector of 64 or 32 bytes.
mlir::Value lookup(KernelBuilder &kernel, llvm::ArrayRef<int8_t> table, mlir::Value codes);

// Subnormal f32 values become zero of the same sign: what the bf16 instructions do to inputs and results.
mlir::Value flushSubnormal(KernelBuilder &kernel, mlir::Value vector);
// The odd or even elements of sixteen pairs of bf16 (one i32 each) as f32.
mlir::Value halfOfPairs(KernelBuilder &kernel, mlir::Value words, bool odd);
// Sums of `count` neighbouring products of bytes or shorts, in s32.
mlir::Value sumOfProducts(KernelBuilder &kernel, mlir::Value x, bool xSigned, mlir::Value y, int64_t count);

// Conversions that are plain integer arithmetic on every target, so that all targets agree to the bit.
// f32[16] -> bf16[16], to nearest even, NaN stays NaN.
mlir::Value roundToBf16(KernelBuilder &kernel, mlir::Value vector);
mlir::Value extendBf16(KernelBuilder &kernel, mlir::Value vector);
// Sixteen elements of f32, bf16, f16 or i8 (codes) as f32. Where fewer than 16 may be read the others are 0.
mlir::Value loadAsF32(KernelBuilder &kernel, mlir::Type element, mlir::Value pointer, int64_t bytes = 0,
                      int64_t readable = kLanes);
// Rounded to nearest even, still f32; for finite numbers that are not negative.
mlir::Value roundPositiveToBf16(KernelBuilder &kernel, mlir::Value vector);
// 2^x for x <= 0; exactly 1 at 0; about 2^-126 below -126. Relative error at most 1.4 * 2^-23.
mlir::Value exp2Polynomial(KernelBuilder &kernel, mlir::Value x);

} // namespace llmc::cpu
