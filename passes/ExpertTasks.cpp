// The router, and products with a matrix for every expert or head: column tile c is tile c % n of slot (or head) c / n,
// n the tiles of one matrix.
#include "passes/FunctionTasks.h"

using namespace mlir;
using namespace llmc;

namespace {

// What a router's task computes with.
class Router {
public:
  Router(TaskBuilder &task, llm::RouterOp op) : task(task), op(op) {}
  struct Choice {
    Value weights, experts;
  };
  /// By scores and bias, unless experts are given.
  Choice choose(Value logits, Value bias, Value given);
  Choice mixSparsely(Value logits);
  Value finish(Value weights);

private:
  Value scores(Value logits);
  Value pick(Value from, Value places) {
    return tile::PickOp::create(task.body(), task.location(), places.getType(), from, places);
  }
  Value places(Value scores, int64_t count, int64_t groups, int64_t topGroups, int64_t groupSum) {
    auto type = RankedTensorType::get({count}, task.body().getF32Type());
    OpBuilder &b = task.body();
    return tile::ChooseOp::create(b, task.location(), type, scores, b.getI64IntegerAttr(groups),
                                  b.getI64IntegerAttr(topGroups), b.getI64IntegerAttr(groupSum));
  }
  Value where(arith::CmpFPredicate predicate, Value a, Value b, Value yes, Value no) {
    Value isTrue = arith::CmpFOp::create(task.body(), task.location(), predicate, a, b);
    return arith::SelectOp::create(task.body(), task.location(), isTrue, yes, no);
  }

  TaskBuilder &task;
  llm::RouterOp op;
};

Value Router::scores(Value logits) {
  switch (op.getScoring()) {
  case llm::Scoring::Softmax:
    return task.softmax(logits);
  case llm::Scoring::Sigmoid:
    return task.activation(llm::Activation::Sigmoid, logits);
  case llm::Scoring::SqrtSoftplus:
    return task.activation(llm::Activation::Sqrt, task.activation(llm::Activation::Softplus, logits));
  case llm::Scoring::None:
  case llm::Scoring::SparseMixer:
    break;
  }
  return logits;
}

Router::Choice Router::choose(Value logits, Value bias, Value given) {
  Value all = scores(logits), counted = bias ? task.add(all, bias) : all;
  if (given)
    return {pick(all, given), given};
  Value experts = places(counted, static_cast<int64_t>(op.getTopK()), static_cast<int64_t>(op.getGroups()),
                         static_cast<int64_t>(op.getTopGroups()), static_cast<int64_t>(op.getGroupSum()));
  return {pick(all, experts), experts};
}

// Twice the best of what is left, weighted by its part of the softmax over those that come close to it.
Router::Choice Router::mixSparsely(Value logits) {
  int64_t size = task.sizeOf(logits);
  SmallVector<float> numbers;
  for (int64_t i = 0; i < size; ++i)
    numbers.push_back(static_cast<float>(i));
  Value indices = task.constants(numbers), none = task.constant(-std::numeric_limits<double>::infinity(), size);
  Value limit = task.constant(2 * op.getJitter().convertToFloat(), size), left = logits;
  SmallVector<Value> weights, experts;
  for (int i = 0; i < 2; ++i) {
    Value top = task.splat(task.reduce(tile::Reduction::Max, left), size);
    Value magnitude = math::AbsFOp::create(task.body(), task.location(), logits);
    Value gap = task.divide(task.subtract(top, logits), task.maximum(magnitude, top));
    Value close = where(arith::CmpFPredicate::OGT, gap, limit, none, left);
    experts.push_back(places(left, 1, 1, 1, 1));
    weights.push_back(pick(task.softmax(close), experts.back()));
    left = where(arith::CmpFPredicate::OEQ, indices, task.repeat(experts.back(), size), none, left);
  }
  return {task.concat(weights), task.concat(experts)};
}

Value Router::finish(Value weights) {
  int64_t size = task.sizeOf(weights);
  if (op.getNormalize()) {
    Value sum = arith::AddFOp::create(task.body(), task.location(), task.reduce(tile::Reduction::Add, weights),
                                      task.number(op.getNormEps().convertToFloat()));
    weights = task.divide(weights, task.splat(sum, size));
  }
  double scale = op.getScale().convertToFloat();
  return scale == 1.0 ? weights : task.scale(weights, scale);
}

} // namespace

LogicalResult FunctionTasks::convertRouter(llm::RouterOp op) {
  TaskBuilder task = newTask(spaceOf(op.getWeights()), op.getLoc());
  Router router(task, op);
  Value logits = emitRow(task, op.getInput(), task.row());
  Value bias = op.getBias() ? task.loadVector(others_.at(op.getBias()), task.index(0), task.sizeOf(logits)) : Value();
  Value given = op.getChosen() ? emitRow(task, op.getChosen(), task.row()) : Value();
  Router::Choice choice =
      op.getScoring() == llm::Scoring::SparseMixer ? router.mixSparsely(logits) : router.choose(logits, bias, given);
  task.store(router.finish(choice.weights), bufferFor(op.getWeights()), task.index(0));
  task.store(choice.experts, bufferFor(op.getExperts()), task.index(0));
  task.finish(1);
  return success();
}

// The index that a router has written as a number. Any other number becomes E, of which there is no matrix and, behind
// the last one, no bias.
Value FunctionTasks::emitExpert(TaskBuilder &task, llm::ExpertLinearOp op, Value slot) {
  OpBuilder &b = task.body();
  int64_t experts = cast<llm::WeightType>(op.getWeight().getType()).getShape()[0];
  Value loaded = task.load(buffers_.at(TaskGrouping::root(op.getExperts())), task.row(), slot, 1);
  Value number = task.reduce(tile::Reduction::Max, loaded);
  Value none = task.number(static_cast<double>(experts));
  Value isIndex = arith::CmpFOp::create(b, task.location(), arith::CmpFPredicate::OGE, number, task.number(0));
  number = arith::MinNumFOp::create(b, task.location(), number, none);
  number = arith::SelectOp::create(b, task.location(), isIndex, number, none);
  Value integer = arith::FPToSIOp::create(b, task.location(), b.getI32Type(), number);
  return arith::IndexCastOp::create(b, task.location(), b.getIndexType(), integer);
}

Value FunctionTasks::emitStackedProduct(TaskBuilder &task, const ProductTask &product) {
  OpBuilder &b = task.body();
  Operation *anchor = product.anchor;
  Value input = anchor->getOperand(0), weight = others_.at(anchor->getOperand(1));
  int64_t channels = llm::channelsOf(anchor->getResult(0).getType()), depth = llm::channelsOf(input.getType());
  Value tiles = task.index(channels / product.tile);
  Value slot = arith::DivUIOp::create(b, task.location(), task.column(), tiles);
  Value tile = arith::RemUIOp::create(b, task.location(), task.column(), tiles);
  auto scaled = [&](Value index, int64_t factor) -> Value {
    return arith::MulIOp::create(b, task.location(), index, task.index(factor));
  };
  bool ownInputs = cast<RankedTensorType>(input.getType()).getRank() == 3;
  Value row = task.load(buffers_.at(TaskGrouping::root(input)), task.row(),
                        ownInputs ? scaled(slot, depth) : task.index(0), depth);
  auto experts = dyn_cast<llm::ExpertLinearOp>(anchor);
  if (!experts)
    return task.dot(row, weight, tile, slot);
  Value expert = emitExpert(task, experts, slot), dot = task.dot(row, weight, tile, expert);
  if (!experts.getBias())
    return dot;
  Value at = arith::AddIOp::create(b, task.location(), scaled(expert, channels), scaled(tile, product.tile));
  return task.add(dot, task.loadVector(others_.at(experts.getBias()), at, product.tile));
}
