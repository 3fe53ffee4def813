// A row keeps the best it has seen in a heap with the worst on top. What is kept is one integer: the score's bits in an
// order that integers have too, then the position from above, so that the lower of two equal scores is the better one.
// That order is total: spans may be searched by anyone, in any order, for the same result.
#include "lib/codegen/cpu/SelectTask.h"
#include "lib/codegen/cpu/AttendProducts.h"
#include "lib/codegen/cpu/AttendRows.h"
#include "lib/codegen/cpu/SpanTask.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr int64_t kNothing = INT64_MIN, kPositions = 0xffffffff, kPastAll = INT64_MAX;

class SelectTask : public SpanTask {
public:
  SelectTask(KernelBuilder &kernel, TaskContext &task, tile::SelectPositionsOp op, const Schedule &schedule);
  bool hasFailed() const { return !ok; }

private:
  std::pair<Value, Value> spansOf(Value first, Value last) override;
  Value positionOf(Value row) override { return pages.positionOf(row); }
  void emitUnit(const Unit &unit) override;
  void combine(const Unit &row) override;
  void endUnits() override { products->endTask(); }

  void emitInputs(const Unit &unit);
  void searchPage(const Unit &unit, const AttendPage &page, Value firstPosition);
  void offerVector(Value heap, Value scores, Value firstPosition, Value limit);
  // Puts `entry` in the place of the root, or of the entry at `start`.
  void sink(Value heap, Value start, Value entry);
  void clear(Value heap);
  void offer(Value heap, Value entry);
  void emitBest(Value row, Value heap);
  void emitAll(Value row);
  void emitResult(Value row);
  Value heapOf(Value i) { return k.at(heaps, k.mul(i, count * 8)); }
  Value weightsOf(Value i) { return k.at(weights, k.mul(i, weightFloats * 4)); }
  Value partialsOf(Value slot) {
    return k.at(task.operands.lookup(op.getPartials()), k.mul(slot, 4 * task.rowStride.lookup(op.getPartials())));
  }

  tile::SelectPositionsOp op;
  CachePages pages;
  const int64_t page, span, heads, count, weightFloats;
  std::unique_ptr<AttendProducts> products;
  RowProducts *rows = nullptr; // the same, when not all positions are kept
  Value heaps, weights, ordered, result;
  bool ok = true;
};

SelectTask::SelectTask(KernelBuilder &kernel, TaskContext &task, tile::SelectPositionsOp op, const Schedule &schedule)
    : SpanTask(kernel, task, schedule.rowBlock, op.getPartials() && static_cast<int64_t>(op.getSpan()) > 0), op(op),
      pages(kernel, task, op.getKv()), page(pages.type.getPage()), span(static_cast<int64_t>(op.getSpan())),
      heads(op.getWeights().getType().getDimSize(0)), count(op.getType().getDimSize(0)),
      weightFloats((heads + kLanes - 1) / kLanes * kLanes) {
  products = AttendProducts::create(kernel, pages.type, rowBlock * heads, schedule);
  if (pages.type.getEvery() > 1)
    rows = static_cast<RowProducts *>(products.get());
  heaps = k.allocate(rowBlock * count * 8);
  weights = k.allocate(rowBlock * weightFloats * 4);
  ordered = k.allocate(kLanes * 4);
  result = k.allocate((count + kLanes) * 4);
}

std::pair<Value, Value> SelectTask::spansOf(Value, Value last) {
  return {k.i64(0), span == 0 ? k.i64(1) : k.ceilDiv(pages.rowsAt(last), span)};
}

void SelectTask::emitInputs(const Unit &unit) {
  k.loop(k.i64(0), unit.rows, 1, [&](Value i) {
    RowProgram program(k, task, k.add(unit.firstRow, i), unit.column);
    program.evaluateInto(op.getQuery(), products->queryOf(k.mul(i, heads)), products->queryElement(), /*paddedSize=*/0);
    program.evaluateInto(op.getWeights(), weightsOf(i), k.f32Type, /*paddedSize=*/0);
    ok &= !program.failed();
  });
}

void SelectTask::emitUnit(const Unit &unit) {
  Value first = positionOf(unit.firstRow), last = k.add(k.add(first, unit.rows), -1);
  // Rows that see no more than they may name take all of it.
  Value lastRow = pages.lastRowAt(last), isShort = k.less(lastRow, k.i64(count));
  auto forRows = [&](llvm::function_ref<void(Value, Value)> body) {
    k.loop(k.i64(0), unit.rows, 1, [&](Value i) { body(i, k.add(unit.firstRow, i)); });
  };
  auto whenWhole = [&](llvm::function_ref<void()> body) { mayBeSplit ? k.when(k.inverted(isSplit), body) : body(); };
  k.when(isShort, [&] { whenWhole([&] { forRows([&](Value, Value row) { emitAll(row); }); }); });
  k.when(k.inverted(isShort), [&] {
    emitInputs(unit);
    forRows([&](Value i, Value) { clear(heapOf(i)); });
    products->beginItem(k.mul(unit.rows, heads));
    Value from = k.i64(0), to = k.ceilDiv(k.add(lastRow, 1), page);
    if (span > 0) {
      from = k.mul(unit.from, span / page);
      to = k.min(to, k.mul(unit.to, span / page));
    }
    k.loop(from, to, 1, [&](Value index) {
      AttendPage current = rows ? rows->gatherRows(pages, unit.of.sequence, k.i64(0), index, lastRow)
                                : pages.at(unit.of.sequence, k.i64(0), index, last);
      products->emitScores(k.mul(unit.rows, heads), current);
      if (current.nextKeys)
        products->fetch(current.nextKeys, pages.keyBytes());
      searchPage(unit, current, first);
    });
    if (mayBeSplit)
      k.when(isSplit, [&] {
        forRows([&](Value i, Value row) {
          Value to = partialsOf(slotOf(unit, row, unit.from)), heap = heapOf(i);
          k.loop(k.i64(0), k.i64(count), 1, [&](Value entry) {
            Value at = k.mul(entry, 8);
            k.store(k.load(k.i64Type, k.at(heap, at)), k.at(to, at));
          });
        });
      });
    whenWhole([&] { forRows([&](Value i, Value row) { emitBest(row, heapOf(i)); }); });
  });
}

void SelectTask::combine(const Unit &unit) {
  Value row = unit.firstRow, isShort = k.less(pages.lastRowAt(positionOf(row)), k.i64(count));
  k.when(isShort, [&] { emitAll(row); });
  k.when(k.inverted(isShort), [&] {
    Value heap = heapOf(k.i64(0));
    clear(heap);
    k.loop(unit.from, unit.to, 1, [&](Value span) {
      Value from = partialsOf(slotOf(unit, row, span));
      k.loop(k.i64(0), k.i64(count), 1,
             [&](Value entry) { offer(heap, k.load(k.i64Type, k.at(from, k.mul(entry, 8)))); });
    });
    emitBest(row, heap);
  });
}

void SelectTask::searchPage(const Unit &unit, const AttendPage &current, Value firstPosition) {
  int64_t vectors = page / kLanes;
  k.loop(k.i64(0), unit.rows, 1, [&](Value i) {
    SmallVector<Value> scores = k.loop(
        k.i64(0), k.i64(heads), 1, SmallVector<Value>(vectors, k.splat(0.0f)), [&](Value head, ValueRange carried) {
          Value products = this->products->scoresOf(k.add(k.mul(i, heads), head));
          Value weight = k.broadcast(k.load(k.f32Type, k.at(weightsOf(i), k.mul(head, 4))));
          SmallVector<Value> sums;
          for (int64_t v = 0; v < vectors; ++v) {
            Value product = k.load(k.vf, products, v * 64);
            if (current.keyScales)
              product = k.mulF(product, k.load(k.vf, current.keyScales, v * 64));
            sums.push_back(k.fma(weight, k.maxF(k.splat(0.0f), product), carried[v]));
          }
          return sums;
        });
    Value seen = k.add(k.sub(pages.lastRowAt(k.add(firstPosition, i)), current.base), 1);
    for (int64_t v = 0; v < vectors; ++v)
      offerVector(heapOf(i), scores[v], k.add(current.base, v * kLanes), k.add(seen, -v * kLanes));
  });
}

// Sixteen scores of positions from `firstPosition` on, of which the first `limit` count.
void SelectTask::offerVector(Value heap, Value scores, Value firstPosition, Value limit) {
  Value bits = k.bitcast(k.addF(scores, k.splat(0.0f)), k.vi); // there is one zero only
  Value negative = arith::ShRSIOp::create(k.b, bits, k.splatInt(31));
  bits = arith::XOrIOp::create(k.b, bits, arith::AndIOp::create(k.b, negative, k.splatInt(INT32_MAX)));
  bits = k.select(k.laneMask(limit), bits, k.splatInt(INT32_MIN));
  Value best = vector::ReductionOp::create(k.b, vector::CombiningKind::MAXSI, bits);
  Value worstKept = k.load(k.i32Type, heap, 4); // the upper half of the root
  Value mayEnter = arith::CmpIOp::create(k.b, arith::CmpIPredicate::sge, best, worstKept);
  k.when(mayEnter, [&] {
    k.store(bits, ordered);
    k.loop(k.i64(0), k.min(limit, k.i64(kLanes)), 1, [&](Value lane) {
      Value high = arith::ShLIOp::create(k.b, k.loadInt(k.at(ordered, k.mul(lane, 4))), k.i64(32));
      offer(heap, k.add(high, k.sub(k.i64(kPositions), k.add(firstPosition, lane))));
    });
  });
}

//===-- the heap --===//

void SelectTask::clear(Value heap) {
  k.loop(k.i64(0), k.i64(count), 1, [&](Value entry) { k.store(k.i64(kNothing), k.at(heap, k.mul(entry, 8))); });
}

void SelectTask::offer(Value heap, Value entry) {
  k.when(k.less(k.load(k.i64Type, heap), entry), [&] { sink(heap, k.i64(0), entry); });
}

void SelectTask::sink(Value heap, Value start, Value entry) {
  auto at = [&](Value index) { return k.at(heap, k.mul(index, 8)); };
  SmallVector<Value> place = k.repeat(ValueRange{start}, [&](ValueRange state) {
    Value i = state[0], left = k.add(k.mul(i, 2), 1), hasChild = k.less(left, k.i64(count));
    Value first = k.select(hasChild, left, i), second = k.min(k.add(first, 1), k.i64(count - 1));
    Value a = k.load(k.i64Type, at(first)), b = k.load(k.i64Type, at(second));
    Value isSecond = k.less(b, a), child = k.select(isSecond, b, a);
    Value moves = arith::AndIOp::create(k.b, hasChild, k.less(child, entry));
    k.when(moves, [&] { k.store(child, at(i)); });
    return std::pair<Value, SmallVector<Value>>(moves, {k.select(moves, k.select(isSecond, second, first), i)});
  });
  k.store(entry, at(place[0]));
}

//===-- results --===//

void SelectTask::emitResult(Value row) {
  RowProgram program(k, task, row, k.i64(0));
  program.bindMemory(op.getResult(), result);
  ok &= succeeded(program.emitBlock(task.task.getBody().front()));
}

void SelectTask::emitAll(Value row) {
  Value position = arith::TruncIOp::create(k.b, k.i32Type, pages.lastRowAt(positionOf(row)));
  k.loop(k.i64(0), k.i64(count), kLanes, [&](Value at) {
    Value here = k.add(k.iota(), k.broadcast(arith::TruncIOp::create(k.b, k.i32Type, at)));
    Value seen = arith::CmpIOp::create(k.b, arith::CmpIPredicate::sle, here, k.broadcast(position));
    Value named = k.select(seen, arith::SIToFPOp::create(k.b, k.vf, here), k.splat(-1.0f));
    k.store(named, k.at(result, k.mul(at, 4)));
  });
  emitResult(row);
}

// Entries become positions, and the same heap hands them out from the least on.
void SelectTask::emitBest(Value row, Value heap) {
  auto at = [&](Value index) { return k.at(heap, k.mul(index, 8)); };
  k.loop(k.i64(0), k.i64(count), 1, [&](Value index) {
    Value entry = k.load(k.i64Type, at(index));
    Value position = k.sub(k.i64(kPositions), arith::AndIOp::create(k.b, entry, k.i64(kPositions)));
    k.store(k.select(k.equal(entry, k.i64(kNothing)), k.i64(kPastAll), position), at(index));
  });
  k.loop(k.i64(0), k.i64(count / 2), 1, [&](Value index) {
    Value place = k.sub(k.i64(count / 2 - 1), index);
    sink(heap, place, k.load(k.i64Type, at(place)));
  });
  k.loop(k.i64(0), k.i64(count), 1, [&](Value index) {
    Value least = k.load(k.i64Type, heap);
    Value named = arith::SIToFPOp::create(k.b, k.f32Type, k.select(k.equal(least, k.i64(kPastAll)), k.i64(-1), least));
    k.store(named, k.at(result, k.mul(index, 4)));
    sink(heap, k.i64(0), k.i64(kPastAll));
  });
  emitResult(row);
}

} // namespace

LogicalResult llmc::cpu::emitSelectTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule) {
  SmallVector<tile::SelectPositionsOp> ops;
  task.task.walk([&](tile::SelectPositionsOp op) { ops.push_back(op); });
  tile::SelectPositionsOp op = ops.front();
  if (ops.size() != 1 || op->getParentOp() != task.task.getOperation() || task.task.getSpace() != tile::Space::Rows ||
      task.task.getColumns() != 1)
    return task.task.emitOpError() << "holds " << ops.size()
                                   << " select_positions, expected one, over all rows, one column and outside of "
                                      "tile.when";
  if (failed(verifyPanels(op, op.getKv().getType())))
    return failure();
  SelectTask select(kernel, task, op, schedule);
  select.emit();
  return failure(select.hasFailed());
}
