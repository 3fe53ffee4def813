// The shapes of a task: plain rows and a dot with what comes before and after it are here.
#include "lib/codegen/cpu/TaskEmitter.h"
#include "lib/codegen/cpu/AttendTask.h"
#include "lib/codegen/cpu/CompileUnits.h"
#include "lib/codegen/cpu/DotKernels.h"
#include "lib/codegen/cpu/MatrixTiles.h"
#include "lib/codegen/cpu/RecurrentTask.h"
#include "runtime/llmc_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

class TaskEmitter {
public:
  TaskEmitter(KernelBuilder &kernel, TaskContext &task, const Schedule &schedule)
      : k(kernel), task(task), schedule(schedule) {}
  LogicalResult emit();

private:
  LogicalResult emitRows();
  LogicalResult emitDot();
  void storeInput(Value row, Value to, Operation *dot, const PackedLayout &weight);
  void emitFewRows(const PackedLayout &weight, Value rows, RowArray input, Value tile, RowArray result);
  void emitRowBlock(Operation *dot, const PackedLayout &weight, RowArray input, Value weights, Value firstRow,
                    Value rows, Value fromColumn, Value toColumn);

  // Rows that buffers of a row block hold: whole groups of matrix tiles.
  int64_t blockRows() const {
    int64_t group = schedule.tileRows ? kPairRows : 1;
    return (schedule.rowBlock + group - 1) / group * group;
  }
  // This worker's part of 0 .. count - 1, in whole units.
  std::pair<Value, Value> shareOf(Value count, int64_t unit);

  KernelBuilder &k;
  TaskContext &task;
  Schedule schedule;
  Value rowCount, worker, workers;
  bool ok = true;
};

int64_t columnsOf(TaskContext &task) { return static_cast<int64_t>(task.task.getColumns()); }

std::pair<Value, Value> TaskEmitter::shareOf(Value count, int64_t unit) {
  Value units = k.ceilDiv(count, unit);
  auto edge = [&](Value index) { return k.min(k.mul(k.div(k.mul(units, index), workers), unit), count); };
  return {edge(worker), edge(k.add(worker, 1))};
}

LogicalResult TaskEmitter::emit() {
  int64_t field = task.task.getSpace() == tile::Space::Rows ? offsetof(llmc_batch, num_tokens)
                                                            : offsetof(llmc_batch, num_logit_rows);
  rowCount = k.loadInt(task.batch, field);
  worker = k.loadInt(task.context, offsetof(llmc_step_context, worker));
  workers = k.loadInt(task.context, offsetof(llmc_step_context, num_workers));
  switch (schedule.shape) {
  case TaskShape::Rows:
    return emitRows();
  case TaskShape::Dot:
  case TaskShape::QuantizedDot:
    return emitDot();
  case TaskShape::Attend:
    return emitAttendTask(k, task, schedule);
  case TaskShape::Recurrent:
    return emitRecurrentTask(k, task);
  }
  return failure();
}

LogicalResult TaskEmitter::emitRows() {
  int64_t columns = columnsOf(task);
  auto [from, to] = shareOf(k.mul(rowCount, columns), 1);
  k.loop(from, to, 1, [&](Value cell) {
    RowProgram program(k, task, k.div(cell, columns), k.rem(cell, columns));
    ok &= succeeded(program.emitBlock(task.task.getBody().front()));
  });
  return success(ok);
}

// The row's input in the form that the kernels read.
void TaskEmitter::storeInput(Value row, Value to, Operation *dot, const PackedLayout &weight) {
  RowProgram program(k, task, row, {});
  if (auto plain = dyn_cast<tile::DotOp>(dot)) {
    DotInputLayout layout = dotInputLayout(k, weight);
    program.evaluateInto(plain.getInput(), to, layout.element, layout.paddedDepth);
  } else {
    auto scaled = cast<tile::ScaledDotOp>(dot);
    QuantizedInputLayout layout = quantizedInputLayout(k, weight);
    program.quantizeInto(scaled.getCodes().getDefiningOp<tile::QuantizeOp>(),
                         {to, k.at(to, layout.lowAt), k.at(to, layout.scalesAt), k.at(to, layout.startAt),
                          k.at(to, layout.sumsAt), layout.zeroPoint});
  }
  ok &= !program.failed();
}

// Up to kernelRows rows, by a kernel for exactly so many.
void TaskEmitter::emitFewRows(const PackedLayout &weight, Value rows, RowArray input, Value tile, RowArray result) {
  for (int64_t size = 1; size <= schedule.kernelRows; ++size)
    k.when(k.equal(rows, k.i64(size)), [&] {
      if (weight.isQuantized())
        emitQuantizedDotTile(k, weight, size, input, tile, result);
      else
        emitDotTile(k, weight, size, input, tile, result);
    });
}

void TaskEmitter::emitRowBlock(Operation *dot, const PackedLayout &weight, RowArray input, Value weights,
                               Value firstRow, Value rows, Value fromColumn, Value toColumn) {
  k.loop(k.i64(0), rows, 1, [&](Value row) {
    storeInput(k.add(firstRow, row), k.at(input.pointer, k.mul(row, input.strideBytes)), dot, weight);
  });
  // Tiles write all rows of the block before anything follows.
  RowArray result;
  result.strideBytes = vectorsOf(weight) * 64;
  result.pointer = k.allocate((schedule.tileRows ? blockRows() : schedule.kernelRows) * result.strideBytes + 64);
  auto rowsFrom = [&](RowArray array, Value first) {
    return RowArray{k.at(array.pointer, k.mul(first, array.strideBytes)), array.strideBytes};
  };
  auto finish = [&](Value column, Value first, Value count) {
    k.loop(k.i64(0), count, 1, [&](Value row) {
      RowProgram program(k, task, k.add(k.add(firstRow, first), row), column);
      program.bindMemory(dot->getResult(0), rowsFrom(result, row).pointer);
      ok &= succeeded(program.emitBlock(task.task.getBody().front()));
    });
  };
  auto rowGroups = [&](llvm::function_ref<void(Value, Value)> body) {
    k.loop(k.i64(0), rows, schedule.kernelRows,
           [&](Value first) { body(first, k.min(k.sub(rows, first), k.i64(schedule.kernelRows))); });
  };
  bool pairTiles = usesPairTiles(k, weight);
  if (pairTiles)
    beginPairTiles(k, k.min(rows, k.i64(kTileRows)));
  // Column tiles outermost: a tile of the weight is read from memory once and then stays in cache for all rows.
  k.loop(fromColumn, toColumn, 1, [&](Value column) {
    Value tile = k.at(weights, k.mul(column, tileBytesOf(weight)));
    if (!schedule.tileRows)
      return rowGroups([&](Value first, Value count) {
        emitFewRows(weight, count, rowsFrom(input, first), tile, result);
        finish(column, first, count);
      });
    if (pairTiles) {
      emitTiledPairDot(k, weight, rows, input, tile, result);
    } else {
      int64_t few = schedule.tileRows / 2;
      k.when(k.less(k.i64(few), rows), [&] { emitTiledQuantizedDot(k, weight, rows, input, tile, result); });
      k.when(k.less(rows, k.i64(few + 1)), [&] {
        rowGroups([&](Value first, Value count) {
          emitFewRows(weight, count, rowsFrom(input, first), tile, rowsFrom(result, first));
        });
      });
    }
    finish(column, k.i64(0), rows);
  });
  if (pairTiles)
    endTiles(k);
}

LogicalResult TaskEmitter::emitDot() {
  SmallVector<Operation *> dots;
  task.task.walk([&](Operation *op) {
    if (isa<tile::DotOp, tile::ScaledDotOp>(op))
      dots.push_back(op);
  });
  Operation *dot = dots.front();
  Value weightValue, column;
  if (auto plain = dyn_cast<tile::DotOp>(dot)) {
    weightValue = plain.getWeight();
    column = plain.getColumn();
  } else {
    auto scaled = cast<tile::ScaledDotOp>(dot);
    weightValue = scaled.getWeight();
    column = scaled.getColumn();
    auto quantize = scaled.getCodes().getDefiningOp<tile::QuantizeOp>();
    if (!quantize || quantize.getScales() != scaled.getScales())
      return dot->emitOpError() << "in task @" << task.task.getSymName()
                                << " takes codes and scales that are not of one tile.quantize";
  }
  if (dots.size() != 1 || dot->getParentOp() != task.task.getOperation() || column != task.task.getColumn())
    return task.task.emitOpError() << "holds " << dots.size()
                                   << " dots, expected one, on the task's own column and outside of tile.when";
  StatusOr<PackedLayout> layout = layoutOf(cast<llm::WeightType>(weightValue.getType()));
  if (!layout.ok())
    return dot->emitOpError() << "in task @" << task.task.getSymName()
                              << " reads a weight that cannot be addressed: " << layout.status().message();
  const PackedLayout &weight = *layout;
  if (columnsOf(task) > weight.numTiles())
    return task.task.emitOpError() << "has " << columnsOf(task) << " column tiles over " << weightValue.getType()
                                   << ", which has " << weight.numTiles();

  RowArray input;
  input.strideBytes =
      weight.isQuantized() ? quantizedInputLayout(k, weight).strideBytes : dotInputLayout(k, weight).strideBytes;
  input.pointer = k.allocate(blockRows() * input.strideBytes);
  // With rows for everybody each worker takes its own; else all rows are prepared by every worker, which costs less
  // than a barrier, and the column tiles are shared out.
  Value byRows = k.less(k.add(workers, -1), k.div(rowCount, schedule.rowBlock));
  auto [fromRow, toRow] = shareOf(rowCount, std::max(schedule.kernelRows, schedule.tileRows));
  auto [fromColumn, toColumn] = shareOf(k.i64(columnsOf(task)), 1);
  fromRow = k.select(byRows, fromRow, k.i64(0));
  toRow = k.select(byRows, toRow, rowCount);
  fromColumn = k.select(byRows, k.i64(0), fromColumn);
  toColumn = k.select(byRows, k.i64(columnsOf(task)), toColumn);
  k.when(k.less(fromColumn, toColumn), [&] {
    k.loop(fromRow, toRow, schedule.rowBlock, [&](Value firstRow) {
      Value rows = k.min(k.sub(toRow, firstRow), k.i64(schedule.rowBlock));
      emitRowBlock(dot, weight, input, task.operands.lookup(weightValue), firstRow, rows, fromColumn, toColumn);
    });
  });
  return success(ok);
}

} // namespace

std::string llmc::cpu::taskSymbol(StringRef task) { return "llmc_task." + task.str(); }

FailureOr<int64_t> llmc::cpu::emitTask(tile::TaskOp task, const Schedule &schedule, const TaskOptions &options,
                                       ModuleOp module) {
  TaskContext context;
  context.task = task;
  context.plan = options.plan;
  if (failed(analyzeBody(context)))
    return failure();

  ImplicitLocOpBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  size_t operandCount = task.getOperandArguments().size();
  SmallVector<Type> inputs(1 + operandCount, pointer);
  if (firstRecordOf(task))
    inputs.push_back(b.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), inputs);
  auto function = LLVM::LLVMFuncOp::create(b, kernelSymbol, type);
  function.setVisibility_(LLVM::Visibility::Hidden);
  b.setInsertionPointToEnd(function.addEntryBlock(b));

  KernelBuilder kernel(b, function, options.target, options.emulate);
  context.context = function.getArgument(0);
  context.batch = kernel.load(pointer, context.context, offsetof(llmc_step_context, batch));
  kernel.setScratch(kernel.load(pointer, context.context, offsetof(llmc_step_context, scratch)));
  for (auto [index, argument] : llvm::enumerate(task.getOperandArguments())) {
    context.operands[argument] = function.getArgument(1 + index);
    if (auto rows = dyn_cast<tile::RowsType>(argument.getType()))
      context.rowStride[argument] = options.isLogits[index] ? rows.getChannels() : rows.stride();
  }
  if (firstRecordOf(task))
    context.firstRecord = function.getArguments().back();
  LogicalResult result = TaskEmitter(kernel, context, schedule).emit();
  LLVM::ReturnOp::create(b, ValueRange{});
  if (failed(result))
    return failure();
  return kernel.scratchBytes();
}
