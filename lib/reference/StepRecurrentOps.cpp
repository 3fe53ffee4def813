// The llm interpreter's rules for the ops of LlmRecurrentOps.td.
#include "dialects/llm/LlmShapes.h"
#include "lib/reference/LlmStep.h"
#include "lib/reference/RecurrentFormulas.h"

using namespace mlir;
using namespace llmc::llm;
using namespace llmc::reference;

// A copy, which replaces the state when the step succeeds.
FailureOr<std::vector<LlmInterpreter::Recurrent> *> LlmStep::update(Operation *op, StateOp state) {
  const std::string name = state.getSymName().str();
  auto [entry, isFirst] = updated.try_emplace(name);
  if (!isFirst)
    return op->emitOpError() << "updates @" << name << ", which this step has updated already";
  const auto size = static_cast<size_t>(cast<RecurrentType>(state.getType()).elements());
  for (size_t s = 0; s + 1 < firstRow.size(); ++s) {
    entry->second.push_back(owner.sequences[s].recurrent[name]);
    entry->second.back().resize(size); // zero before the first row
  }
  return &entry->second;
}

LogicalResult LlmStep::evaluate(ShortConvOp op, Frame &frame) {
  FailureOr<Tensor> filter = weight(frame, op.getWeight()), bias = optionalWeight(frame, op.getBias());
  if (failed(filter) || failed(bias))
    return failure();
  FailureOr<std::vector<LlmInterpreter::Recurrent> *> states = update(op, std::get<StateOp>(frame.at(op.getState())));
  if (failed(states))
    return failure();
  const Matrix &input = tensor(frame, op.getInput());
  Matrix result(input.rows, input.columns);
  for (int64_t t = 0; t < input.rows; ++t)
    shortConvRow(input.row(t), **filter, *bias ? (*bias)->row(0) : std::span<const float>(),
                 (**states)[sequenceOf[static_cast<size_t>(t)]], result.row(t));
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(WindowPoolOp op, Frame &frame) {
  FailureOr<std::vector<LlmInterpreter::Recurrent> *> states = update(op, std::get<StateOp>(frame.at(op.getState())));
  if (failed(states))
    return failure();
  const Matrix &value = tensor(frame, op.getValue()), &gate = tensor(frame, op.getGate());
  Matrix result(value.rows, channelsOf(op.getType()));
  for (int64_t t = 0; t < value.rows; ++t) {
    const size_t row = static_cast<size_t>(t);
    windowPoolRow(value.row(t), gate.row(t), positions[row], static_cast<int64_t>(op.getWindow()),
                  (**states)[sequenceOf[row]], result.row(t));
  }
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(LinearAttentionOp op, Frame &frame) {
  FailureOr<std::vector<LlmInterpreter::Recurrent> *> states = update(op, std::get<StateOp>(frame.at(op.getState())));
  if (failed(states))
    return failure();
  RecurrentType state = op.getState().getType();
  const Matrix &query = tensor(frame, op.getQuery()), &key = tensor(frame, op.getKey());
  const Matrix &value = tensor(frame, op.getValue());
  const LinearAttentionShape shape{state.getHeads(), key.columns / state.getKeys(), state.getKeys(), state.getValues()};
  Matrix result(value.rows, value.columns);
  auto rowOf = [&](Value optional, int64_t t) {
    return optional ? tensor(frame, optional).row(t) : std::span<const float>();
  };
  for (int64_t t = 0; t < value.rows; ++t)
    linearAttentionRow(query.row(t), key.row(t), value.row(t), rowOf(op.getDecay(), t), rowOf(op.getBeta(), t), shape,
                       (**states)[sequenceOf[static_cast<size_t>(t)]], result.row(t));
  set(frame, op, std::move(result));
  return success();
}
