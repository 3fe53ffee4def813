// One run of @step by the llm interpreter: a rule for each op. LlmInterpreter.cpp has symbols and calls, Step*.cpp the
// ops by group.
#pragma once
#include "lib/reference/LlmInterpreter.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <set>
#include <variant>

namespace llmc::reference {

class LlmStep {
public:
  LlmStep(LlmInterpreter &owner, const StepInput &input);
  mlir::LogicalResult run(mlir::func::FuncOp step, StepOutput &output);
  /// Takes back what the caches have grown by.
  void undo();
  void commit();

private:
  using Tensor = std::shared_ptr<const Matrix>;
  struct Batch {};
  // A weight, a state or the batch passes through calls as what it stands for.
  using RuntimeValue = std::variant<Tensor, llm::WeightOp, llm::StateOp, Batch>;
  using Frame = llvm::DenseMap<mlir::Value, RuntimeValue>;
  using Result = mlir::LogicalResult;

  Result call(mlir::func::FuncOp function, llvm::ArrayRef<RuntimeValue> arguments,
              llvm::SmallVectorImpl<RuntimeValue> &results);
  Result execute(mlir::Operation &op, Frame &frame);

  Result evaluate(llm::UseWeightOp op, Frame &frame);
  Result evaluate(llm::UseStateOp op, Frame &frame);
  Result evaluate(mlir::func::CallOp op, Frame &frame);

  // StepRowOps.cpp
  Result evaluate(llm::EmbeddingOp op, Frame &frame);
  Result evaluate(llm::PositionEmbeddingOp op, Frame &frame);
  Result evaluate(llm::RmsNormOp op, Frame &frame);
  Result evaluate(llm::LayerNormOp op, Frame &frame);
  Result evaluate(llm::LinearOp op, Frame &frame);
  Result evaluate(llm::FusedLinearOp op, Frame &frame);
  Result evaluate(llm::ActivationOp op, Frame &frame);
  Result evaluate(llm::GatedActivationOp op, Frame &frame);
  Result evaluate(llm::XieluOp op, Frame &frame);
  Result evaluate(llm::AddOp op, Frame &frame);
  Result evaluate(llm::MultiplyOp op, Frame &frame);
  Result evaluate(llm::ScaleOp op, Frame &frame);
  Result evaluate(llm::AffineOp op, Frame &frame);
  Result evaluate(llm::ClampOp op, Frame &frame);
  Result evaluate(llm::SoftcapOp op, Frame &frame);
  Result evaluate(llm::SoftmaxOp op, Frame &frame);
  Result evaluate(llm::SinkhornOp op, Frame &frame);
  Result evaluate(llm::SliceOp op, Frame &frame);
  Result evaluate(llm::ConcatOp op, Frame &frame);
  Result evaluate(llm::RepeatHeadsOp op, Frame &frame);
  Result evaluate(llm::PositionScaleOp op, Frame &frame);
  Result evaluate(llm::SelectRowsOp op, Frame &frame);
  Result evaluate(llm::RecordOp op, Frame &frame);

  // StepAttentionOps.cpp
  Result evaluate(llm::SplitHeadsOp op, Frame &frame);
  Result evaluate(llm::MergeHeadsOp op, Frame &frame);
  Result evaluate(llm::RopeTableOp op, Frame &frame);
  Result evaluate(llm::RopeOp op, Frame &frame);
  Result evaluate(llm::KvAppendOp op, Frame &frame);
  Result evaluate(llm::AttentionOp op, Frame &frame);
  Result evaluate(llm::SelectPositionsOp op, Frame &frame);

  // StepExpertOps.cpp
  Result evaluate(llm::RouterOp op, Frame &frame);
  Result evaluate(llm::ExpertLinearOp op, Frame &frame);
  Result evaluate(llm::HeadLinearOp op, Frame &frame);
  Result evaluate(llm::CombineOp op, Frame &frame);

  // StepCollectiveOps.cpp
  Result evaluate(llm::FillOp op, Frame &frame);
  Result evaluate(mlir::shard::AllReduceOp op, Frame &frame);
  Result evaluate(llm::AllGatherOp op, Frame &frame);
  Result evaluate(llm::SendOp op, Frame &frame);
  Result evaluate(llm::ReceiveOp op, Frame &frame);
  mlir::FailureOr<Matrix> exchange(mlir::Operation *op, int64_t kind, const Matrix *input, int64_t resultColumns,
                                   int64_t stage = 0, mlir::ArrayAttr segments = {});

  // StepRecurrentOps.cpp
  Result evaluate(llm::ShortConvOp op, Frame &frame);
  Result evaluate(llm::WindowPoolOp op, Frame &frame);
  Result evaluate(llm::LinearAttentionOp op, Frame &frame);

  const Matrix &tensor(Frame &frame, mlir::Value value) { return *std::get<Tensor>(frame.at(value)); }
  void set(Frame &frame, mlir::Value value, Matrix matrix) {
    frame[value] = std::make_shared<const Matrix>(std::move(matrix));
  }
  /// A copy of `input` with `f(element, index in its row)` for each element.
  template <typename F> Matrix mapped(const Matrix &input, F f) {
    Matrix result = input;
    for (size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = static_cast<float>(f(result.values[i], static_cast<int64_t>(i) % input.columns));
    return result;
  }
  mlir::FailureOr<Tensor> weight(Frame &frame, mlir::Value value);
  /// Null for a null value.
  mlir::FailureOr<Tensor> optionalWeight(Frame &frame, mlir::Value value) {
    return value ? weight(frame, value) : mlir::FailureOr<Tensor>(Tensor());
  }
  std::vector<Matrix> perSequence(const Matrix &rows) const;
  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  /// The cache behind a value; an error at `op` when this step has not grown it.
  mlir::FailureOr<llm::StateOp> grownState(mlir::Operation *op, mlir::Value value, Frame &frame);
  /// What the state will be after this step, per sequence; an error at `op` when it was updated before.
  mlir::FailureOr<std::vector<LlmInterpreter::Recurrent> *> update(mlir::Operation *op, llm::StateOp state);

  LlmInterpreter &owner;
  bool recording;
  std::vector<int32_t> tokens, positions;
  std::vector<size_t> sequenceOf, firstRow; // of a row; of a sequence, and one past the last
  std::set<std::string> grown;              // caches that have had their append
  std::map<std::string, std::vector<LlmInterpreter::Recurrent>> updated; // recurrent states, per sequence
  std::vector<std::vector<Matrix>> records;
  int depth = 0;
};

} // namespace llmc::reference
