// What makes the closures of a TileTask: a rule for each op that a task may hold. TaskArithmetic.cpp has those of arith
// and math, TaskTileOps.cpp and TaskPlaces.cpp those of tile, TaskStateOps.cpp those that keep a recurrent state.
#pragma once
#include "lib/reference/RecurrentKernels.h"
#include "lib/reference/TileTask.h"
#include "lib/weights/PackedLayout.h"

namespace llmc::reference {

inline bool isFloatLike(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return element.isF32() || element.isBF16();
}

class TaskCompiler {
public:
  explicit TaskCompiler(TileTask &task) : task(task) {}
  mlir::LogicalResult compile(mlir::Block &block, std::vector<TileTask::Instruction> &into);
  mlir::LogicalResult addSlot(mlir::Value value);

private:
  using Slot = TileTask::Slot;
  using Instruction = TileTask::Instruction;

  mlir::FailureOr<Instruction> compile(mlir::Operation &op);
  mlir::FailureOr<Instruction> compileArith(mlir::Operation &op);
  mlir::FailureOr<Instruction> compileMath(mlir::Operation &op);

  // Ops with a rule of their own; a null instruction has nothing left to do at run time.
  mlir::FailureOr<Instruction> rule(mlir::arith::ConstantOp op);
  mlir::FailureOr<Instruction> rule(mlir::arith::CmpFOp op);
  mlir::FailureOr<Instruction> rule(mlir::arith::SelectOp op);
  mlir::FailureOr<Instruction> rule(tile::LoadOp op);
  mlir::FailureOr<Instruction> rule(tile::StoreOp op);
  mlir::FailureOr<Instruction> rule(tile::LoadVectorOp op);
  mlir::FailureOr<Instruction> rule(tile::GatherOp op);
  mlir::FailureOr<Instruction> rule(tile::BatchOp op);
  mlir::FailureOr<Instruction> rule(tile::RecordOp op);
  mlir::FailureOr<Instruction> rule(tile::DotOp op);
  mlir::FailureOr<Instruction> rule(tile::QuantizeOp op);
  mlir::FailureOr<Instruction> rule(tile::ScaledDotOp op);
  mlir::FailureOr<Instruction> rule(tile::ReduceOp op);
  mlir::FailureOr<Instruction> rule(tile::SplatOp op);
  mlir::FailureOr<Instruction> rule(tile::SliceOp op);
  mlir::FailureOr<Instruction> rule(tile::ConcatOp op);
  mlir::FailureOr<Instruction> rule(tile::RepeatOp op);
  mlir::FailureOr<Instruction> rule(tile::SwapPairsOp op);
  mlir::FailureOr<Instruction> rule(tile::ChooseOp op);
  mlir::FailureOr<Instruction> rule(tile::PickOp op);
  mlir::FailureOr<Instruction> rule(tile::SinkhornOp op);
  mlir::FailureOr<Instruction> rule(tile::WhenOp op);
  mlir::FailureOr<Instruction> rule(tile::AppendOp op);
  mlir::FailureOr<Instruction> rule(tile::AttendOp op);
  mlir::FailureOr<Instruction> rule(tile::ConvolveOp op);
  mlir::FailureOr<Instruction> rule(tile::RecurOp op);
  mlir::FailureOr<Instruction> rule(tile::PoolOp op);
  mlir::FailureOr<Instruction> rule(tile::SelectPositionsOp op);

  template <typename F> Instruction unary(mlir::Operation &op, F f) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    return [=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.floats[i] = f(in.floats[i]);
      return true;
    };
  }
  template <typename F> Instruction binary(mlir::Operation &op, F f) {
    Slot a = slot(op.getOperand(0)), b = slot(op.getOperand(1)), out = slot(op.getResult(0));
    return [=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.floats[i] = f(a.floats[i], b.floats[i]);
      return true;
    };
  }
  template <typename F> Instruction integers(mlir::Operation &op, F f) {
    Slot a = slot(op.getOperand(0)), b = slot(op.getOperand(1)), out = slot(op.getResult(0));
    return [=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.integers[i] =
            static_cast<int64_t>(f(static_cast<uint64_t>(a.integers[i]), static_cast<uint64_t>(b.integers[i])));
      return true;
    };
  }
  mlir::FailureOr<Instruction> division(mlir::Operation &op, bool remainder);

  Slot slot(mlir::Value value) { return slots.at(value); }
  TaskArgument *argument(mlir::Value value) {
    return &task.arguments[mlir::cast<mlir::BlockArgument>(value).getArgNumber() - 2];
  }
  /// Layout of a packed weight; an error at `op` when it is none.
  mlir::FailureOr<PackedLayout> layout(mlir::Operation *op, llm::WeightType type);
  std::function<CacheView(int64_t)> cache(mlir::Value kv);
  /// The state of a row's sequence.
  std::function<StateView(int64_t)> recurrentState(mlir::Value state);

  TileTask &task;
  llvm::DenseMap<mlir::Value, Slot> slots;
  int64_t elements = 0;
};

} // namespace llmc::reference
