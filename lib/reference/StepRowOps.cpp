// The llm interpreter's rules for the ops of LlmOps.td and LlmRowOps.td.
#include "dialects/llm/LlmShapes.h"
#include "lib/reference/Formulas.h"
#include "lib/reference/LlmStep.h"

using namespace mlir;
using namespace llmc::llm;
using namespace llmc::reference;

namespace {
constexpr int64_t maxRecords = 1 << 16;

// Copies `count` elements of every part of `fromPart` elements of `from`, at `fromFirst`, into the parts of `to`.
void copyParts(const Matrix &from, int64_t fromPart, int64_t fromFirst, Matrix &to, int64_t toPart, int64_t toFirst,
               int64_t count) {
  for (size_t part = 0; part * static_cast<size_t>(fromPart) < from.values.size(); ++part)
    std::copy_n(from.values.begin() + static_cast<std::ptrdiff_t>(part) * fromPart + fromFirst, count,
                to.values.begin() + static_cast<std::ptrdiff_t>(part) * toPart + toFirst);
}
} // namespace

//===-- embeddings, norms and products
//------------------------------------------------------------------------------===//

LogicalResult LlmStep::evaluate(EmbeddingOp op, Frame &frame) {
  FailureOr<Tensor> table = weight(frame, op.getWeight());
  if (failed(table))
    return failure();
  Matrix result(rows(), (*table)->columns);
  const float scale = op.getScale().convertToFloat();
  for (size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] < 0 || tokens[t] >= (*table)->rows)
      return op.emitOpError() << "looks up token " << tokens[t] << ", but the vocabulary has " << (*table)->rows;
    std::ranges::transform((*table)->row(tokens[t]), result.row(static_cast<int64_t>(t)).begin(),
                           [&](float x) { return x * scale; });
  }
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(PositionEmbeddingOp op, Frame &frame) {
  FailureOr<Tensor> table = weight(frame, op.getWeight());
  if (failed(table))
    return failure();
  Matrix result(rows(), (*table)->columns);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const int64_t period = static_cast<int64_t>(op.getPeriod());
    const int64_t position = period > 0 ? positions[t] % period : positions[t];
    int64_t place = std::min(position + static_cast<int64_t>(op.getOffset()), (*table)->rows - 1);
    std::ranges::copy((*table)->row(place), result.row(static_cast<int64_t>(t)).begin());
  }
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(RmsNormOp op, Frame &frame) {
  FailureOr<Tensor> gain = optionalWeight(frame, op.getWeight());
  if (failed(gain))
    return failure();
  set(frame, op,
      rmsNorm(tensor(frame, op.getInput()), channelsOf(op.getType()), gain->get(), op.getEps().convertToFloat()));
  return success();
}

LogicalResult LlmStep::evaluate(LayerNormOp op, Frame &frame) {
  FailureOr<Tensor> gain = optionalWeight(frame, op.getWeight()), offset = optionalWeight(frame, op.getBias());
  if (failed(gain) || failed(offset))
    return failure();
  set(frame, op,
      layerNorm(tensor(frame, op.getInput()), channelsOf(op.getType()), gain->get(), offset->get(),
                op.getEps().convertToFloat()));
  return success();
}

LogicalResult LlmStep::evaluate(LinearOp op, Frame &frame) {
  FailureOr<Tensor> matrix = weight(frame, op.getWeight()), bias = optionalWeight(frame, op.getBias());
  if (failed(matrix) || failed(bias))
    return failure();
  set(frame, op, linear(tensor(frame, op.getInput()), **matrix, bias->get()));
  return success();
}

LogicalResult LlmStep::evaluate(FusedLinearOp op, Frame &frame) {
  FailureOr<Tensor> matrix = weight(frame, op.getWeight()), bias = optionalWeight(frame, op.getBias());
  if (failed(matrix) || failed(bias))
    return failure();
  Matrix all = linear(tensor(frame, op.getInput()), **matrix, bias->get());
  int64_t offset = 0;
  for (Value result : op.getResults()) {
    Matrix part(all.rows, channelsOf(result.getType()));
    copyParts(all, all.columns, offset, part, part.columns, 0, part.columns);
    offset += part.columns;
    set(frame, result, std::move(part));
  }
  return success();
}

//===-- elementwise
//-------------------------------------------------------------------------------------------------===//

LogicalResult LlmStep::evaluate(ActivationOp op, Frame &frame) {
  set(frame, op,
      mapped(tensor(frame, op.getInput()), [&](float x, int64_t) { return activate(op.getActivation(), x); }));
  return success();
}

LogicalResult LlmStep::evaluate(GatedActivationOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getGate());
  const Matrix &up = tensor(frame, op.getUp());
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] = activate(op.getActivation(), result.values[i]) * up.values[i];
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(XieluOp op, Frame &frame) {
  FailureOr<Tensor> sides = weight(frame, op.getWeight());
  if (failed(sides))
    return failure();
  const float beta = op.getBeta().convertToFloat(), eps = op.getEps().convertToFloat();
  set(frame, op, mapped(tensor(frame, op.getInput()), [&](float x, int64_t) {
        return xielu(x, (*sides)->values[0], (*sides)->values[1], beta, eps);
      }));
  return success();
}

LogicalResult LlmStep::evaluate(AddOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getLhs());
  const Matrix &rhs = tensor(frame, op.getRhs());
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] += rhs.values[i];
  set(frame, op, std::move(result));
  return success();
}

// As many neighbours share one number of rhs as it has fewer: all, the channels of a head, or none.
LogicalResult LlmStep::evaluate(MultiplyOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getLhs());
  const Matrix &rhs = tensor(frame, op.getRhs());
  const int64_t sharing = result.columns / rhs.columns;
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] *= rhs.values[i / static_cast<size_t>(sharing)];
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(ScaleOp op, Frame &frame) {
  const double factor = op.getFactor().convertToFloat(), offset = op.getOffset().convertToFloat();
  set(frame, op, mapped(tensor(frame, op.getInput()), [&](float x, int64_t) { return x * factor + offset; }));
  return success();
}

LogicalResult LlmStep::evaluate(AffineOp op, Frame &frame) {
  FailureOr<Tensor> gain = optionalWeight(frame, op.getWeight()), offset = optionalWeight(frame, op.getBias());
  if (failed(gain) || failed(offset))
    return failure();
  const Matrix &input = tensor(frame, op.getInput());
  // The element for channel i of a row: one for each head, or repeated over the heads, or over all.
  auto at = [&](const Matrix &vector, int64_t i) -> double {
    return vector
        .values[static_cast<size_t>(op.getPerHead() ? i / (input.columns / vector.columns) : i % vector.columns)];
  };
  set(frame, op, mapped(input, [&](float x, int64_t i) {
        return x * (*gain ? at(**gain, i) : 1.0) + (*offset ? at(**offset, i) : 0.0);
      }));
  return success();
}

LogicalResult LlmStep::evaluate(ClampOp op, Frame &frame) {
  const float low = op.getLow().convertToFloat(), high = op.getHigh().convertToFloat();
  set(frame, op,
      mapped(tensor(frame, op.getInput()), [&](float x, int64_t) { return std::min(std::max(x, low), high); }));
  return success();
}

LogicalResult LlmStep::evaluate(SoftcapOp op, Frame &frame) {
  const float cap = op.getCap().convertToFloat();
  set(frame, op, mapped(tensor(frame, op.getInput()), [&](float x, int64_t) { return softcap(x, cap); }));
  return success();
}

LogicalResult LlmStep::evaluate(SoftmaxOp op, Frame &frame) {
  set(frame, op, softmax(tensor(frame, op.getInput()), channelsOf(op.getType())));
  return success();
}

LogicalResult LlmStep::evaluate(SinkhornOp op, Frame &frame) {
  set(frame, op,
      sinkhorn(tensor(frame, op.getInput()), channelsOf(op.getType()), static_cast<int64_t>(op.getIterations()),
               op.getEps().convertToFloat()));
  return success();
}

LogicalResult LlmStep::evaluate(PositionScaleOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getInput());
  for (int64_t t = 0; t < result.rows; ++t) {
    const double factor = positionScale(positions[static_cast<size_t>(t)], op.getScale().convertToFloat(),
                                        static_cast<int64_t>(op.getPeriod()), static_cast<int64_t>(op.getOffset()));
    for (float &x : result.row(t))
      x = static_cast<float>(x * factor);
  }
  set(frame, op, std::move(result));
  return success();
}

//===-- moving channels and rows
//------------------------------------------------------------------------------------===//

LogicalResult LlmStep::evaluate(SliceOp op, Frame &frame) {
  const Matrix &input = tensor(frame, op.getInput());
  Matrix result(input.rows, elementsPerRow(op.getType()));
  const int64_t channels = channelsOf(op.getType());
  copyParts(input, channelsOf(op.getInput().getType()), static_cast<int64_t>(op.getBegin()), result, channels, 0,
            channels);
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(ConcatOp op, Frame &frame) {
  Matrix result(tensor(frame, op.getInputs().front()).rows, elementsPerRow(op.getType()));
  int64_t first = 0;
  for (Value input : op.getInputs()) {
    const int64_t channels = channelsOf(input.getType());
    copyParts(tensor(frame, input), channels, 0, result, channelsOf(op.getType()), first, channels);
    first += channels;
  }
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(RepeatHeadsOp op, Frame &frame) {
  const Matrix &input = tensor(frame, op.getInput());
  Matrix result(input.rows, elementsPerRow(op.getType()));
  const int64_t channels = channelsOf(op.getType()), times = static_cast<int64_t>(op.getTimes());
  for (int64_t copy = 0; copy < times; ++copy)
    copyParts(input, channels, 0, result, times * channels, copy * channels, channels);
  set(frame, op, std::move(result));
  return success();
}

// Every row's logits are wanted here.
LogicalResult LlmStep::evaluate(SelectRowsOp op, Frame &frame) {
  frame[op] = RuntimeValue(frame.at(op.getInput()));
  return success();
}

LogicalResult LlmStep::evaluate(RecordOp op, Frame &frame) {
  if (!recording)
    return success();
  const int64_t index = static_cast<int64_t>(op.getIndex());
  if (index >= maxRecords)
    return op.emitOpError() << "has index " << index << ", at most " << maxRecords << " records are kept";
  std::vector<Matrix> parts = perSequence(tensor(frame, op.getValue()));
  for (size_t s = 0; s < parts.size(); ++s) {
    records[s].resize(std::max(records[s].size(), static_cast<size_t>(index) + 1));
    records[s][static_cast<size_t>(index)] = std::move(parts[s]);
  }
  return success();
}
