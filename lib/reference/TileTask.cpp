// Tasks that run, and the walk over a body that compiles them.
#include "lib/reference/TileTask.h"
#include "lib/reference/TaskCompiler.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

namespace {
constexpr int64_t maxTaskElements = int64_t(1) << 28;
} // namespace

FailureOr<std::unique_ptr<TileTask>> TileTask::compile(tile::TaskOp op) {
  auto task = std::make_unique<TileTask>();
  task->op = op;
  task->arguments.resize(op.getOperandArguments().size()); // never resized again: instructions point into it
  TaskCompiler compiler(*task);
  if (failed(compiler.compile(op.getBody().front(), task->body)))
    return failure();
  return task;
}

LogicalResult TileTask::run(std::vector<TaskArgument> launched, const StepMemory &stepMemory) {
  std::ranges::copy(launched, arguments.begin());
  memory = stepMemory;
  const int64_t numRows = op.getSpace() == tile::Space::Rows ? memory.batch->num_tokens : memory.batch->num_logit_rows;
  for (*column.integers = 0; *column.integers < static_cast<int64_t>(op.getColumns()); ++*column.integers)
    for (*row.integers = 0; *row.integers < numRows; ++*row.integers)
      for (const Instruction &instruction : body)
        if (!instruction())
          return failure();
  return success();
}

LogicalResult TaskCompiler::addSlot(Value value) {
  Type type = value.getType();
  if (isa<tile::RowsType, llm::WeightType, llm::KvType, llm::RecurrentType, llm::BatchType>(type))
    return success();
  Slot slot;
  slot.size = 1;
  if (isa<ShapedType>(type)) {
    if (!tile::isTileType(type))
      return emitError(value.getLoc()) << "a task makes a value of type " << type << ", expected tiles and scalars";
    slot.size = cast<RankedTensorType>(type).getDimSize(0);
  }
  elements += slot.size;
  if (elements > maxTaskElements)
    return emitError(value.getLoc()) << "a task holds more than " << maxTaskElements << " elements";
  Type element = getElementTypeOrSelf(type);
  if (isFloatLike(type)) {
    slot.floats = task.floats.emplace_back(static_cast<size_t>(slot.size)).data();
  } else if (element.isSignlessInteger(16) || element.isSignlessInteger(8)) {
    slot.codes = task.codes.emplace_back(static_cast<size_t>(slot.size)).data();
  } else if (element.isIndex() || element.isSignlessInteger(1) || element.isSignlessInteger(32) ||
             element.isSignlessInteger(64)) {
    slot.integers = task.integers.emplace_back(static_cast<size_t>(slot.size)).data();
  } else {
    return emitError(value.getLoc()) << "a task makes a value of type " << type
                                     << ", expected f32, bf16, i8, i16, i32, i64, i1 or index elements";
  }
  slots[value] = slot;
  return success();
}

LogicalResult TaskCompiler::compile(Block &block, std::vector<Instruction> &into) {
  for (BlockArgument argument : block.getArguments())
    if (failed(addSlot(argument)))
      return failure();
  if (isa<tile::TaskOp>(block.getParentOp())) {
    task.row = slot(block.getArgument(0));
    task.column = slot(block.getArgument(1));
  }
  for (Operation &op : block) {
    for (Value result : op.getResults())
      if (failed(addSlot(result)))
        return failure();
    FailureOr<Instruction> instruction = compile(op);
    if (failed(instruction))
      return failure();
    if (*instruction)
      into.push_back(std::move(*instruction));
  }
  return success();
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::compile(Operation &op) {
  if (isa_and_nonnull<arith::ArithDialect>(op.getDialect()) &&
      !isa<arith::ConstantOp, arith::CmpFOp, arith::SelectOp>(op))
    return compileArith(op);
  if (isa_and_nonnull<math::MathDialect>(op.getDialect()))
    return compileMath(op);
  return llvm::TypeSwitch<Operation *, FailureOr<Instruction>>(&op)
      .Case<arith::ConstantOp, arith::CmpFOp, arith::SelectOp, tile::LoadOp, tile::StoreOp, tile::LoadVectorOp,
            tile::GatherOp, tile::BatchOp, tile::RecordOp, tile::DotOp, tile::QuantizeOp, tile::ScaledDotOp,
            tile::ReduceOp, tile::SplatOp, tile::SliceOp, tile::ConcatOp, tile::RepeatOp, tile::SwapPairsOp,
            tile::ChooseOp, tile::PickOp, tile::SinkhornOp, tile::WhenOp, tile::AppendOp, tile::AttendOp,
            tile::SelectPositionsOp, tile::ConvolveOp, tile::RecurOp, tile::PoolOp>(
          [&](auto known) { return rule(known); })
      .Default([](Operation *unknown) -> FailureOr<Instruction> {
        return unknown->emitOpError() << "has no reference implementation in a task";
      });
}
