// The words of KernelBuilder.h, each one or two MLIR ops.
#include "lib/codegen/cpu/KernelBuilder.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {
// Larger buffers go to the worker's scratch: stacks of worker threads may be small.
constexpr int64_t kMaxStackBytes = 4096;

int64_t elementBytes(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    type = vector.getElementType();
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}
} // namespace

KernelBuilder::KernelBuilder(ImplicitLocOpBuilder &builder, LLVM::LLVMFuncOp function, const CpuTarget &target,
                             bool emulate)
    : b(builder), target(target), emulate(emulate), function(function) {
  f32Type = b.getF32Type();
  i8Type = b.getI8Type();
  i16Type = b.getIntegerType(16);
  i32Type = b.getI32Type();
  i64Type = b.getI64Type();
  pointerType = LLVM::LLVMPointerType::get(b.getContext());
  vf = vectorOf(kLanes, f32Type);
  vi = vectorOf(kLanes, i32Type);
}

Value KernelBuilder::i64(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }
Value KernelBuilder::i32(int32_t value) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(value)); }
Value KernelBuilder::f32(float value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(value)); }
Value KernelBuilder::splat(float value) { return arith::ConstantOp::create(b, DenseElementsAttr::get(vf, value)); }
Value KernelBuilder::splatInt(int32_t value, int64_t lanes) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(vectorOf(lanes, i32Type), value));
}

Value KernelBuilder::add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
Value KernelBuilder::add(Value x, int64_t y) { return y == 0 ? x : add(x, i64(y)); }
Value KernelBuilder::sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
Value KernelBuilder::mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
Value KernelBuilder::mul(Value x, int64_t y) { return y == 1 ? x : mul(x, i64(y)); }
Value KernelBuilder::div(Value x, Value y) { return arith::DivUIOp::create(b, x, y); }
Value KernelBuilder::div(Value x, int64_t y) { return div(x, i64(y)); }
Value KernelBuilder::rem(Value x, Value y) { return arith::RemUIOp::create(b, x, y); }
Value KernelBuilder::rem(Value x, int64_t y) { return rem(x, i64(y)); }
Value KernelBuilder::min(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
Value KernelBuilder::max(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
Value KernelBuilder::ceilDiv(Value x, int64_t y) { return div(add(x, y - 1), y); }
Value KernelBuilder::less(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y); }
Value KernelBuilder::equal(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y); }
Value KernelBuilder::inverted(Value condition) {
  return arith::XOrIOp::create(b, condition, arith::ConstantOp::create(b, b.getBoolAttr(true)));
}
Value KernelBuilder::select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }

Value KernelBuilder::at(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, pointerType, i8Type, pointer, ValueRange{bytes});
}
Value KernelBuilder::at(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(b, pointerType, i8Type, pointer,
                             ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(static_cast<int32_t>(bytes))});
}

Value KernelBuilder::load(Type type, Value pointer, int64_t bytes) {
  return LLVM::LoadOp::create(b, type, at(pointer, bytes), static_cast<unsigned>(elementBytes(type)));
}
Value KernelBuilder::loadInt(Value pointer, int64_t bytes) {
  return arith::ExtSIOp::create(b, i64Type, load(i32Type, pointer, bytes));
}
void KernelBuilder::store(Value value, Value pointer, int64_t bytes) {
  LLVM::StoreOp::create(b, value, at(pointer, bytes), static_cast<unsigned>(elementBytes(value.getType())));
}
Value KernelBuilder::maskedLoad(VectorType type, Value pointer, Value mask) {
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return LLVM::MaskedLoadOp::create(b, type, pointer, mask, zero, static_cast<uint32_t>(elementBytes(type)));
}
void KernelBuilder::maskedStore(Value value, Value pointer, Value mask) {
  LLVM::MaskedStoreOp::create(b, value, pointer, mask, static_cast<uint32_t>(elementBytes(value.getType())));
}
void KernelBuilder::prefetch(Value pointer, int64_t bytes, Cache cache) {
  LLVM::Prefetch::create(b, at(pointer, bytes), /*rw=*/0, static_cast<uint32_t>(cache), /*cache=*/1);
}

Value KernelBuilder::laneMask(int64_t lanes) {
  SmallVector<bool> bits(kLanes, false);
  for (int64_t lane = 0; lane < lanes; ++lane)
    bits[lane] = true;
  return arith::ConstantOp::create(b, DenseElementsAttr::get(vectorOf(kLanes, b.getI1Type()), ArrayRef<bool>(bits)));
}
Value KernelBuilder::iota() {
  SmallVector<int32_t> lanes;
  for (int32_t lane = 0; lane < kLanes; ++lane)
    lanes.push_back(lane);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(vi, ArrayRef<int32_t>(lanes)));
}
Value KernelBuilder::laneMask(Value limit) {
  Value clamped = min(max(limit, i64(0)), i64(kLanes));
  Value narrow = arith::TruncIOp::create(b, i32Type, clamped);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, iota(), broadcast(narrow));
}

Value KernelBuilder::allocate(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  OpBuilder::InsertionGuard guard(b);
  Block &entry = function.getBody().front();
  if (bytes <= kMaxStackBytes || !scratch) {
    b.setInsertionPointToStart(&entry);
    Value size = i64(bytes);
    return LLVM::AllocaOp::create(b, pointerType, i8Type, size, /*alignment=*/64);
  }
  b.setInsertionPointAfterValue(scratch);
  Value result = at(scratch, i64(usedScratch));
  usedScratch += bytes;
  return result;
}

Value KernelBuilder::broadcast(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(b, vectorOf(lanes, scalar.getType()), scalar);
}
Value KernelBuilder::bitcast(Value vector, VectorType type) {
  return vector.getType() == type ? vector : vector::BitCastOp::create(b, type, vector).getResult();
}
Value KernelBuilder::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
Value KernelBuilder::addF(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
Value KernelBuilder::mulF(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
Value KernelBuilder::maxF(Value x, Value y) {
  return arith::MaximumFOp::create(b, x, y, arith::FastMathFlags::nnan | arith::FastMathFlags::nsz);
}

Value KernelBuilder::reduceHalves(Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t half = kLanes / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(half + lane);
    }
    Value a = vector::ShuffleOp::create(b, vector, vector, low);
    Value c = vector::ShuffleOp::create(b, vector, vector, high);
    vector = combine(a, c);
  }
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{0});
}
Value KernelBuilder::reduceAdd(Value vector) {
  return reduceHalves(vector, [&](Value x, Value y) { return addF(x, y); });
}
Value KernelBuilder::reduceMax(Value vector) {
  return reduceHalves(vector, [&](Value x, Value y) { return maxF(x, y); });
}

SmallVector<Value> KernelBuilder::loop(Value from, Value to, int64_t step, ValueRange init, LoopBody body) {
  auto loop = scf::ForOp::create(b, from, to, i64(step), init);
  OpBuilder::InsertionGuard guard(b);
  if (init.empty()) {
    b.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar(), {});
    return {};
  }
  b.setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(loop.getResults());
}
void KernelBuilder::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange{}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}
void KernelBuilder::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

SmallVector<Value> KernelBuilder::repeat(ValueRange init, RepeatBody body) {
  auto loop = scf::WhileOp::create(b, init.getTypes(), init);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(init.size(), b.getLoc());
  Block *before = b.createBlock(&loop.getBefore(), {}, init.getTypes(), locations);
  auto [condition, values] = body(before->getArguments());
  scf::ConditionOp::create(b, condition, values);
  Block *after = b.createBlock(&loop.getAfter(), {}, init.getTypes(), locations);
  scf::YieldOp::create(b, after->getArguments());
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::rowGroups(Value count, int64_t group, llvm::function_ref<void(int64_t, Value)> body) {
  Value whole = mul(div(count, group), group);
  loop(i64(0), whole, group, [&](Value first) { body(group, first); });
  Value left = sub(count, whole);
  for (int64_t rows = 1; rows < group; ++rows)
    when(equal(left, i64(rows)), [&] { body(rows, whole); });
}

Value KernelBuilder::globalArray(ArrayRef<float> values) {
  std::string name = (function.getSymName() + ".constant" + std::to_string(globals++)).str();
  auto type = LLVM::LLVMArrayType::get(f32Type, values.size());
  auto tensor = RankedTensorType::get({static_cast<int64_t>(values.size())}, f32Type);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           DenseElementsAttr::get(tensor, values), /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(b, pointerType, name);
}
