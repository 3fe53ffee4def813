// Verifiers and costs of the ops in LlmExpertOps.td.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"

using namespace mlir;
using namespace llmc::llm;

//===-- verifiers
//---------------------------------------------------------------------------------------------------===//

LogicalResult RouterOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 2)) || failed(verifyRows(*this, getWeights().getType(), 2)))
    return failure();
  int64_t experts = channelsOf(getInput().getType()), chosen = static_cast<int64_t>(getTopK());
  int64_t groups = static_cast<int64_t>(getGroups()), topGroups = static_cast<int64_t>(getTopGroups());
  int64_t groupSum = static_cast<int64_t>(getGroupSum());
  if (groups < 1 || experts % groups != 0 || topGroups < 1 || topGroups > groups || groupSum < 1 ||
      groupSum > std::min<int64_t>(2, experts / groups)) // C2
    return emitOpError() << "keeps " << topGroups << " of " << groups << " groups of " << experts
                         << " experts by their " << groupSum
                         << " largest, expected groups that divide the experts and one or two largest";
  bool mixes = getScoring() == Scoring::SparseMixer;
  if (chosen < 1 || chosen > experts / groups * topGroups || (mixes && chosen != 2) ||
      channelsOf(getWeights().getType()) != chosen || getWeights().getType() != getExperts().getType()) // C1
    return emitOpError() << "chooses " << chosen << " of " << experts / groups * topGroups << " experts into "
                         << getWeights().getType();
  if (getBias() && cast<WeightType>(getBias().getType()).getShape() != ArrayRef<int64_t>{experts}) // C3
    return emitOpError() << "has a bias of " << shapeText(cast<WeightType>(getBias().getType()).getShape())
                         << ", expected " << shapeText({experts});
  if (mixes && (getBias() || groups != 1)) // C4
    return emitOpError() << "scores by sparse_mixer with " << (getBias() ? "a bias" : "no bias") << " and " << groups
                         << " groups, expected no bias and 1 group";
  if (getChosen() && (getChosen().getType() != getExperts().getType() || getBias() || groups != 1 || mixes)) // C5
    return emitOpError() << "is given experts in " << getChosen().getType() << " with "
                         << (getBias() ? "a bias" : "no bias") << " and " << groups << " groups by "
                         << stringifyScoring(getScoring()) << ", expected " << getExperts().getType() << " alone";
  return success();
}

LogicalResult ExpertLinearOp::verify() {
  if (failed(verifyRows(*this, getType(), 3)) || failed(verifyRows(*this, getExperts().getType(), 2)))
    return failure();
  auto input = cast<RankedTensorType>(getInput().getType()), result = cast<RankedTensorType>(getType());
  ArrayRef<int64_t> shape = cast<WeightType>(getWeight().getType()).getShape();
  if (shape.size() != 3 || shape[1] != channelsOf(result) || shape[2] != channelsOf(input)) // C1
    return emitOpError() << "has a weight of " << shapeText(shape) << ", expected [E, " << channelsOf(result) << ", "
                         << channelsOf(input) << "]";
  int64_t slots = channelsOf(getExperts().getType());
  if (result.getDimSize(1) != slots || (input.getRank() == 3 && input.getDimSize(1) != slots)) // C2
    return emitOpError() << "makes " << result << " of " << input << " for " << slots << " experts a row";
  if (getBias() && cast<WeightType>(getBias().getType()).getShape() != shape.drop_back()) // C3
    return emitOpError() << "has a bias of " << shapeText(cast<WeightType>(getBias().getType()).getShape())
                         << ", expected " << shapeText(shape.drop_back());
  return success();
}

LogicalResult HeadLinearOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 3)) || failed(verifyRows(*this, getType(), 3)))
    return failure();
  auto input = cast<RankedTensorType>(getInput().getType()), result = cast<RankedTensorType>(getType());
  SmallVector<int64_t> expected = {input.getDimSize(1), channelsOf(result), channelsOf(input)};
  ArrayRef<int64_t> shape = cast<WeightType>(getWeight().getType()).getShape();
  if (shape != ArrayRef<int64_t>(expected)) // C1
    return emitOpError() << "has a weight of " << shapeText(shape) << ", expected " << shapeText(expected);
  if (result.getDimSize(1) != input.getDimSize(1))
    return emitOpError() << "makes " << result << " of " << input << ", expected as many heads";
  return success();
}

LogicalResult CombineOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 3)) || failed(verifyRows(*this, getType(), 2)) ||
      failed(verifyRows(*this, getWeights().getType(), 2)))
    return failure();
  auto input = cast<RankedTensorType>(getInput().getType());
  if (input.getDimSize(1) != channelsOf(getWeights().getType()) || channelsOf(input) != channelsOf(getType())) // C1
    return emitOpError() << "sums " << input << " by " << getWeights().getType() << " into " << getType();
  return success();
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

namespace {
// A score and its place in the choice.
constexpr int64_t routerFlops = 12;

int64_t matrixFlops(Value weight) {
  ArrayRef<int64_t> shape = cast<WeightType>(weight.getType()).getShape();
  return 2 * shape[1] * shape[2];
}
} // namespace

int64_t RouterOp::flops(int64_t rows, int64_t) { return routerFlops * rows * channelsOf(getInput().getType()); }
int64_t RouterOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t ExpertLinearOp::flops(int64_t rows, int64_t) {
  return rows * channelsOf(getExperts().getType()) * matrixFlops(getWeight());
}
// The experts of as many rows, each read once: at most all of them.
int64_t ExpertLinearOp::bytes(int64_t rows, int64_t) {
  auto weight = cast<WeightType>(getWeight().getType());
  int64_t experts = weight.getShape()[0], read = std::min(experts, rows * channelsOf(getExperts().getType()));
  return operandBytes(*this, rows) - weightBytes(getWeight()) - weightBytes(getBias()) +
         (weightBytes(getWeight()) + weightBytes(getBias())) / experts * read;
}
int64_t HeadLinearOp::flops(int64_t rows, int64_t) {
  return rows * cast<WeightType>(getWeight().getType()).getShape()[0] * matrixFlops(getWeight());
}
int64_t HeadLinearOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t CombineOp::flops(int64_t rows, int64_t) { return 2 * rows * elementsPerRow(getInput().getType()); }
int64_t CombineOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
