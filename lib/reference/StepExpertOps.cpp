// The llm interpreter's rules for the ops of LlmExpertOps.td.
#include "dialects/llm/LlmShapes.h"
#include "lib/reference/ExpertFormulas.h"
#include "lib/reference/LlmStep.h"

using namespace mlir;
using namespace llmc::llm;
using namespace llmc::reference;

LogicalResult LlmStep::evaluate(RouterOp op, Frame &frame) {
  FailureOr<Tensor> bias = optionalWeight(frame, op.getBias());
  if (failed(bias))
    return failure();
  const Matrix &input = tensor(frame, op.getInput());
  const RouterShape shape{op.getScoring(),
                          static_cast<int64_t>(op.getTopK()),
                          static_cast<int64_t>(op.getGroups()),
                          static_cast<int64_t>(op.getTopGroups()),
                          static_cast<int64_t>(op.getGroupSum()),
                          op.getNormalize(),
                          op.getNormEps().convertToFloat(),
                          op.getScale().convertToFloat(),
                          op.getJitter().convertToFloat()};
  Matrix weights(input.rows, shape.topK), experts(input.rows, shape.topK);
  for (int64_t t = 0; t < input.rows; ++t) {
    std::span<const float> given;
    if (op.getChosen())
      given = tensor(frame, op.getChosen()).row(t);
    for (float expert : given)
      if (!(expert >= 0 && expert < static_cast<float>(input.columns)))
        return op.emitOpError() << "is given expert " << expert << " of " << input.columns;
    routeRow(input.row(t), *bias ? (*bias)->row(0) : std::span<const float>(), shape, weights.row(t), experts.row(t),
             given);
  }
  set(frame, op.getWeights(), std::move(weights));
  set(frame, op.getExperts(), std::move(experts));
  return success();
}

LogicalResult LlmStep::evaluate(ExpertLinearOp op, Frame &frame) {
  FailureOr<Tensor> matrices = weight(frame, op.getWeight()), bias = optionalWeight(frame, op.getBias());
  if (failed(matrices) || failed(bias))
    return failure();
  const Matrix &input = tensor(frame, op.getInput()), &experts = tensor(frame, op.getExperts());
  const int64_t outputs = channelsOf(op.getType()), depth = (*matrices)->columns;
  const int64_t numExperts = (*matrices)->rows / outputs;
  Matrix result(input.rows, experts.columns * outputs);
  for (int64_t t = 0; t < input.rows; ++t)
    for (int64_t slot = 0; slot < experts.columns; ++slot) {
      const float named = experts.row(t)[static_cast<size_t>(slot)];
      if (!(named >= 0 && named < static_cast<float>(numExperts)))
        continue; // zeros
      const int64_t expert = static_cast<int64_t>(named), at = input.columns == depth ? 0 : slot * depth;
      linearRow(input.row(t).subspan(static_cast<size_t>(at), static_cast<size_t>(depth)), **matrices, expert * outputs,
                *bias ? (*bias)->row(expert) : std::span<const float>(),
                result.row(t).subspan(static_cast<size_t>(slot * outputs), static_cast<size_t>(outputs)));
    }
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(HeadLinearOp op, Frame &frame) {
  FailureOr<Tensor> matrices = weight(frame, op.getWeight());
  if (failed(matrices))
    return failure();
  const Matrix &input = tensor(frame, op.getInput());
  const size_t outputs = static_cast<size_t>(channelsOf(op.getType())),
               depth = static_cast<size_t>((*matrices)->columns);
  Matrix result(input.rows, elementsPerRow(op.getType()));
  for (int64_t t = 0; t < input.rows; ++t)
    for (size_t head = 0; head * depth < static_cast<size_t>(input.columns); ++head)
      linearRow(input.row(t).subspan(head * depth, depth), **matrices, static_cast<int64_t>(head * outputs), {},
                result.row(t).subspan(head * outputs, outputs));
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(CombineOp op, Frame &frame) {
  set(frame, op, combine(tensor(frame, op.getInput()), tensor(frame, op.getWeights())));
  return success();
}
