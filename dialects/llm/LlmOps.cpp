// Verifiers and costs of the ops in LlmOps.td. Each check carries the number of its constraint.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace llmc::llm;

#define GET_OP_CLASSES
#include "dialects/llm/LlmOps.cpp.inc"

//===-- shapes
//------------------------------------------------------------------------------------------------------===//

int64_t llmc::llm::channelsOf(Type type) { return cast<RankedTensorType>(type).getShape().back(); }

int64_t llmc::llm::elementsPerRow(Type type) {
  int64_t product = 1;
  for (int64_t d : cast<RankedTensorType>(type).getShape().drop_front())
    product *= d;
  return product;
}

bool llmc::llm::isRowsType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isF32() || (tensor.getRank() != 2 && tensor.getRank() != 3) ||
      !tensor.isDynamicDim(0))
    return false;
  int64_t product = 1;
  for (int64_t d : tensor.getShape().drop_front()) {
    if (d <= 0 || d > maxSize / product) // a dynamic size is negative
      return false;
    product *= d;
  }
  return true;
}

LogicalResult llmc::llm::verifyRows(Operation *op, Type type, unsigned rank) {
  auto tensor = cast<RankedTensorType>(type);
  if (static_cast<unsigned>(tensor.getRank()) != rank)
    return op->emitOpError() << "has " << type << ", expected " << rank << " dimensions"
                             << (rank == 3 ? ": rows, heads and channels" : ": rows and channels");
  return success();
}

double llmc::llm::bytesPerWeightElement(WeightForm form) {
  switch (form) {
  case WeightForm::Any:
  case WeightForm::Plain:
  case WeightForm::F32:
    return 4;
  case WeightForm::BF16:
    return 2;
  case WeightForm::I8:
    return 1 + 2.0 / 32;
  case WeightForm::I4:
    return 0.5 + 2.0 / 32;
  case WeightForm::I4M:
  case WeightForm::F4:
    return 0.5 + 4.0 / 32;
  case WeightForm::F8:
    return 1 + 4.0 / 32;
  }
  llvm_unreachable("every form has a size");
}

int64_t llmc::llm::weightBytes(Value weight) {
  if (!weight)
    return 0;
  auto type = cast<WeightType>(weight.getType());
  double elements = 1;
  for (int64_t d : type.getShape())
    elements *= static_cast<double>(d);
  return static_cast<int64_t>(elements * bytesPerWeightElement(type.getForm()));
}

static int64_t rowBytes(int64_t rows, ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    if (isa<RankedTensorType>(value.getType()))
      bytes += 4 * rows * elementsPerRow(value.getType());
  return bytes;
}

int64_t llmc::llm::operandBytes(Operation *op, int64_t rows) {
  int64_t bytes = rowBytes(rows, op->getOperands()) + rowBytes(rows, op->getResults());
  for (Value operand : op->getOperands())
    if (isa<WeightType>(operand.getType()))
      bytes += weightBytes(operand);
  return bytes;
}

std::string llmc::llm::shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, d] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(d);
  return text + "]";
}

LogicalResult llmc::llm::verifyVector(Operation *op, StringRef what, Value vector, Type type) {
  if (!vector)
    return success();
  ArrayRef<int64_t> shape = cast<WeightType>(vector.getType()).getShape();
  if (shape.size() == 1 && (shape[0] == channelsOf(type) || shape[0] == elementsPerRow(type)))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "has a " << what << " of " << shapeText(shape) << ", expected "
                                                    << shapeText({channelsOf(type)});
  if (elementsPerRow(type) != channelsOf(type))
    diagnostic << ", or " << shapeText({elementsPerRow(type)}) << " for heads with their own";
  return diagnostic;
}

LogicalResult llmc::llm::verifyEps(Operation *op, APFloat eps) {
  if (!(eps.convertToFloat() > 0) || eps.isInfinity())
    return op->emitOpError() << "has eps " << eps.convertToFloat() << ", expected more than 0 and finite";
  return success();
}

namespace {

// Weight and bias of a product with `channels` inputs and `outputs` outputs: C1 and C2 of linear and fused_linear.
LogicalResult verifyProduct(Operation *op, Value weight, Value bias, int64_t channels, int64_t outputs) {
  ArrayRef<int64_t> shape = cast<WeightType>(weight.getType()).getShape();
  if (shape != ArrayRef<int64_t>{outputs, channels}) // C1
    return op->emitOpError() << "has a weight of " << shapeText(shape) << ", expected "
                             << shapeText({outputs, channels}) << ": result by input channels";
  if (!bias)
    return success();
  ArrayRef<int64_t> biasShape = cast<WeightType>(bias.getType()).getShape();
  if (biasShape != ArrayRef<int64_t>{outputs}) // C2
    return op->emitOpError() << "has a bias of " << shapeText(biasShape) << ", expected " << shapeText({outputs});
  return success();
}

} // namespace

//===-- symbols
//-----------------------------------------------------------------------------------------------------===//

LogicalResult UseWeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getSymbolAttr());
  if (!weight) // C1
    return emitOpError() << "names @" << getSymbol() << ", which is no llm.weight of this module";
  if (weight.getType() != getType())
    return emitOpError() << "reads @" << getSymbol() << " as " << getType() << ", declared as " << weight.getType();
  return success();
}

LogicalResult UseStateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(*this, getSymbolAttr());
  if (!state) // C1
    return emitOpError() << "names @" << getSymbol() << ", which is no llm.state of this module";
  if (state.getType() != getType())
    return emitOpError() << "reads @" << getSymbol() << " as " << getType() << ", declared as " << state.getType();
  return success();
}

//===-- verifiers
//---------------------------------------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  if (failed(verifyRows(*this, getType(), 2)))
    return failure();
  ArrayRef<int64_t> shape = cast<WeightType>(getWeight().getType()).getShape();
  if (shape.size() != 2 || shape[1] != channelsOf(getType())) // C1
    return emitOpError() << "has a weight of " << shapeText(shape) << ", expected [V, " << channelsOf(getType()) << "]";
  return success();
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifyVector(*this, "weight", getWeight(), getType()))) // C1
    return failure();
  return verifyEps(*this, getEps()); // C2
}

LogicalResult LinearOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 2)) || failed(verifyRows(*this, getType(), 2)))
    return failure();
  return verifyProduct(*this, getWeight(), getBias(), channelsOf(getInput().getType()), channelsOf(getType()));
}

LogicalResult FusedLinearOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 2)))
    return failure();
  if (getNumResults() < 2) // C3
    return emitOpError() << "has " << getNumResults() << " result, expected at least 2; use llm.linear";
  int64_t outputs = 0;
  for (Type type : getResultTypes()) {
    if (failed(verifyRows(*this, type, 2)))
      return failure();
    outputs += channelsOf(type);
  }
  return verifyProduct(*this, getWeight(), getBias(), channelsOf(getInput().getType()), outputs);
}

LogicalResult SoftcapOp::verify() {
  if (!(getCap().convertToFloat() > 0) || getCap().isInfinity()) // C1
    return emitOpError() << "has cap " << getCap().convertToFloat() << ", expected more than 0 and finite";
  return success();
}

LogicalResult RecordOp::verify() {
  if (static_cast<int64_t>(getIndex()) < 0) // C1
    return emitOpError() << "has index " << static_cast<int64_t>(getIndex()) << ", expected 0 or more";
  return verifyRows(*this, getValue().getType(), 2);
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

namespace {
// Operations per element of the elementwise ops; exp, tanh and erf count as 8.
constexpr int64_t addFlops = 1, scaleFlops = 1, softcapFlops = 10, gatedFlops = 12, normFlops = 4;

int64_t productFlops(int64_t rows, Value weight) {
  ArrayRef<int64_t> shape = cast<WeightType>(weight.getType()).getShape();
  return 2 * rows * shape[0] * shape[1];
}
} // namespace

int64_t EmbeddingOp::flops(int64_t rows, int64_t) { return rows * elementsPerRow(getType()); }
int64_t EmbeddingOp::bytes(int64_t rows, int64_t) {
  double perElement = bytesPerWeightElement(cast<WeightType>(getWeight().getType()).getForm());
  return rowBytes(rows, getOperation()->getResults()) +
         static_cast<int64_t>(static_cast<double>(rows * elementsPerRow(getType())) * perElement);
}
int64_t RmsNormOp::flops(int64_t rows, int64_t) { return normFlops * rows * elementsPerRow(getType()); }
int64_t RmsNormOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t LinearOp::flops(int64_t rows, int64_t) { return productFlops(rows, getWeight()); }
int64_t LinearOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t FusedLinearOp::flops(int64_t rows, int64_t) { return productFlops(rows, getWeight()); }
int64_t FusedLinearOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t GatedActivationOp::flops(int64_t rows, int64_t) { return gatedFlops * rows * elementsPerRow(getType()); }
int64_t GatedActivationOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t AddOp::flops(int64_t rows, int64_t) { return addFlops * rows * elementsPerRow(getType()); }
int64_t AddOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t ScaleOp::flops(int64_t rows, int64_t) { return scaleFlops * rows * elementsPerRow(getType()); }
int64_t ScaleOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t SoftcapOp::flops(int64_t rows, int64_t) { return softcapFlops * rows * elementsPerRow(getType()); }
int64_t SoftcapOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t SelectRowsOp::flops(int64_t, int64_t) { return 0; }
int64_t SelectRowsOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
