// Verifiers and costs of the ops in LlmRowOps.td.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"

using namespace mlir;
using namespace llmc::llm;

//===-- verifiers
//---------------------------------------------------------------------------------------------------===//

LogicalResult LayerNormOp::verify() {
  if (failed(verifyVector(*this, "weight", getWeight(), getType())) || // C1
      failed(verifyVector(*this, "bias", getBias(), getType())))
    return failure();
  if (getBias() && !getWeight()) // C3
    return emitOpError() << "has a bias without a weight";
  return verifyEps(*this, getEps()); // C2
}

LogicalResult XieluOp::verify() {
  ArrayRef<int64_t> shape = cast<WeightType>(getWeight().getType()).getShape();
  if (shape != ArrayRef<int64_t>{2}) // C1
    return emitOpError() << "has a weight of " << shapeText(shape) << ", expected [2]";
  return success();
}

LogicalResult MultiplyOp::verify() {
  auto lhs = cast<RankedTensorType>(getLhs().getType()), rhs = cast<RankedTensorType>(getRhs().getType());
  int64_t heads = lhs.getRank() == 3 ? lhs.getDimSize(1) : 1;
  bool perHead = elementsPerRow(rhs) == heads && (rhs.getRank() == 2 || rhs.getDimSize(1) == heads);
  bool perRow = rhs.getRank() == 2 && rhs.getDimSize(1) == 1;
  if (lhs != rhs && !perHead && !perRow) // C1
    return emitOpError() << "multiplies " << lhs << " by " << rhs
                         << ", expected the same type or one number per head or row";
  return success();
}

LogicalResult AffineOp::verify() {
  if (!getWeight() && !getBias()) // C1
    return emitOpError() << "has neither weight nor bias";
  auto type = cast<RankedTensorType>(getType());
  if (getPerHead() && type.getRank() != 3) // C3
    return emitOpError() << "is per head, but " << type << " has no heads";
  for (Value value : {getWeight(), getBias()}) {
    if (!value)
      continue;
    ArrayRef<int64_t> shape = cast<WeightType>(value.getType()).getShape();
    bool fits = shape.size() == 1 &&
                (shape[0] == 1 || (getPerHead() ? shape[0] == type.getDimSize(1)
                                                : shape[0] == channelsOf(type) || shape[0] == elementsPerRow(type)));
    if (!fits) // C2
      return emitOpError() << "has a weight or bias of " << shapeText(shape) << " for " << type
                           << (getPerHead() ? ", expected a number per head" : ", expected a number per channel");
  }
  return success();
}

LogicalResult ClampOp::verify() {
  if (!(getLow() <= getHigh())) // C1
    return emitOpError() << "has bounds " << getLow().convertToFloat() << " and " << getHigh().convertToFloat()
                         << ", expected low <= high";
  return success();
}

LogicalResult SinkhornOp::verify() {
  if (failed(verifyRows(*this, getType(), 3)))
    return failure();
  if (cast<RankedTensorType>(getType()).getDimSize(1) != channelsOf(getType())) // C1
    return emitOpError() << "takes " << getType() << ", expected a square matrix for every row";
  if (static_cast<int64_t>(getIterations()) < 1) // C2
    return emitOpError() << "has " << static_cast<int64_t>(getIterations()) << " iterations, expected at least 1";
  return verifyEps(*this, getEps()); // C3
}

LogicalResult SliceOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType()), to = cast<RankedTensorType>(getType());
  int64_t begin = static_cast<int64_t>(getBegin());
  if (from.getRank() != to.getRank() || from.getShape().drop_back() != to.getShape().drop_back() || begin < 0 ||
      begin > channelsOf(from) - channelsOf(to)) // C1
    return emitOpError() << "takes " << to << " at " << begin << " of " << from;
  return success();
}

LogicalResult ConcatOp::verify() {
  auto to = cast<RankedTensorType>(getType());
  int64_t channels = 0;
  for (Type type : getInputs().getTypes()) {
    if (cast<RankedTensorType>(type).getShape().drop_back() != to.getShape().drop_back()) // C1
      return emitOpError() << "puts " << type << " into " << to << ", expected the same rows and heads";
    channels += channelsOf(type);
  }
  if (channels != channelsOf(to))
    return emitOpError() << "has inputs of " << channels << " channels, but a result of " << channelsOf(to);
  return success();
}

LogicalResult RepeatHeadsOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 3)) || failed(verifyRows(*this, getType(), 3)))
    return failure();
  auto from = cast<RankedTensorType>(getInput().getType()), to = cast<RankedTensorType>(getType());
  int64_t times = static_cast<int64_t>(getTimes());
  if (times < 1 || to.getDimSize(1) % times != 0 || to.getDimSize(1) / times != from.getDimSize(1) ||
      channelsOf(from) != channelsOf(to)) // C1
    return emitOpError() << "makes " << to << " of " << from << " repeated " << times << " times";
  return success();
}

LogicalResult PositionEmbeddingOp::verify() {
  if (failed(verifyRows(*this, getType(), 2)))
    return failure();
  ArrayRef<int64_t> shape = cast<WeightType>(getWeight().getType()).getShape();
  int64_t offset = static_cast<int64_t>(getOffset());
  if (shape.size() != 2 || shape[1] != channelsOf(getType()) || offset < 0 || offset >= shape[0]) // C1
    return emitOpError() << "has a weight of " << shapeText(shape) << " and offset " << offset << ", expected [P, "
                         << channelsOf(getType()) << "] with the offset below P";
  int64_t period = static_cast<int64_t>(getPeriod());
  if (period < 0 || period > shape[0] - offset) // C2
    return emitOpError() << "repeats after " << period << " positions from row " << offset << " on, but has "
                         << shape[0] << " rows";
  return success();
}

LogicalResult PositionScaleOp::verify() {
  if (static_cast<int64_t>(getPeriod()) < 1 || static_cast<int64_t>(getOffset()) < 0) // C1
    return emitOpError() << "has period " << static_cast<int64_t>(getPeriod()) << " and offset "
                         << static_cast<int64_t>(getOffset()) << ", expected at least 1 and 0";
  return success();
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

namespace {
// Operations per element; exp, tanh, log and erf count as 8, a division as 1.
constexpr int64_t normFlops = 6, activationFlops = 11, softmaxFlops = 10;
} // namespace

int64_t LayerNormOp::flops(int64_t rows, int64_t) { return normFlops * rows * elementsPerRow(getType()); }
int64_t LayerNormOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t ActivationOp::flops(int64_t rows, int64_t) { return activationFlops * rows * elementsPerRow(getType()); }
int64_t ActivationOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t XieluOp::flops(int64_t rows, int64_t) { return activationFlops * rows * elementsPerRow(getType()); }
int64_t XieluOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t MultiplyOp::flops(int64_t rows, int64_t) { return rows * elementsPerRow(getType()); }
int64_t MultiplyOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t AffineOp::flops(int64_t rows, int64_t) { return 2 * rows * elementsPerRow(getType()); }
int64_t AffineOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t ClampOp::flops(int64_t rows, int64_t) { return 2 * rows * elementsPerRow(getType()); }
int64_t ClampOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t SoftmaxOp::flops(int64_t rows, int64_t) { return softmaxFlops * rows * elementsPerRow(getType()); }
int64_t SoftmaxOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t SinkhornOp::flops(int64_t rows, int64_t) {
  return 4 * rows * static_cast<int64_t>(getIterations()) * elementsPerRow(getType());
}
int64_t SinkhornOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t SliceOp::flops(int64_t, int64_t) { return 0; }
int64_t SliceOp::bytes(int64_t rows, int64_t) { return 8 * rows * elementsPerRow(getType()); }
int64_t ConcatOp::flops(int64_t, int64_t) { return 0; }
int64_t ConcatOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t RepeatHeadsOp::flops(int64_t, int64_t) { return 0; }
int64_t RepeatHeadsOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t PositionEmbeddingOp::flops(int64_t, int64_t) { return 0; }
int64_t PositionEmbeddingOp::bytes(int64_t rows, int64_t) {
  double perElement = bytesPerWeightElement(cast<WeightType>(getWeight().getType()).getForm());
  auto elements = static_cast<double>(rows * elementsPerRow(getType()));
  return static_cast<int64_t>(elements * (4 + perElement));
}
int64_t PositionScaleOp::flops(int64_t rows, int64_t) { return rows * (elementsPerRow(getType()) + activationFlops); }
int64_t PositionScaleOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
