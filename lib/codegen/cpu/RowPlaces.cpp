// The part of RowProgram whose elements depend on other places: repeated ones, the largest of a tile, picked ones,
// scaled matrices.
#include "lib/codegen/cpu/RowProgram.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {
constexpr float none = -std::numeric_limits<float>::infinity();

int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }

Value elementOf(KernelBuilder &k, Value array, Value index) { return k.at(array, k.mul(index, 4)); }
} // namespace

// Whole vectors in ascending order: what is written past the last repetition of an element is overwritten by the next
// element's, or padding.
void RowProgram::repeatInto(tile::RepeatOp op, Value buffer) {
  Value input = memoryOf(op.getInput());
  int64_t times = sizeOf(op.getResult()) / sizeOf(op.getInput());
  k.loop(k.i64(0), k.i64(sizeOf(op.getInput())), 1, [&](Value index) {
    Value element = k.broadcast(k.load(k.f32Type, elementOf(k, input, index)));
    Value target = k.at(buffer, k.mul(index, 4 * times));
    for (int64_t at = 0; at < times; at += kLanes)
      k.store(element, target, at * 4);
  });
}

Value RowProgram::placeOfLargest(Value pointer, int64_t size) {
  int64_t whole = size / kLanes * kLanes;
  auto vectorAt = [&](Value base) { return k.load(k.vf, elementOf(k, pointer, base)); };
  auto tail = [&] {
    return k.select(k.laneMask(size - whole), k.maskedLoad(k.vf, k.at(pointer, whole * 4), k.laneMask(size - whole)),
                    k.splat(none));
  };
  Value largest =
      k.loop(k.i64(0), k.i64(whole), kLanes, ValueRange{k.splat(none)},
             [&](Value base, ValueRange carried) { return SmallVector<Value>{k.maxF(carried[0], vectorAt(base))}; })[0];
  if (whole < size)
    largest = k.maxF(largest, tail());
  Value wanted = k.broadcast(k.reduceMax(largest)), nowhere = k.splatInt(std::numeric_limits<int32_t>::max());
  auto first = [&](Value before, Value vector, Value base) -> Value {
    Value places = k.add(k.iota(), k.broadcast(arith::TruncIOp::create(k.b, k.i32Type, base)));
    Value found = arith::CmpFOp::create(k.b, arith::CmpFPredicate::OEQ, vector, wanted);
    return k.min(before, k.select(found, places, nowhere));
  };
  Value place = k.loop(k.i64(0), k.i64(whole), kLanes, ValueRange{nowhere}, [&](Value base, ValueRange carried) {
    return SmallVector<Value>{first(carried[0], vectorAt(base), base)};
  })[0];
  if (whole < size)
    place = first(place, tail(), k.i64(whole));
  Value least = vector::ReductionOp::create(k.b, vector::CombiningKind::MINSI, place);
  // None is found among numbers that are none: any place will do, inside of the tile.
  return k.min(arith::ExtSIOp::create(k.b, k.i64Type, least), k.i64(size - 1));
}

// Scores of groups that leave become the least there is.
void RowProgram::removeGroups(tile::ChooseOp op, Value scores) {
  int64_t groups = static_cast<int64_t>(op.getGroups()), size = sizeOf(op.getInput()) / groups;
  Value sums = k.allocate((groups + kLanes) * 4), stays = k.allocate((groups + kLanes) * 4);
  k.loop(k.i64(0), k.i64(groups), 1, [&](Value group) {
    Value members = elementOf(k, scores, k.mul(group, size));
    Value first = elementOf(k, members, placeOfLargest(members, size));
    Value sum = k.load(k.f32Type, first);
    if (static_cast<int64_t>(op.getGroupSum()) == 2) {
      Value largest = sum;
      k.store(k.f32(none), first);
      sum = k.addF(sum, k.load(k.f32Type, elementOf(k, members, placeOfLargest(members, size))));
      k.store(largest, first);
    }
    k.store(sum, elementOf(k, sums, group));
    k.store(k.i32(0), elementOf(k, stays, group));
  });
  k.loop(k.i64(0), k.i64(static_cast<int64_t>(op.getTopGroups())), 1, [&](Value) {
    Value group = placeOfLargest(sums, groups);
    k.store(k.f32(none), elementOf(k, sums, group));
    k.store(k.i32(1), elementOf(k, stays, group));
  });
  k.loop(k.i64(0), k.i64(groups), 1, [&](Value group) {
    k.when(k.equal(k.load(k.i32Type, elementOf(k, stays, group)), k.i32(0)), [&] {
      Value first = k.mul(group, size);
      k.loop(k.i64(0), k.i64(size), 1,
             [&](Value member) { k.store(k.f32(none), elementOf(k, scores, k.add(first, member))); });
    });
  });
}

void RowProgram::chooseInto(tile::ChooseOp op, Value buffer) {
  int64_t size = sizeOf(op.getInput());
  Value scores = k.allocate((size + 2 * kLanes) * 4);
  evaluateInto(op.getInput(), scores, k.f32Type, /*paddedSize=*/0);
  if (op.getTopGroups() < op.getGroups())
    removeGroups(op, scores);
  k.loop(k.i64(0), k.i64(sizeOf(op.getResult())), 1, [&](Value index) {
    Value place = placeOfLargest(scores, size);
    k.store(k.f32(none), elementOf(k, scores, place));
    k.store(arith::SIToFPOp::create(k.b, k.f32Type, place), elementOf(k, buffer, index));
  });
}

void RowProgram::pickInto(tile::PickOp op, Value buffer) {
  Value input = memoryOf(op.getInput()), places = memoryOf(op.getPlaces());
  float last = static_cast<float>(sizeOf(op.getInput()) - 1);
  k.loop(k.i64(0), k.i64(sizeOf(op.getPlaces())), 1, [&](Value index) {
    Value place = k.load(k.f32Type, elementOf(k, places, index));
    place = arith::MinNumFOp::create(k.b, arith::MaxNumFOp::create(k.b, place, k.f32(0.0f)), k.f32(last));
    Value picked = k.load(k.f32Type, elementOf(k, input, arith::FPToSIOp::create(k.b, k.i64Type, place)));
    k.store(picked, elementOf(k, buffer, index));
  });
}

// A row of the matrix is a vector, zero past its columns, and stays so.
void RowProgram::sinkhornInto(tile::SinkhornOp op, Value buffer) {
  int64_t size = op.matrixSize();
  Value input = memoryOf(op.getInput()), columns = k.laneMask(size), eps = k.splat(op.getEps().convertToFloat());
  SmallVector<Value> rows;
  for (int64_t i = 0; i < size; ++i)
    rows.push_back(k.select(columns, k.load(k.vf, input, 4 * i * size), k.splat(0.0f)));
  auto normalizeColumns = [&](MutableArrayRef<Value> matrix) {
    Value sum = matrix.front();
    for (Value row : matrix.drop_front())
      sum = k.addF(sum, row);
    sum = k.addF(sum, eps);
    for (Value &row : matrix)
      row = arith::DivFOp::create(k.b, row, sum);
  };
  normalizeColumns(rows);
  int64_t rounds = static_cast<int64_t>(op.getIterations()) - 1;
  rows = k.loop(k.i64(0), k.i64(rounds), 1, rows, [&](Value, ValueRange carried) {
    SmallVector<Value> matrix(carried);
    for (Value &row : matrix)
      row = arith::DivFOp::create(k.b, row, k.addF(k.broadcast(k.reduceAdd(row)), eps));
    normalizeColumns(matrix);
    return matrix;
  });
  // What a row writes past its columns is overwritten by the next, or padding.
  for (auto [i, row] : llvm::enumerate(rows))
    k.store(row, buffer, 4 * static_cast<int64_t>(i) * size);
}
