#include "passes/CheckTileForms.h"
#include "dialects/llm/LlmShapes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llmc {
namespace {

// What an op asks for that no kernel does, as it continues the op's name; nothing when there is a kernel.
using Missing = std::optional<std::string>;

Missing missing(Operation *op) {
  return llvm::TypeSwitch<Operation *, Missing>(op)
      .Case([](llm::SinkhornOp matrix) {
        int64_t size = llm::channelsOf(matrix.getType());
        return size <= llm::stateLanes ? Missing()
                                       : Missing(" of " + std::to_string(size) + " x " + std::to_string(size));
      })
      .Case([](llm::WindowPoolOp pool) {
        bool fits = !pool.getState().getType().lanesAreKeys();
        return fits ? Missing() : Missing(" of fewer than " + std::to_string(llm::stateLanes) + " channels");
      })
      .Case<llm::WeightOp, llm::StateOp, llm::UseWeightOp, llm::UseStateOp, llm::LinearOp, llm::FusedLinearOp,
            llm::ExpertLinearOp, llm::HeadLinearOp, llm::RouterOp, llm::AttentionOp, llm::KvAppendOp,
            llm::SelectPositionsOp, llm::RecordOp, llm::SplitHeadsOp, llm::MergeHeadsOp, llm::LinearAttentionOp,
            llm::ShortConvOp, llm::AllGatherOp, llm::SendOp, llm::ReceiveOp, llm::FillOp, shard::GridOp>(
          [](auto) { return std::nullopt; })
      .Case([](shard::AllReduceOp reduce) {
        bool isGroupSum = reduce.getReduction() == shard::ReductionKind::Sum &&
                          reduce.getGridAxes() == ArrayRef<shard::GridAxis>{1};
        return isGroupSum ? Missing() : Missing(" other than sums over the ranks of a group");
      })
      .Case<llm::ActivationOp, llm::AddOp, llm::AffineOp, llm::ClampOp, llm::CombineOp, llm::ConcatOp, llm::EmbeddingOp,
            llm::GatedActivationOp, llm::LayerNormOp, llm::MultiplyOp, llm::PositionEmbeddingOp, llm::PositionScaleOp,
            llm::RepeatHeadsOp, llm::RmsNormOp, llm::RopeOp, llm::RopeTableOp, llm::ScaleOp, llm::SelectRowsOp,
            llm::SliceOp, llm::SoftcapOp, llm::SoftmaxOp, llm::XieluOp>([](auto) { return std::nullopt; })
      .Default([](Operation *other) {
        return isa_and_nonnull<llm::LlmDialect, shard::ShardDialect>(other->getDialect()) ? Missing("") : std::nullopt;
      });
}

// Ops that a kernel of their own or a single tile op computes, with the shape of the task; other ops of the dialect are
// arithmetic of several tile ops in a task of rows.
struct NativeForm {
  const char *op, *kernel;
};
constexpr NativeForm nativeForms[] = {
    {"linear", "dot"},
    {"fused_linear", "dot"},
    {"expert_linear", "dot"},
    {"head_linear", "dot"},
    {"attention", "attend"},
    {"select_positions", "select_positions"},
    {"kv_append", "rows"},
    {"embedding", "rows"},
    {"position_embedding", "rows"},
    {"add", "rows"},
    {"scale", "rows"},
    {"multiply", "rows"},
    {"slice", "rows"},
    {"concat", "rows"},
    {"repeat_heads", "rows"},
    {"select_rows", "rows"},
    {"router", "rows"},
    {"short_conv", "recurrent"},
    {"linear_attention", "recurrent"},
    {"window_pool", "recurrent"},
    {"sinkhorn", "rows"},
    {"split_heads", "view"},
    {"merge_heads", "view"},
    {"record", "rows"},
    {"combine", "rows"},
    {"fill", "rows"},
    {"all_reduce", "collective"},
    {"all_gather", "collective"},
    {"send", "collective"},
    {"receive", "collective"},
};

bool takesCodes(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto weight = dyn_cast<llm::WeightType>(type);
    return weight && weight.takesCodes();
  });
}

} // namespace

TileForm tileFormOf(Operation *op) {
  if (Missing what = missing(op))
    return {TileForm::Status::Missing, "", "no kernel for " + (op->getName().getStringRef() + *what).str() + " yet"};
  StringRef name = op->getName().stripDialect();
  for (const NativeForm &native : nativeForms)
    if (name == native.op)
      return {TileForm::Status::Native, takesCodes(op) ? "quantized_dot" : native.kernel, ""};
  return {TileForm::Status::Composed, "rows", "several tile ops in a task of rows"};
}

LogicalResult checkTileForms(ModuleOp module) {
  llvm::StringSet<> said; // one error for a cause, not one for each layer
  module.walk([&](Operation *op) {
    Missing what = missing(op);
    if (!what)
      return;
    std::string name = (op->getName().getStringRef() + *what).str();
    if (said.insert(name).second)
      op->emitError() << "no kernel for " << name << " yet";
  });
  return success(said.empty());
}

} // namespace llmc
