// The llm interpreter's rules for the ops of LlmAttentionOps.td.
#include "dialects/llm/LlmShapes.h"
#include "lib/reference/AttentionFormulas.h"
#include "lib/reference/LlmStep.h"
#include "lib/reference/TileAttention.h"

using namespace mlir;
using namespace llmc::llm;
using namespace llmc::reference;

// Heads lie one after the other in a row already.
LogicalResult LlmStep::evaluate(SplitHeadsOp op, Frame &frame) {
  frame[op] = RuntimeValue(frame.at(op.getInput()));
  return success();
}

LogicalResult LlmStep::evaluate(MergeHeadsOp op, Frame &frame) {
  frame[op] = RuntimeValue(frame.at(op.getInput()));
  return success();
}

LogicalResult LlmStep::evaluate(RopeTableOp op, Frame &frame) {
  set(frame, op,
      ropeTable(positions, op.getFrequencies(), op.getMagnitude().convertToFloat(),
                static_cast<int64_t>(op.getStep())));
  return success();
}

LogicalResult LlmStep::evaluate(RopeOp op, Frame &frame) {
  RopeShape shape{channelsOf(op.getType()), op.getPairing(), static_cast<int64_t>(op.getFirst()), op.getInverse()};
  set(frame, op, rope(tensor(frame, op.getInput()), tensor(frame, op.getTable()), shape));
  return success();
}

LogicalResult LlmStep::evaluate(KvAppendOp op, Frame &frame) {
  StateOp state = std::get<StateOp>(frame.at(op.getKv()));
  if (!grown.insert(state.getSymName().str()).second)
    return op.emitOpError() << "grows @" << state.getSymName() << ", which this step has grown already";
  KvType kv = op.getKv().getType();
  // Each head as the cache will give it back.
  auto append = [&](std::vector<float> &cache, std::span<const float> row, int64_t channels) {
    const auto depth = static_cast<size_t>(channels);
    std::vector<float> rounded(row.begin(), row.end());
    for (size_t head = 0; head < rounded.size(); head += depth) {
      const float scale = roundToCache(std::span(rounded).subspan(head, depth), elementOf(kv));
      for (size_t d = head; d < head + depth; ++d)
        cache.push_back(rounded[d] * scale);
    }
  };
  for (int64_t t = 0; t < rows(); ++t) {
    const size_t sequence = sequenceOf[static_cast<size_t>(t)];
    if ((positions[static_cast<size_t>(t)] + 1) % kv.getEvery() != 0)
      continue;
    LlmInterpreter::Cache &cache = owner.sequences[sequence].caches[state.getSymName().str()];
    append(cache.keys, tensor(frame, op.getKey()).row(t), kv.getHeadDim());
    if (op.getValue())
      append(cache.values, tensor(frame, op.getValue()).row(t), kv.getValueDim());
  }
  frame[op] = state;
  return success();
}

FailureOr<StateOp> LlmStep::grownState(Operation *op, Value value, Frame &frame) {
  StateOp state = std::get<StateOp>(frame.at(value));
  if (!grown.contains(state.getSymName().str()))
    return op->emitOpError() << "reads @" << state.getSymName() << ", which this step has not grown";
  return state;
}

static KeysAndValues cacheView(std::span<const float> keys, std::span<const float> values, KvType kv) {
  return {keys, values, kv.getHeads(), kv.getHeadDim(), kv.getValueDim(), kv.getLatent()};
}

LogicalResult LlmStep::evaluate(AttentionOp op, Frame &frame) {
  FailureOr<Tensor> sinks = optionalWeight(frame, op.getSinks());
  FailureOr<StateOp> state = grownState(op, op.getKv(), frame);
  if (failed(sinks) || failed(state))
    return failure();
  KvType kv = op.getKv().getType();
  const Matrix &query = tensor(frame, op.getQuery());
  AttentionShape shape{query.columns / kv.getHeadDim(), op.getScale().convertToFloat(),
                       op.getSoftcap().convertToFloat(), static_cast<int64_t>(op.getWindow()),
                       static_cast<int64_t>(op.getChunk())};
  if (op.getAlibi())
    shape.alibi = *op.getAlibi();
  if (*sinks)
    shape.sinks = (*sinks)->row(0);
  Matrix result(query.rows, elementsPerRow(op.getResult().getType()));
  Matrix logsums(op.getLogsum() ? query.rows : 0, shape.heads);
  for (int64_t t = 0; t < query.rows; ++t) {
    const size_t row = static_cast<size_t>(t);
    const LlmInterpreter::Cache &cache = owner.sequences[sequenceOf[row]].caches[state->getSymName().str()];
    if (op.getSelected())
      shape.selected = tensor(frame, op.getSelected()).row(t);
    attendRow(query.row(t), cacheView(cache.keys, cache.values, kv), kv.rowsOf(positions[row] + 1) - 1, shape,
              result.row(t), op.getLogsum() ? logsums.row(t) : std::span<float>());
  }
  set(frame, op.getResult(), std::move(result));
  if (op.getLogsum())
    set(frame, op.getLogsum(), std::move(logsums));
  return success();
}

LogicalResult LlmStep::evaluate(SelectPositionsOp op, Frame &frame) {
  FailureOr<StateOp> state = grownState(op, op.getKv(), frame);
  if (failed(state))
    return failure();
  const Matrix &query = tensor(frame, op.getQuery()), &weights = tensor(frame, op.getWeights());
  KvType kv = op.getKv().getType();
  Matrix result(query.rows, channelsOf(op.getType()));
  for (int64_t t = 0; t < query.rows; ++t) {
    const size_t row = static_cast<size_t>(t);
    const LlmInterpreter::Cache &cache = owner.sequences[sequenceOf[row]].caches[state->getSymName().str()];
    selectPositions(query.row(t), weights.row(t), cacheView(cache.keys, cache.values, kv),
                    kv.rowsOf(positions[row] + 1) - 1, result.row(t));
  }
  set(frame, op, std::move(result));
  return success();
}
