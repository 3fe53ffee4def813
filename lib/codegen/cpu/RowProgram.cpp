// Evaluation of a row's values; what touches caches, records and packed weights is in RowMemory.cpp, what moves
// elements about in RowPlaces.cpp.
#include "lib/codegen/cpu/RowProgram.h"
#include "lib/codegen/cpu/Instructions.h"
#include "runtime/llmc_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// Tiles up to this size are evaluated in straight code, which lets LLVM keep them in registers.
constexpr int64_t kUnrolledElements = 128;

int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }
Type elementOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getElementType(); }
bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
int64_t wholeVectors(int64_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

bool isRoot(Operation &op) { return isa<tile::StoreOp, tile::AppendOp, tile::RecordOp, tile::WhenOp>(op); }

bool isElementwise(Operation *op) {
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) && op->getNumResults() == 1;
}

// Reading again costs no more than reading a copy.
bool isCheap(Operation *op) {
  return isa<tile::LoadOp, tile::LoadVectorOp, tile::SplatOp, tile::SliceOp, arith::ConstantOp>(op);
}

// One element for all: no memory needed.
bool isSplat(tile::RepeatOp op) { return sizeOf(op.getInput()) == 1; }

// Elements that come from other places than their own.
bool movesElements(Operation *op) {
  if (auto repeat = dyn_cast<tile::RepeatOp>(op))
    return !isSplat(repeat);
  return isa<tile::SwapPairsOp, tile::ChooseOp, tile::PickOp, tile::SinkhornOp>(op);
}

// Pieces that are whole vectors can be chosen while code is emitted, where the reader takes whole vectors too.
bool isAlignedConcat(tile::ConcatOp op) {
  if (sizeOf(op.getResult()) > kUnrolledElements)
    return false;
  if (!llvm::all_of(op->getUsers(), [](Operation *user) { return isa<tile::StoreOp, tile::RecordOp>(user); }))
    return false;
  return llvm::all_of(op.getInputs().drop_back(), [](Value piece) { return sizeOf(piece) % kLanes == 0; });
}

// Whether something after `store` (in its block) still needs `value`.
bool isNeededAfter(Value value, Operation *store) {
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = store->getBlock()->findAncestorOpInBlock(*user);
    if (ancestor && isRoot(*ancestor) && store->isBeforeInBlock(ancestor))
      return true;
    if (llvm::any_of(user->getResults(), [&](Value result) { return isNeededAfter(result, store); }))
      return true;
  }
  return false;
}

// A load of the buffer that `store` writes must be copied when it is evaluated later, or at other columns.
void findEagerLoads(TaskContext &task, tile::StoreOp store) {
  task.task.walk([&](tile::LoadOp load) {
    if (load.getRows() != store.getRows())
      return;
    Operation *loadInBlock = store->getBlock()->findAncestorOpInBlock(*load.getOperation());
    if (loadInBlock && store->isBeforeInBlock(loadInBlock))
      return;
    if (load.getColumn() != store.getColumn() || isNeededAfter(load.getResult(), store))
      task.eager.insert(load.getResult());
  });
}

} // namespace

std::optional<int64_t> llmc::cpu::firstRecordOf(Operation *task) {
  std::optional<int64_t> first;
  task->walk([&](tile::RecordOp record) {
    auto index = static_cast<int64_t>(record.getIndex());
    first = std::min(first.value_or(index), index);
  });
  return first;
}

LogicalResult llmc::cpu::analyzeBody(TaskContext &task) {
  bool ok = true;
  task.task.getBody().walk([&](Operation *op) {
    bool known = isElementwise(op) || op->getName().getDialectNamespace() == "tile";
    if (!known) {
      op->emitError() << "task @" << task.task.getSymName() << " holds '" << op->getName()
                      << "', which no CPU kernel knows (known = arith, math, tile)";
      ok = false;
    }
    if (auto store = dyn_cast<tile::StoreOp>(op))
      findEagerLoads(task, store);
    if (auto concat = dyn_cast<tile::ConcatOp>(op))
      if (!isAlignedConcat(concat))
        task.kept.insert(concat.getResult());
    if (movesElements(op))
      task.kept.insert(op->getResult(0));
    if (known && isElementwise(op) && isTile(op->getResult(0)) && !elementOf(op->getResult(0)).isInteger(1) &&
        !isCheap(op) && !op->getResult(0).hasOneUse())
      task.kept.insert(op->getResult(0));
  });
  return success(ok);
}

RowProgram::RowProgram(KernelBuilder &kernel, TaskContext &task, Value row, Value column)
    : k(kernel), task(task), largestColumn(static_cast<int64_t>(task.task.getColumns()) - 1) {
  scalars[task.task.getRow()] = row;
  if (column)
    scalars[task.task.getColumn()] = column;
}

LogicalResult RowProgram::emitBlock(Block &block) {
  for (Operation &op : block) {
    if (auto store = dyn_cast<tile::StoreOp>(op))
      emitStore(store);
    else if (auto append = dyn_cast<tile::AppendOp>(op))
      emitAppend(append);
    else if (auto record = dyn_cast<tile::RecordOp>(op))
      emitRecord(record);
    else if (auto when = dyn_cast<tile::WhenOp>(op))
      emitWhen(when);
    else if (op.getNumResults() == 1 && task.eager.contains(op.getResult(0)))
      keep(op.getResult(0));
  }
  return failure(hasFailed);
}

void RowProgram::bindMemory(Value tile, Value pointer) {
  leaves[tile] = {pointer, elementOf(tile), /*padded=*/true, {}};
}

void RowProgram::elementLoop(int64_t size, llvm::function_ref<void(Position, int64_t)> body) {
  int64_t whole = size / kLanes * kLanes;
  if (size <= kUnrolledElements) {
    for (int64_t offset = 0; offset < whole; offset += kLanes)
      body({{}, offset}, kLanes);
  } else {
    k.loop(k.i64(0), k.i64(whole), kLanes, [&](Value base) { body({base, 0}, kLanes); });
  }
  if (whole < size)
    body({{}, whole}, size - whole);
}

Value RowProgram::elementAt(Value pointer, Position position, int64_t bytes) {
  if (position.base)
    pointer = k.at(pointer, k.mul(position.base, bytes));
  return k.at(pointer, position.offset * bytes);
}

Value RowProgram::readLeaf(const Leaf &leaf, Position position, int64_t lanes) {
  VectorType type = k.vectorOf(kLanes, leaf.element);
  Value pointer = elementAt(leaf.pointer, position, leaf.element.getIntOrFloatBitWidth() / 8);
  if (leaf.limit) {
    Value left = k.add(leaf.limit, -position.offset);
    if (position.base)
      left = k.sub(left, position.base);
    return k.maskedLoad(type, pointer, k.laneMask(left));
  }
  if (lanes < kLanes && !leaf.padded)
    return k.maskedLoad(type, pointer, k.laneMask(lanes));
  return k.load(type, pointer);
}

// Everything that evaluating `tile` inside a loop needs from outside of it: scalars, and values kept in memory.
void RowProgram::prepare(Value tile) {
  if (leaves.count(tile) || scalars.count(tile))
    return;
  Operation *op = tile.getDefiningOp();
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    int64_t stride = task.rowStride.lookup(load.getRows());
    Value pointer = k.at(rowPointer(load.getRows(), load.getRow()), k.mul(scalar(load.getColumn()), 4));
    leaves[tile] = {pointer, k.f32Type, /*padded=*/false, limitOf(load.getColumn(), sizeOf(tile), stride)};
    if (task.eager.contains(tile))
      keep(tile);
    return;
  }
  if (auto load = dyn_cast<tile::LoadVectorOp>(op)) {
    int64_t elements = 1; // vectors of a plain list lie one behind the other
    for (int64_t dimension : load.getWeight().getType().getShape())
      elements *= dimension;
    int64_t padded = (elements + 63) / 64 * 64;
    Value pointer = k.at(task.operands.lookup(load.getWeight()), k.mul(scalar(load.getColumn()), 4));
    leaves[tile] = {pointer, k.f32Type, /*padded=*/false, limitOf(load.getColumn(), sizeOf(tile), padded)};
    return;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    if (elements.isSplat())
      return;
    if (!elements.getElementType().isF32())
      return error(op, "has a constant tile that is not f32");
    SmallVector<float> values(elements.getValues<float>());
    values.resize(wholeVectors(values.size()) + kLanes);
    leaves[tile] = {k.globalArray(values), k.f32Type, /*padded=*/true, {}};
    return;
  }
  if (auto gather = dyn_cast<tile::GatherOp>(op))
    return emitGather(gather);
  if (auto repeat = dyn_cast<tile::RepeatOp>(op); repeat && isSplat(repeat)) {
    prepare(repeat.getInput());
    Value vector = evaluate(repeat.getInput(), {}, 1);
    scalars[tile] = vector::ExtractOp::create(k.b, vector, ArrayRef<int64_t>{0});
    return;
  }
  if (auto quantize = dyn_cast<tile::QuantizeOp>(op)) {
    Value codes = k.allocate(2 * (sizeOf(quantize.getCodes()) + kLanes));
    Value scales = k.allocate((sizeOf(quantize.getScales()) + kLanes) * 4);
    bool twoBytes = getElementTypeOrSelf(quantize.getCodes().getType()).isInteger(16);
    Value low = twoBytes ? k.at(codes, sizeOf(quantize.getCodes()) + kLanes) : Value();
    quantizeInto(quantize, {codes, low, scales, {}, {}, 0});
    bindMemory(quantize.getCodes(), codes);
    bindMemory(quantize.getScales(), scales);
    return;
  }
  if (isa<tile::DotOp, tile::ScaledDotOp, tile::AttendOp, tile::SelectPositionsOp, tile::RecurOp, tile::ConvolveOp,
          tile::PoolOp>(op))
    return error(
        op, "is used before it is computed: a task holds one dot, attend, select_positions, recur, convolve or pool, "
            "and nothing that feeds it may depend on its result");
  if (task.kept.contains(tile))
    return keep(tile);
  prepareOperands(op);
}

void RowProgram::prepareOperands(Operation *op) {
  for (Value operand : op->getOperands()) {
    if (isTile(operand))
      prepare(operand);
    else
      scalar(operand);
  }
}

// Evaluates the whole tile into memory.
void RowProgram::keep(Value tile) {
  auto known = leaves.find(tile);
  if (known != leaves.end() && known->second.padded)
    return;
  Operation *op = tile.getDefiningOp();
  int64_t elementBytes = elementOf(tile).getIntOrFloatBitWidth() / 8;
  Value buffer = k.allocate((wholeVectors(sizeOf(tile)) + kLanes) * elementBytes);
  auto copy = [&](Value piece, int64_t at) {
    elementLoop(sizeOf(piece), [&](Position position, int64_t lanes) {
      Value vector = evaluate(piece, position, lanes);
      // Whole vectors: what is written past a piece is overwritten by the next, or padding.
      k.store(vector, elementAt(buffer, {position.base, position.offset + at}, elementBytes));
    });
  };
  if (auto concat = dyn_cast<tile::ConcatOp>(op)) {
    int64_t at = 0;
    for (Value piece : concat.getInputs()) {
      prepare(piece);
      copy(piece, at);
      at += sizeOf(piece);
    }
  } else if (auto repeat = dyn_cast<tile::RepeatOp>(op); repeat && !isSplat(repeat)) {
    repeatInto(repeat, buffer);
  } else if (auto choose = dyn_cast<tile::ChooseOp>(op)) {
    chooseInto(choose, buffer);
  } else if (auto pick = dyn_cast<tile::PickOp>(op)) {
    pickInto(pick, buffer);
  } else if (auto matrix = dyn_cast<tile::SinkhornOp>(op)) {
    sinkhornInto(matrix, buffer);
  } else if (known != leaves.end()) {
    copy(tile, 0);
  } else if (isa<tile::LoadOp>(op)) {
    // `prepare` would keep an eager load, that is, come back here.
    bool eager = task.eager.erase(tile);
    prepare(tile);
    if (eager)
      task.eager.insert(tile);
    copy(tile, 0);
  } else {
    prepareOperands(op);
    copy(tile, 0);
  }
  bindMemory(tile, buffer);
}

Value RowProgram::memoryOf(Value tile) {
  prepare(tile);
  keep(tile);
  return leaves.find(tile)->second.pointer;
}

Value RowProgram::evaluate(Value tile, Position position, int64_t lanes) {
  auto leaf = leaves.find(tile);
  if (leaf != leaves.end())
    return readLeaf(leaf->second, position, lanes);
  return evaluateOp(tile.getDefiningOp(), tile, position, lanes);
}

Value RowProgram::evaluateOp(Operation *op, Value tile, Position position, int64_t lanes) {
  VectorType type = k.vectorOf(kLanes, elementOf(tile));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(k.b, DenseElementsAttr::get(type, elements.getSplatValue<Attribute>()));
  }
  if (auto splat = dyn_cast<tile::SplatOp>(op))
    return k.broadcast(scalar(splat.getInput()));
  if (auto repeat = dyn_cast<tile::RepeatOp>(op); repeat && isSplat(repeat))
    return k.broadcast(scalars.lookup(tile));
  if (auto swap = dyn_cast<tile::SwapPairsOp>(op)) {
    // Kept, so that positions are even.
    Value pairs = evaluate(swap.getInput(), position, lanes);
    SmallVector<int64_t> places;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      places.push_back(lane ^ 1);
    return vector::ShuffleOp::create(k.b, pairs, pairs, places);
  }
  if (auto slice = dyn_cast<tile::SliceOp>(op))
    return evaluate(slice.getInput(), {position.base, position.offset + static_cast<int64_t>(slice.getOffset())},
                    lanes);
  if (auto concat = dyn_cast<tile::ConcatOp>(op)) {
    int64_t at = 0;
    for (Value piece : concat.getInputs()) {
      if (position.offset < at + sizeOf(piece))
        return evaluate(piece, {{}, position.offset - at}, std::min(lanes, at + sizeOf(piece) - position.offset));
      at += sizeOf(piece);
    }
  }
  if (!isElementwise(op)) {
    error(op, "is no value that a CPU kernel can evaluate");
    return arith::ConstantOp::create(k.b, k.b.getZeroAttr(type));
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isTile(operand) ? evaluate(operand, position, lanes) : scalar(operand));
  if (isa<arith::TruncFOp>(op) && type.getElementType().isBF16())
    return roundToBf16(k, operands[0]);
  if (auto extend = dyn_cast<arith::ExtFOp>(op))
    if (elementOf(extend.getIn()).isBF16())
      return extendBf16(k, operands[0]);
  Operation *clone = op->clone();
  clone->setOperands(operands);
  clone->getResult(0).setType(type);
  k.b.insert(clone);
  return clone->getResult(0);
}

void RowProgram::evaluateInto(Value tile, Value pointer, Type element, int64_t paddedSize) {
  prepare(tile);
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  bool extend = elementOf(tile).isBF16() && element.isF32(), round = elementOf(tile).isF32() && element.isBF16();
  elementLoop(sizeOf(tile), [&](Position position, int64_t lanes) {
    Value vector = evaluate(tile, position, lanes);
    if (extend)
      vector = extendBf16(k, vector);
    if (round)
      vector = roundToBf16(k, vector);
    if (lanes < kLanes)
      vector = k.select(k.laneMask(lanes), vector, arith::ConstantOp::create(k.b, k.b.getZeroAttr(vector.getType())));
    k.store(vector, elementAt(pointer, position, elementBytes));
  });
  Value zero = arith::ConstantOp::create(k.b, k.b.getZeroAttr(k.vectorOf(kLanes, element)));
  for (int64_t at = wholeVectors(sizeOf(tile)); at < paddedSize; at += kLanes)
    k.store(zero, pointer, at * elementBytes);
}

// The factor of `radix` (255 or 256) that leaves a signed byte, and its product.
std::pair<Value, Value> RowProgram::nearestMultiple(Value whole, Value code, int64_t radix) {
  auto times256 = [&](Value value) { return arith::ShLIOp::create(k.b, value, k.splatInt(8)).getResult(); };
  if (radix == 256) {
    Value high = arith::ShRSIOp::create(k.b, k.add(whole, k.splatInt(128)), k.splatInt(8));
    return {high, times256(high)};
  }
  // The nearest multiple of 255 is unique, as that is odd, and no product here comes near the middle of two.
  Value high = arith::FPToSIOp::create(
      k.b, k.vi, math::RoundEvenOp::create(k.b, k.mulF(code, k.splat(1.0f / 255.0f))).getResult());
  return {high, k.sub(times256(high), high)};
}

void RowProgram::quantizeInto(tile::QuantizeOp op, const QuantizedRow &to) {
  Value input = op.getInput();
  float largestCode = static_cast<float>(tile::largestCodeOf(op.getCodes().getType()));
  prepare(input);
  auto group = [&](Value index, Position position, int64_t elements) {
    Value zero = k.splat(0.0f);
    SmallVector<Value> halves;
    for (int64_t half : {0, 1}) {
      int64_t lanes = std::clamp<int64_t>(elements - half * kLanes, 0, kLanes);
      Value vector = zero;
      if (lanes > 0)
        vector = evaluate(input, {position.base, position.offset + half * kLanes}, lanes);
      if (lanes > 0 && lanes < kLanes)
        vector = k.select(k.laneMask(lanes), vector, zero);
      halves.push_back(vector);
    }
    Value magnitude = k.reduceMax(
        k.maxF(math::AbsFOp::create(k.b, halves[0]).getResult(), math::AbsFOp::create(k.b, halves[1]).getResult()));
    Value scale = arith::DivFOp::create(k.b, magnitude, k.f32(largestCode));
    Value positive = arith::CmpFOp::create(k.b, arith::CmpFPredicate::OGT, magnitude, k.f32(0.0f));
    Value inverse = k.select(positive, arith::DivFOp::create(k.b, k.f32(1.0f), scale), k.f32(0.0f));
    SmallVector<Value> sums;
    for (int64_t half : {0, 1}) {
      Value code = math::RoundEvenOp::create(k.b, k.mulF(halves[half], k.broadcast(inverse)));
      // Only a subnormal scale, whose reciprocal is infinite, could leave the range.
      code = arith::MinNumFOp::create(k.b, arith::MaxNumFOp::create(k.b, code, k.splat(-largestCode)),
                                      k.splat(largestCode));
      Value whole = arith::FPToSIOp::create(k.b, k.vi, code);
      sums.push_back(whole);
      auto storeBytes = [&](Value values, Value plane) {
        k.store(arith::TruncIOp::create(k.b, k.vectorOf(kLanes, k.i8Type), values), k.at(plane, k.mul(index, 32)),
                half * kLanes);
      };
      if (!to.low) {
        storeBytes(whole, to.high);
        continue;
      }
      auto [high, multiple] = nearestMultiple(whole, code, to.radix);
      storeBytes(high, to.high);
      storeBytes(k.sub(whole, multiple), to.low);
    }
    k.store(scale, k.at(to.scales, k.mul(index, 4)));
    if (!to.start)
      return;
    auto total = [&](Value codes) { return vector::ReductionOp::create(k.b, vector::CombiningKind::ADD, codes); };
    Value all = total(k.add(sums[0], sums[1]));
    for (int64_t part = 0; part < to.parts; ++part) {
      Value start = k.mul(to.parts == 1 ? all : total(sums[part]), k.i32(static_cast<int32_t>(-to.zeroPoint)));
      k.store(start, k.at(to.start, k.mul(index, 4 * to.parts)), 4 * part);
    }
    k.store(arith::SIToFPOp::create(k.b, k.f32Type, all), k.at(to.sums, k.mul(index, 4)));
  };
  int64_t size = sizeOf(input), whole = size / 32;
  if (whole > 0)
    k.loop(k.i64(0), k.i64(whole), 1, [&](Value index) { group(index, {k.mul(index, 32), 0}, 32); });
  for (int64_t index = whole; index < sizeOf(op.getScales()); ++index)
    group(k.i64(index), {{}, index * 32}, size - index * 32);
}

Value RowProgram::emitReduce(tile::ReduceOp op) {
  Value input = op.getInput();
  prepare(input);
  bool isAdd = op.getReduction() == tile::Reduction::Add;
  auto combine = [&](Value partial, Value vector) { return isAdd ? k.addF(partial, vector) : k.maxF(partial, vector); };
  int64_t size = sizeOf(input), whole = size / kLanes * kLanes;
  Value partial = k.splat(isAdd ? 0.0f : -std::numeric_limits<float>::infinity());
  if (whole > 0)
    partial = k.loop(k.i64(0), k.i64(whole), kLanes, ValueRange{partial}, [&](Value base, ValueRange carried) {
      return SmallVector<Value>{combine(carried[0], evaluate(input, {base, 0}, kLanes))};
    })[0];
  if (whole < size) {
    Value vector = evaluate(input, {{}, whole}, size - whole);
    partial = k.select(k.laneMask(size - whole), combine(partial, vector), partial);
  }
  return isAdd ? k.reduceAdd(partial) : k.reduceMax(partial);
}

Value RowProgram::scalar(Value value) {
  auto known = scalars.find(value);
  if (known != scalars.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  if (!op) {
    error(task.task, "uses the column where it has none yet: what feeds a dot must not depend on the column tile");
    return k.i64(0);
  }
  Value result = emitScalarOp(op);
  // Constants are made where they are used: their first use may not dominate the others.
  if (!isa<arith::ConstantOp>(op))
    scalars[value] = result;
  return result;
}

Value RowProgram::emitScalarOp(Operation *op) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return emitReduce(reduce);
  if (auto fact = dyn_cast<tile::BatchOp>(op)) {
    int64_t field = fact.getFact() == tile::BatchFact::Token      ? offsetof(llmc_batch, tokens)
                    : fact.getFact() == tile::BatchFact::Position ? offsetof(llmc_batch, positions)
                                                                  : offsetof(llmc_batch, logit_rows);
    Value array = k.load(k.pointerType, task.batch, field);
    return k.loadInt(k.at(array, k.mul(scalar(fact.getRow()), 4)));
  }
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return k.i64(constant.value());
  if (!isElementwise(op)) {
    error(op, "is no number that a CPU kernel can evaluate");
    return k.i64(0);
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(scalar(operand));
  Type type = op->getResult(0).getType();
  if (type.isIndex())
    type = k.i64Type;
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    unsigned from = operands[0].getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
    if (from == to)
      return operands[0];
    if (from > to)
      return arith::TruncIOp::create(k.b, type, operands[0]);
    if (isa<arith::IndexCastUIOp>(op))
      return arith::ExtUIOp::create(k.b, type, operands[0]);
    return arith::ExtSIOp::create(k.b, type, operands[0]);
  }
  Operation *clone = op->clone();
  clone->setOperands(operands);
  clone->getResult(0).setType(type);
  k.b.insert(clone);
  return clone->getResult(0);
}

std::optional<int64_t> RowProgram::largest(Value index) {
  if (index == task.task.getColumn())
    return largestColumn;
  Operation *op = index.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return constant.value();
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> a = largest(op->getOperand(0)), c = largest(op->getOperand(1));
  if (isa<arith::MulIOp>(op) && a && c)
    return *a * *c;
  if (isa<arith::AddIOp>(op) && a && c)
    return *a + *c;
  auto constant = op->getOperand(1).getDefiningOp<arith::ConstantIndexOp>();
  if (!constant)
    return std::nullopt;
  if (isa<arith::SubIOp>(op) && a)
    return *a - constant.value();
  if (isa<arith::RemUIOp>(op))
    return constant.value() - 1;
  if (isa<arith::DivUIOp>(op) && a && constant.value() > 0)
    return *a / constant.value();
  return std::nullopt;
}

Value RowProgram::limitOf(Value column, int64_t size, int64_t capacity) {
  std::optional<int64_t> last = largest(column);
  if (last && *last + size <= capacity)
    return {};
  return k.sub(k.i64(capacity), scalar(column));
}

void RowProgram::error(Operation *op, const Twine &message) {
  if (!hasFailed)
    op->emitOpError() << message << " (in task @" << task.task.getSymName() << ")";
  hasFailed = true;
}
