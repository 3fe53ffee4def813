#include "lib/reference/LlmInterpreter.h"
#include "dialects/llm/LlmShapes.h"
#include "lib/reference/CallFunction.h"
#include "lib/reference/Formulas.h"
#include "lib/reference/TileKernels.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>
#include <variant>

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using namespace llmc::reference;

namespace {
constexpr int64_t maxRecords = 1 << 16;

using Tensor = std::shared_ptr<const Matrix>;
struct Batch {};
// A weight, a state or the batch passes through calls as what it stands for.
using RuntimeValue = std::variant<Tensor, WeightOp, StateOp, Batch>;
using Frame = llvm::DenseMap<Value, RuntimeValue>;
} // namespace

namespace llmc::reference {

/// One run of @step.
class LlmStep {
public:
  LlmStep(LlmInterpreter &owner, const StepInput &input);
  LogicalResult run(func::FuncOp step, StepOutput &output);
  /// Takes back what the caches have grown by.
  void undo();
  void commit();

private:
  LogicalResult call(func::FuncOp function, ArrayRef<RuntimeValue> arguments, SmallVectorImpl<RuntimeValue> &results);
  LogicalResult execute(Operation &op, Frame &frame);

  LogicalResult evaluate(UseWeightOp op, Frame &frame);
  LogicalResult evaluate(UseStateOp op, Frame &frame);
  LogicalResult evaluate(func::CallOp op, Frame &frame);
  LogicalResult evaluate(EmbeddingOp op, Frame &frame);
  LogicalResult evaluate(RmsNormOp op, Frame &frame);
  LogicalResult evaluate(LinearOp op, Frame &frame);
  LogicalResult evaluate(FusedLinearOp op, Frame &frame);
  LogicalResult evaluate(GatedActivationOp op, Frame &frame);
  LogicalResult evaluate(AddOp op, Frame &frame);
  LogicalResult evaluate(ScaleOp op, Frame &frame);
  LogicalResult evaluate(SoftcapOp op, Frame &frame);
  LogicalResult evaluate(SelectRowsOp op, Frame &frame);
  LogicalResult evaluate(RecordOp op, Frame &frame);
  LogicalResult evaluate(SplitHeadsOp op, Frame &frame);
  LogicalResult evaluate(MergeHeadsOp op, Frame &frame);
  LogicalResult evaluate(RopeTableOp op, Frame &frame);
  LogicalResult evaluate(RopeOp op, Frame &frame);
  LogicalResult evaluate(KvAppendOp op, Frame &frame);
  LogicalResult evaluate(AttentionOp op, Frame &frame);

  const Matrix &tensor(Frame &frame, Value value) { return *std::get<Tensor>(frame.at(value)); }
  void set(Frame &frame, Value value, Matrix matrix) {
    frame[value] = std::make_shared<const Matrix>(std::move(matrix));
  }
  FailureOr<Tensor> weight(Frame &frame, Value value);
  std::vector<Matrix> perSequence(const Matrix &rows) const;

  LlmInterpreter &owner;
  bool recording;
  std::vector<int32_t> tokens, positions;
  std::vector<size_t> sequenceOf, firstRow; // of a row; of a sequence, and one past the last
  std::set<std::string> grown;              // states that have had their append
  std::vector<std::vector<Matrix>> records;
  int depth = 0;
};

} // namespace llmc::reference

//===-- the interpreter
//---------------------------------------------------------------------------------------------===//

FailureOr<Tensor> MemoryWeights::weight(WeightOp op) {
  auto found = weights.find(op.getSymName().str());
  if (found == weights.end())
    return op.emitError() << "weight @" << op.getSymName() << " has no data";
  return found->second;
}

FailureOr<LlmInterpreter> LlmInterpreter::create(ModuleOp module, WeightProvider &weights) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step || step.isExternal())
    return module.emitError() << "module has no function @step with a body";
  if (step.getNumArguments() != 1 || !isa<BatchType>(step.getArgumentTypes()[0]) || step.getNumResults() != 1 ||
      !isRowsType(step.getResultTypes()[0]))
    return step.emitError() << "@step is " << step.getFunctionType() << ", expected (!llm.batch) -> rows of logits";
  return LlmInterpreter(module, weights);
}

FailureOr<StepOutput> LlmInterpreter::step(const StepInput &input) {
  if (input.sequences.size() > sequences.size())
    sequences.resize(input.sequences.size());
  LlmStep step(*this, input);
  StepOutput output;
  if (failed(step.run(module.lookupSymbol<func::FuncOp>("step"), output))) {
    step.undo();
    return failure();
  }
  step.commit();
  return output;
}

//===-- one step
//----------------------------------------------------------------------------------------------------===//

LlmStep::LlmStep(LlmInterpreter &owner, const StepInput &input) : owner(owner), recording(input.records) {
  for (size_t s = 0; s < input.sequences.size(); ++s) {
    firstRow.push_back(tokens.size());
    for (int32_t token : input.sequences[s]) {
      positions.push_back(static_cast<int32_t>(owner.sequences[s].length + tokens.size() - firstRow[s]));
      tokens.push_back(token);
      sequenceOf.push_back(s);
    }
  }
  firstRow.push_back(tokens.size());
  records.resize(input.sequences.size());
}

LogicalResult LlmStep::run(func::FuncOp step, StepOutput &output) {
  SmallVector<RuntimeValue> results;
  if (failed(call(step, {Batch{}}, results)))
    return failure();
  output.logits = perSequence(*std::get<Tensor>(results[0]));
  output.records = std::move(records);
  return success();
}

void LlmStep::undo() {
  for (LlmInterpreter::Sequence &sequence : owner.sequences)
    for (const std::string &name : grown) {
      auto found = sequence.caches.find(name);
      if (found == sequence.caches.end())
        continue;
      auto state = owner.module.lookupSymbol<StateOp>(name);
      size_t size = static_cast<size_t>(sequence.length * state.getType().getHeads() * state.getType().getHeadDim());
      found->second.keys.resize(std::min(found->second.keys.size(), size));
      found->second.values.resize(std::min(found->second.values.size(), size));
    }
}

void LlmStep::commit() {
  for (size_t s = 0; s + 1 < firstRow.size(); ++s)
    owner.sequences[s].length += static_cast<int64_t>(firstRow[s + 1] - firstRow[s]);
}

LogicalResult LlmStep::call(func::FuncOp function, ArrayRef<RuntimeValue> arguments,
                            SmallVectorImpl<RuntimeValue> &results) {
  auto run = [&](Operation &op, Frame &frame) { return execute(op, frame); };
  return callFunction(function, arguments, depth, run, results);
}

LogicalResult LlmStep::execute(Operation &op, Frame &frame) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<UseWeightOp, UseStateOp, func::CallOp, EmbeddingOp, RmsNormOp, LinearOp, FusedLinearOp, GatedActivationOp,
            AddOp, ScaleOp, SoftcapOp, SelectRowsOp, RecordOp, SplitHeadsOp, MergeHeadsOp, RopeTableOp, RopeOp,
            KvAppendOp, AttentionOp>([&](auto known) { return evaluate(known, frame); })
      .Default([](Operation *unknown) { return unknown->emitOpError() << "has no reference implementation"; });
}

FailureOr<Tensor> LlmStep::weight(Frame &frame, Value value) {
  WeightOp op = std::get<WeightOp>(frame.at(value));
  FailureOr<Tensor> matrix = owner.weights->weight(op);
  if (failed(matrix))
    return failure();
  ArrayRef<int64_t> shape = op.getType().getShape();
  int64_t rows = shape.size() == 2 ? shape[0] : 1;
  if ((*matrix)->rows != rows || (*matrix)->columns != shape.back())
    return op.emitError() << "weight @" << op.getSymName() << " is " << rows << " x " << shape.back() << ", its data "
                          << (*matrix)->rows << " x " << (*matrix)->columns;
  return matrix;
}

std::vector<Matrix> LlmStep::perSequence(const Matrix &rows) const {
  std::vector<Matrix> parts;
  for (size_t s = 0; s + 1 < firstRow.size(); ++s) {
    Matrix part(static_cast<int64_t>(firstRow[s + 1] - firstRow[s]), rows.columns);
    std::copy_n(rows.values.begin() + static_cast<std::ptrdiff_t>(firstRow[s]) * rows.columns, part.values.size(),
                part.values.begin());
    parts.push_back(std::move(part));
  }
  return parts;
}

//===-- symbols and calls
//-------------------------------------------------------------------------------------------===//

LogicalResult LlmStep::evaluate(UseWeightOp op, Frame &frame) {
  auto weight = owner.module.lookupSymbol<WeightOp>(op.getSymbolAttr());
  if (!weight)
    return op.emitOpError() << "names @" << op.getSymbol() << ", which is no llm.weight of this module";
  frame[op] = weight;
  return success();
}

LogicalResult LlmStep::evaluate(UseStateOp op, Frame &frame) {
  auto state = owner.module.lookupSymbol<StateOp>(op.getSymbolAttr());
  if (!state)
    return op.emitOpError() << "names @" << op.getSymbol() << ", which is no llm.state of this module";
  frame[op] = state;
  return success();
}

LogicalResult LlmStep::evaluate(func::CallOp op, Frame &frame) {
  SmallVector<RuntimeValue> arguments, results;
  for (Value operand : op.getOperands())
    arguments.push_back(frame.at(operand));
  auto callee = owner.module.lookupSymbol<func::FuncOp>(op.getCalleeAttr());
  if (!callee || failed(call(callee, arguments, results)))
    return failure();
  for (auto [value, result] : llvm::zip(op.getResults(), results))
    frame[value] = result;
  return success();
}

//===-- tensors
//-----------------------------------------------------------------------------------------------------===//

LogicalResult LlmStep::evaluate(EmbeddingOp op, Frame &frame) {
  FailureOr<Tensor> table = weight(frame, op.getWeight());
  if (failed(table))
    return failure();
  Matrix result(static_cast<int64_t>(tokens.size()), (*table)->columns);
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

LogicalResult LlmStep::evaluate(RmsNormOp op, Frame &frame) {
  FailureOr<Tensor> gain = weight(frame, op.getWeight());
  if (failed(gain))
    return failure();
  set(frame, op, rmsNorm(tensor(frame, op.getInput()), **gain, op.getEps().convertToFloat()));
  return success();
}

LogicalResult LlmStep::evaluate(LinearOp op, Frame &frame) {
  FailureOr<Tensor> matrix = weight(frame, op.getWeight());
  FailureOr<Tensor> bias = op.getBias() ? weight(frame, op.getBias()) : FailureOr<Tensor>(Tensor());
  if (failed(matrix) || failed(bias))
    return failure();
  set(frame, op, linear(tensor(frame, op.getInput()), **matrix, bias->get()));
  return success();
}

LogicalResult LlmStep::evaluate(FusedLinearOp op, Frame &frame) {
  FailureOr<Tensor> matrix = weight(frame, op.getWeight());
  FailureOr<Tensor> bias = op.getBias() ? weight(frame, op.getBias()) : FailureOr<Tensor>(Tensor());
  if (failed(matrix) || failed(bias))
    return failure();
  Matrix all = linear(tensor(frame, op.getInput()), **matrix, bias->get());
  int64_t offset = 0;
  for (Value result : op.getResults()) {
    Matrix part(all.rows, channelsOf(result.getType()));
    for (int64_t t = 0; t < all.rows; ++t)
      std::ranges::copy(all.row(t).subspan(static_cast<size_t>(offset), static_cast<size_t>(part.columns)),
                        part.row(t).begin());
    offset += part.columns;
    set(frame, result, std::move(part));
  }
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

LogicalResult LlmStep::evaluate(AddOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getLhs());
  const Matrix &rhs = tensor(frame, op.getRhs());
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] += rhs.values[i];
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(ScaleOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getInput());
  for (float &x : result.values)
    x *= op.getFactor().convertToFloat();
  set(frame, op, std::move(result));
  return success();
}

LogicalResult LlmStep::evaluate(SoftcapOp op, Frame &frame) {
  Matrix result = tensor(frame, op.getInput());
  for (float &x : result.values)
    x = softcap(x, op.getCap().convertToFloat());
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

//===-- attention
//---------------------------------------------------------------------------------------------------===//

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
  set(frame, op, ropeTable(positions, op.getFrequencies(), op.getMagnitude().convertToFloat()));
  return success();
}

LogicalResult LlmStep::evaluate(RopeOp op, Frame &frame) {
  set(frame, op, rope(tensor(frame, op.getInput()), tensor(frame, op.getTable()), channelsOf(op.getType())));
  return success();
}

LogicalResult LlmStep::evaluate(KvAppendOp op, Frame &frame) {
  StateOp state = std::get<StateOp>(frame.at(op.getKv()));
  if (!grown.insert(state.getSymName().str()).second)
    return op.emitOpError() << "grows @" << state.getSymName() << ", which this step has grown already";
  KvType kv = op.getKv().getType();
  auto append = [&](std::vector<float> &cache, std::span<const float> row) {
    const size_t depth = static_cast<size_t>(kv.getHeadDim());
    std::vector<float> rounded(row.begin(), row.end());
    for (size_t head = 0; head < rounded.size(); head += depth) {
      const float scale = roundToCache(std::span(rounded).subspan(head, depth), elementOf(kv));
      for (size_t d = head; d < head + depth; ++d)
        cache.push_back(rounded[d] * scale);
    }
  };
  for (size_t t = 0; t < tokens.size(); ++t) {
    LlmInterpreter::Cache &cache = owner.sequences[sequenceOf[t]].caches[state.getSymName().str()];
    append(cache.keys, tensor(frame, op.getKey()).row(static_cast<int64_t>(t)));
    append(cache.values, tensor(frame, op.getValue()).row(static_cast<int64_t>(t)));
  }
  frame[op] = state;
  return success();
}

LogicalResult LlmStep::evaluate(AttentionOp op, Frame &frame) {
  StateOp state = std::get<StateOp>(frame.at(op.getKv()));
  KvType kv = op.getKv().getType();
  const Matrix &query = tensor(frame, op.getQuery());
  AttentionShape shape{query.columns / kv.getHeadDim(),
                       kv.getHeads(),
                       kv.getHeadDim(),
                       op.getScale().convertToFloat(),
                       op.getSoftcap().convertToFloat(),
                       static_cast<int64_t>(op.getWindow())};
  Matrix result(query.rows, query.columns);
  for (int64_t t = 0; t < query.rows; ++t) {
    const LlmInterpreter::Cache &cache =
        owner.sequences[sequenceOf[static_cast<size_t>(t)]].caches[state.getSymName().str()];
    attendRow(query.row(t), cache.keys, cache.values, positions[static_cast<size_t>(t)], shape, result.row(t));
  }
  set(frame, op, std::move(result));
  return success();
}
