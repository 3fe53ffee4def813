// Rows are taken in blocks: their inputs are prepared once, then run against one column tile of the weight after the
// other. The rows of a block share a matrix; which rows do is what the two kinds of task differ in.
#include "lib/codegen/cpu/DotTask.h"
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/MatrixTiles.h"
#include "runtime/llmc_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// What the two dots have in common.
struct Dot {
  explicit Dot(Operation *op) : op(op) {
    if (auto plain = dyn_cast<tile::DotOp>(op))
      std::tie(input, weight, column, matrix) =
          std::tuple(Value(plain.getInput()), Value(plain.getWeight()), plain.getColumn(), plain.getMatrix());
    else if (auto scaled = dyn_cast<tile::ScaledDotOp>(op))
      std::tie(input, weight, column, matrix) =
          std::tuple(Value(scaled.getCodes()), Value(scaled.getWeight()), scaled.getColumn(), scaled.getMatrix());
  }
  Operation *op;
  Value input, weight, column, matrix;
};

// A cell of the grid: tile `t` of a block's matrix is column firstColumn + t of its row.
struct Cell {
  Value row, firstColumn; // null: 0
};

// Rows of one matrix, from one of its column tiles to another.
struct RowBlock {
  Value weights, rows, fromTile, toTile;
  llvm::function_ref<Cell(Value)> cellOf;
  Value hasMatrix = {}; // null: yes; where it is false nothing is read, and the products are 0
};

class DotTask {
public:
  DotTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule, const WorkShare &share, Dot dot,
          const PackedLayout &weight)
      : k(kernel), task(task), schedule(schedule), share(share), dot(dot), weight(weight),
        columns(static_cast<int64_t>(task.task.getColumns())) {
    if (weight.takesCodes())
      quantized = quantizedInputLayout(k.target, weight, getElementTypeOrSelf(dot.input).getIntOrFloatBitWidth() / 8);
    input.strideBytes = weight.takesCodes() ? quantized.strideBytes : dotInputLayout(k, weight).strideBytes;
    input.pointer = k.allocate(blockRows() * input.strideBytes);
  }
  LogicalResult emitOneMatrix();
  LogicalResult emitStack();

private:
  void storeInput(const Cell &cell, Value to);
  void emitProducts(const RowBlock &block, Value rows, RowArray result, llvm::function_ref<void()> multiply);
  void emitFewRows(Value rows, RowArray from, Value tile, RowArray result, const DepthPart &part = {});
  void emitBlock(const RowBlock &block);
  void emitTiles(const RowBlock &block, llvm::function_ref<void(Value, Value, Value)> finish, RowArray result);
  // Rows of the grid sorted by matrix: those of matrix e are starts[e] .. starts[e + 1] - 1 of the list, behind all those
  // without one.
  struct RowsOfMatrices {
    Value starts, list;
  };
  RowsOfMatrices sortRows(int64_t slots);
  Value matrixOf(Value cell, int64_t slots);
  enum class RowsWith { OneMatrix, OneMatrixOrNone };
  void emitMatrices(RowsWith matrices, llvm::function_ref<Value(Value)> rowsOf,
                    llvm::function_ref<Cell(Value, Value)> cellOf);

  // Rows that buffers of a row block hold: whole groups of matrix tiles.
  int64_t blockRows() const {
    int64_t group = schedule.tileRows ? kPairRows : 1;
    return (schedule.rowBlock + group - 1) / group * group;
  }
  Value tileColumn(const Cell &cell, Value tile) { return cell.firstColumn ? k.add(cell.firstColumn, tile) : tile; }
  RowArray rowsFrom(RowArray array, Value first) {
    return {k.at(array.pointer, k.mul(first, array.strideBytes)), array.strideBytes};
  }

  KernelBuilder &k;
  TaskContext &task;
  const Schedule &schedule;
  const WorkShare &share;
  Dot dot;
  const PackedLayout &weight;
  int64_t columns;
  QuantizedInputLayout quantized; // of rows for a quantised weight
  RowArray input;
  bool ok = true;
};

// The row's input in the form that the kernels read.
void DotTask::storeInput(const Cell &cell, Value to) {
  RowProgram program(k, task, cell.row, cell.firstColumn);
  if (auto plain = dyn_cast<tile::DotOp>(dot.op)) {
    DotInputLayout layout = dotInputLayout(k, weight);
    program.evaluateInto(plain.getInput(), to, layout.element, layout.paddedDepth);
  } else {
    Value low = quantized.codeBytes == 2 ? k.at(to, quantized.lowAt) : Value();
    program.quantizeInto(dot.input.getDefiningOp<tile::QuantizeOp>(),
                         {to, low, k.at(to, quantized.scalesAt), k.at(to, quantized.startAt),
                          k.at(to, quantized.sumsAt), quantized.zeroPoint, quantized.radix, quantized.parts});
  }
  ok &= !program.failed();
}

// Up to kernelRows rows, by a kernel for exactly so many.
void DotTask::emitFewRows(Value rows, RowArray from, Value tile, RowArray result, const DepthPart &part) {
  for (int64_t size = 1; size <= schedule.kernelRows; ++size)
    k.when(k.equal(rows, k.i64(size)), [&] {
      if (weight.form == llm::WeightForm::F8)
        emitFloat8DotTile(k, weight, size, from, tile, result, part);
      else if (weight.isQuantized())
        emitQuantizedDotTile(k, weight, quantized, size, from, tile, result, part);
      else
        emitDotTile(k, weight, size, from, tile, result, part);
    });
}

// What `multiply` leaves for rows that have a matrix, else zeros.
void DotTask::emitProducts(const RowBlock &block, Value rows, RowArray result, llvm::function_ref<void()> multiply) {
  if (!block.hasMatrix)
    return multiply();
  k.when(block.hasMatrix, multiply);
  k.when(k.inverted(block.hasMatrix), [&] { clearResult(k, weight, rows, result); });
}

void DotTask::emitBlock(const RowBlock &block) {
  Value inputs = block.hasMatrix ? k.select(block.hasMatrix, block.rows, k.i64(0)) : block.rows;
  k.loop(k.i64(0), inputs, 1,
         [&](Value row) { storeInput(block.cellOf(row), k.at(input.pointer, k.mul(row, input.strideBytes))); });
  // Tiles, and parts of the depth, write all rows of the block before anything follows.
  RowArray result;
  result.strideBytes = vectorsOf(weight) * 64;
  result.pointer = k.allocate(
      (schedule.tileRows || schedule.depthBlock ? blockRows() : schedule.kernelRows) * result.strideBytes + 64);
  emitTiles(
      block,
      [&](Value tile, Value first, Value count) {
        k.loop(k.i64(0), count, 1, [&](Value row) {
          Cell cell = block.cellOf(k.add(first, row));
          RowProgram program(k, task, cell.row, tileColumn(cell, tile));
          program.bindMemory(dot.op->getResult(0), rowsFrom(result, row).pointer);
          ok &= succeeded(program.emitBlock(task.task.getBody().front()));
        });
      },
      result);
}

// Column tiles outermost: a tile of the weight is read from memory once and then stays in cache for all rows.
void DotTask::emitTiles(const RowBlock &block, llvm::function_ref<void(Value, Value, Value)> finish, RowArray result) {
  auto rowGroups = [&](llvm::function_ref<void(Value, Value)> body) {
    k.loop(k.i64(0), block.rows, schedule.kernelRows,
           [&](Value first) { body(first, k.min(k.sub(block.rows, first), k.i64(schedule.kernelRows))); });
  };
  bool pairTiles = usesPairTiles(k, weight);
  if (pairTiles)
    beginPairTiles(k, k.min(block.rows, k.i64(kTileRows)));
  k.loop(block.fromTile, block.toTile, 1, [&](Value index) {
    Value tile = k.at(block.weights, k.mul(index, tileBytesOf(weight)));
    if (schedule.depthBlock) {
      emitProducts(block, block.rows, result, [&] {
        clearResult(k, weight, block.rows, result);
        int64_t blocks = schedule.depthBlock / 64;
        k.loop(k.i64(0), k.i64((weight.k + 63) / 64), blocks, [&](Value from) {
          rowGroups([&](Value first, Value count) {
            emitFewRows(count, rowsFrom(input, first), tile, rowsFrom(result, first), {from, k.add(from, blocks)});
          });
        });
      });
      return finish(index, k.i64(0), block.rows);
    }
    if (!schedule.tileRows)
      return rowGroups([&](Value first, Value count) {
        emitProducts(block, count, result, [&] { emitFewRows(count, rowsFrom(input, first), tile, result); });
        finish(index, first, count);
      });
    emitProducts(block, block.rows, result, [&] {
      if (pairTiles)
        return emitTiledPairDot(k, weight, block.rows, input, tile, result);
      int64_t few = schedule.tileRows / 2;
      k.when(k.less(k.i64(few), block.rows),
             [&] { emitTiledQuantizedDot(k, weight, quantized, block.rows, input, tile, result); });
      k.when(k.less(block.rows, k.i64(few + 1)), [&] {
        rowGroups([&](Value first, Value count) {
          emitFewRows(count, rowsFrom(input, first), tile, rowsFrom(result, first));
        });
      });
    });
    finish(index, k.i64(0), block.rows);
  });
  if (pairTiles)
    endTiles(k);
}

//===-- one matrix --===//

LogicalResult DotTask::emitOneMatrix() {
  if (columns > weight.numTiles())
    return task.task.emitOpError() << "has " << columns << " column tiles over " << dot.weight.getType()
                                   << ", which has " << weight.numTiles();
  // With rows for everybody each worker takes its own; else all rows are prepared by every worker, which costs less
  // than a barrier, and the column tiles are shared out.
  Value byRows = k.less(k.add(share.workers, -1), k.div(share.rowCount, schedule.rowBlock));
  auto [fromRow, toRow] = share.of(k, share.rowCount, std::max(schedule.kernelRows, schedule.tileRows));
  auto [fromColumn, toColumn] = share.of(k, k.i64(columns), 1);
  fromRow = k.select(byRows, fromRow, k.i64(0));
  toRow = k.select(byRows, toRow, share.rowCount);
  Value fromTile = k.select(byRows, k.i64(0), fromColumn), toTile = k.select(byRows, k.i64(columns), toColumn);
  k.when(k.less(fromTile, toTile), [&] {
    auto loop = [&](Value firstRow) {
      Value rows = k.min(k.sub(toRow, firstRow), k.i64(schedule.rowBlock));
      emitBlock({task.operands.lookup(dot.weight), rows, fromTile, toTile, [&](Value row) {
                   return Cell{k.add(firstRow, row), {}};
                 }});
    };
    k.loop(fromRow, toRow, schedule.rowBlock, loop);
  });
  return success(ok);
}

//===-- a stack of matrices --===//

// Rows whose products take as long as reading a matrix from memory, about: what one expert costs beside its rows.
constexpr int64_t kRowsOfReading = 8;

// Whether `value` is the column divided by (or modulo) the tiles of one matrix.
template <typename Op> bool isPartOfColumn(Value value, Value column, int64_t tiles) {
  auto op = value.getDefiningOp<Op>();
  auto divisor = op ? op.getRhs().template getDefiningOp<arith::ConstantIndexOp>() : arith::ConstantIndexOp();
  return divisor && op.getLhs() == column && divisor.value() == tiles;
}

// Whether the column tile enters `value` through the matrix's place among those of its row only.
bool dependsOnSlot(Value value, Value column, int64_t tiles, llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (value == column)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op || isPartOfColumn<arith::DivUIOp>(value, column, tiles) || !seen.insert(op).second)
    return true;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return dependsOnSlot(operand, column, tiles, seen); });
}

// The matrix of cell `cell` = row * slots + slot; their number where there is none of its index.
Value DotTask::matrixOf(Value cell, int64_t slots) {
  RowProgram program(k, task, k.div(cell, slots), k.mul(k.rem(cell, slots), weight.numTiles()));
  Value matrix = program.scalar(dot.matrix);
  ok &= !program.failed();
  Value none = k.i64(weight.stacked);
  return k.select(k.less(matrix, k.i64(0)), none, k.min(matrix, none));
}

// Counting sort, by every worker for itself: there are few rows, and a barrier costs more.
DotTask::RowsOfMatrices DotTask::sortRows(int64_t slots) {
  int64_t groups = weight.stacked + 1;
  Value starts = k.allocate((groups + 1) * 8), next = k.allocate(groups * 8);
  Value list = k.allocate(task.plan.maxTokens * slots * 8);
  Value cells = k.mul(share.rowCount, slots);
  auto element = [&](Value array, Value index) { return k.at(array, k.mul(index, 8)); };
  k.loop(k.i64(0), k.i64(groups), 1, [&](Value matrix) { k.store(k.i64(0), element(next, matrix)); });
  k.loop(k.i64(0), cells, 1, [&](Value cell) {
    Value count = element(next, matrixOf(cell, slots));
    k.store(k.add(k.load(k.i64Type, count), 1), count);
  });
  Value end = k.loop(k.i64(0), k.i64(groups), 1, ValueRange{k.i64(0)}, [&](Value matrix, ValueRange before) {
    Value count = k.load(k.i64Type, element(next, matrix));
    k.store(before[0], element(starts, matrix));
    k.store(before[0], element(next, matrix));
    return SmallVector<Value>{k.add(before[0], count)};
  })[0];
  k.store(end, starts, groups * 8);
  k.loop(k.i64(0), cells, 1, [&](Value cell) {
    Value place = element(next, matrixOf(cell, slots)), at = k.load(k.i64Type, place);
    k.store(cell, element(list, at));
    k.store(k.add(at, 1), place);
  });
  return {starts, list};
}

// Every matrix that has rows, in units of a column tile with all of these rows: a worker takes units next to each other
// that cost as much as everybody's. Rows without a matrix cost next to nothing.
void DotTask::emitMatrices(RowsWith matrices, llvm::function_ref<Value(Value)> rowsOf,
                           llvm::function_ref<Cell(Value, Value)> cellOf) {
  int64_t tiles = weight.numTiles();
  bool someHaveNone = matrices == RowsWith::OneMatrixOrNone;
  Value none = k.i64(0), all = k.i64(weight.stacked + (someHaveNone ? 1 : 0));
  auto isMatrix = [&](Value matrix) { return k.less(matrix, k.i64(weight.stacked)); };
  auto costOf = [&](Value matrix, Value rows) {
    Value cost = k.add(rows, kRowsOfReading);
    if (someHaveNone)
      cost = k.select(isMatrix(matrix), cost, k.i64(1));
    return k.select(k.less(none, rows), cost, none);
  };
  Value total = k.loop(none, all, 1, ValueRange{none}, [&](Value matrix, ValueRange before) {
    return SmallVector<Value>{k.add(before[0], k.mul(costOf(matrix, rowsOf(matrix)), tiles))};
  })[0];
  Value begin = k.div(k.mul(total, share.worker), share.workers);
  Value end = k.div(k.mul(total, k.add(share.worker, 1)), share.workers);
  k.loop(none, all, 1, ValueRange{none}, [&](Value matrix, ValueRange before) {
    Value rows = rowsOf(matrix), cost = costOf(matrix, rows), divisor = k.max(cost, k.i64(1));
    auto tileAt = [&](Value edge) {
      Value behind = k.max(k.sub(edge, before[0]), none);
      return k.min(k.div(k.add(behind, k.add(divisor, -1)), divisor), k.i64(tiles));
    };
    Value fromTile = tileAt(begin), toTile = tileAt(end);
    Value works = arith::AndIOp::create(k.b, k.less(none, rows), k.less(fromTile, toTile));
    k.when(works, [&] {
      Value weights =
          k.at(task.operands.lookup(dot.weight), k.mul(matrix, static_cast<int64_t>(*weight.matrixBytes().value())));
      auto loop = [&](Value first) {
        Value count = k.min(k.sub(rows, first), k.i64(schedule.rowBlock));
        emitBlock({weights, count, fromTile, toTile, [&](Value row) { return cellOf(matrix, k.add(first, row)); },
                   someHaveNone ? isMatrix(matrix) : Value()});
      };
      k.loop(none, rows, schedule.rowBlock, loop);
    });
    return SmallVector<Value>{k.add(before[0], k.mul(cost, tiles))};
  });
}

LogicalResult DotTask::emitStack() {
  int64_t tiles = weight.numTiles(), slots = columns / tiles;
  Value column = task.task.getColumn();
  llvm::SmallPtrSet<Operation *, 16> seen;
  if (columns % tiles != 0 || !isPartOfColumn<arith::RemUIOp>(dot.column, column, tiles) ||
      !dependsOnSlot(dot.input, column, tiles, seen) || !dependsOnSlot(dot.matrix, column, tiles, seen))
    return dot.op->emitOpError() << "in task @" << task.task.getSymName() << " takes tiles of " << dot.weight.getType()
                                 << " by other numbers than the column modulo its " << tiles
                                 << " tiles, or rows that depend on the tile";
  // Every row has every matrix: nothing to sort.
  if (slots == weight.stacked && isPartOfColumn<arith::DivUIOp>(dot.matrix, column, tiles)) {
    emitMatrices(
        RowsWith::OneMatrix, [&](Value) { return share.rowCount; },
        [&](Value matrix, Value row) {
          return Cell{row, k.mul(matrix, tiles)};
        });
    return success(ok);
  }
  RowsOfMatrices sorted = sortRows(slots);
  auto startOf = [&](Value matrix) { return k.load(k.i64Type, k.at(sorted.starts, k.mul(matrix, 8))); };
  emitMatrices(
      RowsWith::OneMatrixOrNone, [&](Value matrix) { return k.sub(startOf(k.add(matrix, 1)), startOf(matrix)); },
      [&](Value matrix, Value row) {
        Value cell = k.load(k.i64Type, k.at(sorted.list, k.mul(k.add(startOf(matrix), row), 8)));
        return Cell{k.div(cell, slots), k.mul(k.rem(cell, slots), tiles)};
      });
  return success(ok);
}

} // namespace

std::pair<Value, Value> WorkShare::of(KernelBuilder &k, Value count, int64_t unit) const {
  Value units = k.ceilDiv(count, unit);
  auto edge = [&](Value index) { return k.min(k.mul(k.div(k.mul(units, index), workers), unit), count); };
  return {edge(worker), edge(k.add(worker, 1))};
}

LogicalResult llmc::cpu::emitDotTask(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule,
                                     const WorkShare &share) {
  SmallVector<Operation *> dots;
  task.task.walk([&](Operation *op) {
    if (isa<tile::DotOp, tile::ScaledDotOp>(op))
      dots.push_back(op);
  });
  Dot dot(dots.front());
  bool ownColumn = dot.matrix || dot.column == task.task.getColumn();
  if (dots.size() != 1 || dot.op->getParentOp() != task.task.getOperation() || !ownColumn)
    return task.task.emitOpError() << "holds " << dots.size()
                                   << " dots, expected one, on the task's own column and outside of tile.when";
  if (auto scaled = dyn_cast<tile::ScaledDotOp>(dot.op)) {
    auto quantize = scaled.getCodes().getDefiningOp<tile::QuantizeOp>();
    if (!quantize || quantize.getScales() != scaled.getScales())
      return dot.op->emitOpError() << "in task @" << task.task.getSymName()
                                   << " takes codes and scales that are not of one tile.quantize";
  }
  StatusOr<PackedLayout> layout = layoutOf(cast<llm::WeightType>(dot.weight.getType()));
  if (!layout.ok())
    return dot.op->emitOpError() << "in task @" << task.task.getSymName()
                                 << " reads a weight that cannot be addressed: " << layout.status().message();
  DotTask emitter(kernel, task, schedule, share, dot, *layout);
  return dot.matrix ? emitter.emitStack() : emitter.emitOneMatrix();
}
