// What ranks exchange goes from buffer to buffer between tasks; and over which rows values are, where no operand says
// so.
#include "passes/FunctionTasks.h"

using namespace mlir;
using namespace llmc;

LogicalResult FunctionTasks::convertCollective(Operation &op) {
  auto input = [&](Value value) { return value ? buffers_.at(TaskGrouping::root(value)) : Value(); };
  OpBuilder &b = launches_;
  Location location = op.getLoc();
  const Type started; // none: done when the op is
  if (auto reduce = dyn_cast<shard::AllReduceOp>(op)) {
    // A term that nobody else reads makes room for the sum.
    Value term = reduce.getInput(), buffer = input(term);
    if (TaskGrouping::root(term) == term && term.hasOneUse() && buffer.getDefiningOp<tile::AllocOp>())
      buffers_.try_emplace(reduce.getResult(), buffer);
    tile::AllReduceOp::create(b, location, started, spaceOf(reduce.getResult()), buffer, bufferFor(reduce.getResult()));
  } else if (auto gather = dyn_cast<llm::AllGatherOp>(op)) {
    tile::AllGatherOp::create(b, location, started, spaceOf(gather), input(gather.getInput()), bufferFor(gather),
                              gather.getSegments());
  } else if (auto send = dyn_cast<llm::SendOp>(op)) {
    tile::SendOp::create(b, location, started, spaceOf(send.getValue()), input(send.getValue()), send.getStage());
  } else {
    auto receive = cast<llm::ReceiveOp>(op);
    tile::ReceiveOp::create(b, location, started, spaceOf(receive), bufferFor(receive), receive.getStage());
  }
  return success();
}

tile::Space FunctionTasks::spaceOf(Value value) {
  std::optional<tile::Space> space = spaceFromOperands(value);
  return space ? *space : spaceFromUsers(value).value_or(tile::Space::Rows);
}

// Ops keep rows as they are, but for one. Nothing where `value` begins with what may be rows of either kind.
std::optional<tile::Space> FunctionTasks::spaceFromOperands(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return tile::Space::Rows;
  if (isa<llm::SelectRowsOp>(op))
    return tile::Space::LogitRows;
  if (isa<func::CallOp>(op))
    return tile::Space::Rows;
  bool begins = true;
  for (Value operand : op->getOperands()) {
    if (!llm::isRows(operand))
      continue;
    begins = false;
    if (std::optional<tile::Space> space = spaceFromOperands(operand))
      return space;
  }
  bool isEither = isa<llm::FillOp, llm::ReceiveOp, llm::AllGatherOp>(op) || !begins;
  return isEither ? std::nullopt : std::optional(tile::Space::Rows);
}

std::optional<tile::Space> FunctionTasks::spaceFromUsers(Value value) {
  for (Operation *user : value.getUsers()) {
    if (isa<func::ReturnOp>(user))
      return isStep_ ? tile::Space::LogitRows : tile::Space::Rows;
    if (isa<llm::SelectRowsOp, func::CallOp>(user))
      return tile::Space::Rows;
    for (Value operand : user->getOperands())
      if (llm::isRows(operand))
        if (std::optional<tile::Space> space = spaceFromOperands(operand))
          return space;
    for (Value result : user->getResults())
      if (llm::isRows(result))
        if (std::optional<tile::Space> space = spaceFromUsers(result))
          return space;
  }
  return std::nullopt;
}
