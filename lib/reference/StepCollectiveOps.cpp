// Rules of the ops by which ranks exchange rows: this interpreter is one of them.
#include "dialects/llm/LlmShapes.h"
#include "lib/reference/LlmStep.h"
#include "runtime/collective/Collectives.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using namespace llmc::reference;

// `input` may be null, and so may the result's columns be 0.
FailureOr<Matrix> LlmStep::exchange(Operation *op, int64_t kind, const Matrix *input, int64_t resultColumns,
                                    int64_t stage, ArrayAttr segments) {
  if (!owner.collectives)
    return op->emitOpError() << "needs other ranks, and this run has none";
  llmc_collective what{};
  what.kind = kind;
  what.ranks = owner.collectives->transport().grid().ranks;
  what.stage = stage;
  what.input_columns = what.input_stride = input ? input->columns : 0;
  what.result_columns = what.result_stride = resultColumns;
  std::vector<int64_t> ranges;
  if (segments) {
    what.num_segments = static_cast<int64_t>(segments.size());
    for (auto segment : segments.getAsRange<DenseI64ArrayAttr>())
      llvm::append_range(ranges, segment.asArrayRef());
  }
  const std::vector<int64_t> words = collectiveWords(what, ranges);
  const auto &whole = *reinterpret_cast<const llmc_collective *>(words.data());
  CheckedSize needed = collectiveScratchFloats(whole, rows());
  if (!needed.fits(maxSize * 64))
    return op->emitOpError() << "exchanges more than memory holds";
  std::vector<float> scratch(static_cast<size_t>(*needed.value()));
  Matrix result(rows(), resultColumns);
  Status status =
      owner.collectives->run(whole, rows(), input ? input->values.data() : nullptr, result.values.data(), scratch);
  if (!status.ok())
    return op->emitOpError() << status.message();
  return result;
}

LogicalResult LlmStep::evaluate(FillOp op, Frame &frame) {
  Matrix result(rows(), elementsPerRow(op.getType()));
  std::fill(result.values.begin(), result.values.end(), op.getValue().convertToFloat());
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(shard::AllReduceOp op, Frame &frame) {
  const Matrix &input = tensor(frame, op.getInput());
  FailureOr<Matrix> sum = exchange(op, LLMC_ALL_REDUCE, &input, input.columns);
  if (failed(sum))
    return failure();
  set(frame, op.getResult(), std::move(*sum));
  return success();
}

LogicalResult LlmStep::evaluate(AllGatherOp op, Frame &frame) {
  const Matrix *input = op.getInput() ? &tensor(frame, op.getInput()) : nullptr;
  FailureOr<Matrix> whole = exchange(op, LLMC_ALL_GATHER, input, elementsPerRow(op.getType()), 0, op.getSegments());
  if (failed(whole))
    return failure();
  set(frame, op, std::move(*whole));
  return success();
}

LogicalResult LlmStep::evaluate(SendOp op, Frame &frame) {
  return exchange(op, LLMC_SEND, &tensor(frame, op.getValue()), 0, static_cast<int64_t>(op.getStage()));
}

LogicalResult LlmStep::evaluate(ReceiveOp op, Frame &frame) {
  FailureOr<Matrix> rows =
      exchange(op, LLMC_RECEIVE, nullptr, elementsPerRow(op.getType()), static_cast<int64_t>(op.getStage()));
  if (failed(rows))
    return failure();
  set(frame, op, std::move(*rows));
  return success();
}
