#include "lib/reference/LlmInterpreter.h"
#include "lib/reference/CallFunction.h"
#include "lib/reference/LlmStep.h"
#include "runtime/collective/Collectives.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using namespace llmc::reference;

//===-- the interpreter
//---------------------------------------------------------------------------------------------===//

FailureOr<std::shared_ptr<const Matrix>> MemoryWeights::weight(WeightOp op) {
  auto found = weights.find(op.getSymName().str());
  if (found == weights.end())
    return op.emitError() << "weight @" << op.getSymName() << " has no data";
  return found->second;
}

FailureOr<LlmInterpreter> LlmInterpreter::create(ModuleOp module, WeightProvider &weights, Transport *transport) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step || step.isExternal())
    return module.emitError() << "module has no function @step with a body";
  if (step.getNumArguments() != 1 || !isa<BatchType>(step.getArgumentTypes()[0]) || step.getNumResults() != 1 ||
      !isRowsType(step.getResultTypes()[0]))
    return step.emitError() << "@step is " << step.getFunctionType() << ", expected (!llm.batch) -> rows of logits";
  LlmInterpreter interpreter(module, weights);
  if (transport)
    interpreter.collectives = std::make_shared<Collectives>(*transport);
  return interpreter;
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

std::map<std::string, Matrix> LlmInterpreter::stateOf(size_t sequence) const {
  std::map<std::string, Matrix> state;
  if (sequence >= sequences.size())
    return state;
  auto add = [&](const std::string &name, int64_t rows, const auto &values) {
    if (values.empty() || rows == 0)
      return;
    Matrix &matrix = state[name] = Matrix(rows, static_cast<int64_t>(values.size()) / rows);
    std::transform(values.begin(), values.end(), matrix.values.begin(), [](auto x) { return static_cast<float>(x); });
  };
  for (const auto &[name, values] : sequences[sequence].recurrent)
    add(name, 1, values);
  for (const auto &[name, cache] : sequences[sequence].caches) {
    const int64_t rows =
        cast<KvType>(ModuleOp(module).lookupSymbol<StateOp>(name).getType()).rowsOf(sequences[sequence].length);
    add(name + ".keys", rows, cache.keys);
    add(name + ".values", rows, cache.values);
  }
  return state;
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
      auto kv = cast<KvType>(owner.module.lookupSymbol<StateOp>(name).getType());
      auto keep = [&](std::vector<float> &cache, int64_t channels) {
        cache.resize(
            std::min(cache.size(), static_cast<size_t>(kv.rowsOf(sequence.length) * kv.getHeads() * channels)));
      };
      keep(found->second.keys, kv.getHeadDim());
      keep(found->second.values, kv.storedValueDim());
    }
}

void LlmStep::commit() {
  for (size_t s = 0; s + 1 < firstRow.size(); ++s) {
    owner.sequences[s].length += static_cast<int64_t>(firstRow[s + 1] - firstRow[s]);
    for (auto &[name, states] : updated)
      owner.sequences[s].recurrent[name] = std::move(states[s]);
  }
}

LogicalResult LlmStep::call(func::FuncOp function, ArrayRef<RuntimeValue> arguments,
                            SmallVectorImpl<RuntimeValue> &results) {
  auto run = [&](Operation &op, Frame &frame) { return execute(op, frame); };
  return callFunction(function, arguments, depth, run, results);
}

LogicalResult LlmStep::execute(Operation &op, Frame &frame) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<UseWeightOp, UseStateOp, func::CallOp, EmbeddingOp, PositionEmbeddingOp, RmsNormOp, LayerNormOp, LinearOp,
            FusedLinearOp, ActivationOp, GatedActivationOp, XieluOp, AddOp, MultiplyOp, ScaleOp, AffineOp, ClampOp,
            SoftcapOp, SoftmaxOp, SinkhornOp, SliceOp, ConcatOp, RepeatHeadsOp, PositionScaleOp, SelectRowsOp, RecordOp,
            SplitHeadsOp, MergeHeadsOp, RopeTableOp, RopeOp, KvAppendOp, AttentionOp, SelectPositionsOp, RouterOp,
            ExpertLinearOp, HeadLinearOp, CombineOp, ShortConvOp, WindowPoolOp, LinearAttentionOp, FillOp, shard::AllReduceOp,
            AllGatherOp, SendOp, ReceiveOp>([&](auto known) { return evaluate(known, frame); })
      .Default([](Operation *unknown) { return unknown->emitOpError() << "has no reference implementation"; });
}

FailureOr<std::shared_ptr<const Matrix>> LlmStep::weight(Frame &frame, Value value) {
  WeightOp op = std::get<WeightOp>(frame.at(value));
  FailureOr<Tensor> matrix = owner.weights->weight(op);
  if (failed(matrix))
    return failure();
  ArrayRef<int64_t> shape = cast<WeightType>(op.getType()).getShape();
  int64_t rows = 1;
  for (int64_t d : shape.drop_back())
    rows *= d;
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
