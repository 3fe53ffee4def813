// Buffers, calls and returns of a function, and which group of ops an op belongs to.
#include "passes/FunctionTasks.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;

Value FunctionTasks::bufferFor(Value value) {
  Value &buffer = buffers_[value];
  if (!buffer)
    buffer = tile::AllocOp::create(launches_, value.getLoc(), rowsType(value.getType()), IntegerAttr());
  return buffer;
}

LogicalResult FunctionTasks::convertRecord(llm::RecordOp op) {
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value row = emitRow(task, op.getValue(), task.row());
  tile::RecordOp::create(task.body(), task.location(), row, task.argument(others_.at(op.getBatch())), task.row(),
                         op.getIndexAttr());
  task.finish(1, /*recording=*/true);
  return success();
}

LogicalResult FunctionTasks::convertCall(func::CallOp op) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType()) ? buffers_.at(TaskGrouping::root(operand))
                                                                : others_.at(operand));
  for (Value result : op.getResults())
    operands.push_back(bufferFor(result));
  func::CallOp::create(launches_, op.getLoc(), op.getCallee(), TypeRange(), operands);
  return success();
}

LogicalResult FunctionTasks::convertReturn(func::ReturnOp op) {
  func::ReturnOp::create(launches_, op.getLoc());
  return success();
}

void FunctionTasks::convertUse(Operation *use) {
  if (!others_.contains(use->getResult(0)))
    others_[use->getResult(0)] = launches_.clone(*use)->getResult(0);
}

LogicalResult FunctionTasks::convertOp(Operation &op) {
  if (const ProductTask *product = grouping_.productOf(&op)) {
    // What is absorbed stands behind the product, and so may the weights that only it reads.
    for (Operation *absorbed : product->absorbed)
      for (Value operand : absorbed->getOperands())
        if (auto use = operand.getDefiningOp<llm::UseWeightOp>())
          convertUse(use);
    return convertProduct(*product);
  }
  if (auto append = dyn_cast<llm::KvAppendOp>(op)) {
    // Attention reads the same pages, grown.
    Value pages = others_.at(append.getKv()); // a copy: the map moves its entries when it grows
    others_[append.getResult()] = pages;
    return grouping_.isAbsorbed(&op) ? success() : convertAppend(append);
  }
  if (grouping_.isAbsorbed(&op) || isa<llm::SplitHeadsOp, llm::MergeHeadsOp>(op))
    return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<llm::UseWeightOp, llm::UseStateOp>([&](auto) {
        convertUse(&op);
        return success();
      })
      .Case([&](llm::AttentionOp attention) { return convertAttention(attention); })
      .Case([&](llm::LinearAttentionOp attention) { return convertLinearAttention(attention); })
      .Case([&](llm::ShortConvOp convolution) { return convertShortConv(convolution); })
      .Case([&](llm::WindowPoolOp pool) { return convertWindowPool(pool); })
      .Case([&](llm::RouterOp router) { return convertRouter(router); })
      .Case([&](llm::SelectPositionsOp select) { return convertSelectPositions(select); })
      .Case([&](llm::RecordOp record) { return convertRecord(record); })
      .Case<shard::AllReduceOp, llm::AllGatherOp, llm::SendOp, llm::ReceiveOp>(
          [&](auto) { return convertCollective(op); })
      .Case([&](func::CallOp call) { return convertCall(call); })
      .Case([&](func::ReturnOp ret) { return convertReturn(ret); })
      .Case<llm::ActivationOp, llm::AddOp, llm::AffineOp, llm::ClampOp, llm::CombineOp, llm::ConcatOp, llm::EmbeddingOp,
            llm::FillOp, llm::GatedActivationOp, llm::LayerNormOp, llm::MultiplyOp, llm::PositionEmbeddingOp, llm::PositionScaleOp,
            llm::RepeatHeadsOp, llm::RmsNormOp, llm::RopeOp, llm::RopeTableOp, llm::ScaleOp, llm::SelectRowsOp,
            llm::SinkhornOp, llm::SliceOp, llm::SoftcapOp, llm::SoftmaxOp, llm::XieluOp>(
          [&](auto) { return convertRowOp(op); })
      .Default([](Operation *other) -> LogicalResult { return other->emitOpError() << "has no tile form"; });
}

LogicalResult FunctionTasks::convert() {
  Block &body = old_.getBody().front();
  SmallVector<Type> inputs;
  for (BlockArgument argument : body.getArguments())
    inputs.push_back(isa<RankedTensorType>(argument.getType()) ? Type(rowsType(argument.getType()))
                                                               : argument.getType());
  auto returned = body.getTerminator()->getOperands();
  if (!isStep_)
    for (Value value : returned)
      inputs.push_back(rowsType(value.getType()));
  OpBuilder builder(old_);
  builder.setInsertionPointAfter(old_);
  new_ = func::FuncOp::create(builder, old_.getLoc(), old_.getSymName(), builder.getFunctionType(inputs, {}));
  new_.setVisibility(old_.getVisibility());
  Block *newBody = new_.addEntryBlock();
  launches_.setInsertionPointToEnd(newBody);
  for (auto [argument, replacement] : llvm::zip(body.getArguments(), newBody->getArguments()))
    (isa<RankedTensorType>(argument.getType()) ? buffers_ : others_)[argument] = replacement;
  for (auto [index, value] : llvm::enumerate(returned)) {
    Value root = TaskGrouping::root(value);
    if (buffers_.contains(root) || (isStep_ && index > 0))
      return body.getTerminator()->emitOpError() << "returns an operand, or one value twice; llm.scale makes a copy";
    if (isStep_)
      buffers_[root] = tile::LogitsOp::create(launches_, value.getLoc(), rowsType(value.getType()));
    else
      buffers_[root] = newBody->getArgument(body.getNumArguments() + static_cast<unsigned>(index));
  }
  for (Operation &op : body)
    if (failed(convertOp(op)))
      return failure();
  old_.erase();
  return success();
}
