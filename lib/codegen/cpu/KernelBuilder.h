// Short words for emitting kernels: 64-bit integers, byte pointers, vectors of 16 f32, loops and conditions.
// Kernels are written once in vectors of 16 lanes; LLVM splits them in two where the target's registers hold 8.
#pragma once
#include "lib/target/CpuTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace llmc::cpu {

constexpr int64_t kLanes = 16;

class KernelBuilder {
public:
  // Emits into `function`, whose entry block exists; every instruction beyond plain vectors comes from Instructions.h.
  KernelBuilder(mlir::ImplicitLocOpBuilder &builder, mlir::LLVM::LLVMFuncOp function, const CpuTarget &target,
                bool emulate);

  mlir::ImplicitLocOpBuilder &b;
  const CpuTarget &target;
  const bool emulate;

  // Types.
  mlir::Type f32Type, i8Type, i16Type, i32Type, i64Type, pointerType;
  mlir::VectorType vf, vi; // 16 x f32, 16 x i32
  mlir::VectorType vectorOf(int64_t lanes, mlir::Type element) const { return mlir::VectorType::get(lanes, element); }

  // Constants and integers (i64).
  mlir::Value i64(int64_t value);
  mlir::Value i32(int32_t value);
  mlir::Value f32(float value);
  mlir::Value splat(float value);
  mlir::Value splatInt(int32_t value, int64_t lanes = kLanes);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, mlir::Value b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value ceilDiv(mlir::Value a, int64_t b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value inverted(mlir::Value condition);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);

  // Memory. Offsets are bytes; vectors need the alignment of their element only.
  mlir::Value at(mlir::Value pointer, mlir::Value bytes);
  mlir::Value at(mlir::Value pointer, int64_t bytes);
  mlir::Value load(mlir::Type type, mlir::Value pointer, int64_t bytes = 0);
  mlir::Value loadInt(mlir::Value pointer, int64_t bytes = 0); // an int32_t, widened to i64
  void store(mlir::Value value, mlir::Value pointer, int64_t bytes = 0);
  mlir::Value maskedLoad(mlir::VectorType type, mlir::Value pointer, mlir::Value mask);
  void maskedStore(mlir::Value value, mlir::Value pointer, mlir::Value mask);
  enum class Cache { First = 3, Second = 2 }; // as LLVM counts locality
  void prefetch(mlir::Value pointer, int64_t bytes, Cache cache);
  // True in the first `lanes` lanes; or where lane < limit (i64).
  mlir::Value laneMask(int64_t lanes);
  mlir::Value laneMask(mlir::Value limit);
  mlir::Value iota(); // 0 .. 15
  // Memory of this function: on the stack when small, else in the worker's scratch. 64-byte aligned.
  mlir::Value allocate(int64_t bytes);
  // Bytes of the worker's scratch that `allocate` has given out.
  int64_t scratchBytes() const { return usedScratch; }
  void setScratch(mlir::Value pointer) { scratch = pointer; }

  // Vectors.
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes = kLanes);
  mlir::Value bitcast(mlir::Value vector, mlir::VectorType type);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value addF(mlir::Value a, mlir::Value b);
  mlir::Value mulF(mlir::Value a, mlir::Value b);
  mlir::Value maxF(mlir::Value a, mlir::Value b); // no NaN, and either zero
  // Sixteen partial results to one, by halves: 8, 4, 2, 1.
  mlir::Value reduceAdd(mlir::Value vector);
  mlir::Value reduceMax(mlir::Value vector);

  // Control. `body` returns the values for the next round.
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange init,
                                      LoopBody body);
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  // Runs `body` at least once, and again with the values it returns while its condition holds; returns the last ones.
  using RepeatBody = llvm::function_ref<std::pair<mlir::Value, llvm::SmallVector<mlir::Value>>(mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> repeat(mlir::ValueRange init, RepeatBody body);
  // Calls `body(rows, first)` for groups of `group` rows of 0 .. count - 1 and once, with a smaller static number of
  // rows, for what is left.
  void rowGroups(mlir::Value count, int64_t group, llvm::function_ref<void(int64_t, mlir::Value)> body);

  // An array of constants in the object file.
  mlir::Value globalArray(llvm::ArrayRef<float> values);

private:
  mlir::Value reduceHalves(mlir::Value vector, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

  mlir::LLVM::LLVMFuncOp function;
  mlir::Value scratch;
  int64_t usedScratch = 0;
  int64_t globals = 0;
};

} // namespace llmc::cpu
