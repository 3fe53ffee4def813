#include "passes/CheckTileForms.h"
#include "dialects/llm/LlmShapes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llmc {
namespace {

// What an op asks for that no kernel does, as it continues the op's name; nothing when there is a kernel.
using Missing = std::optional<std::string>;

Missing missing(Operation *op) {
  return llvm::TypeSwitch<Operation *, Missing>(op)
      .Case<llm::WeightOp, llm::StateOp, llm::UseWeightOp, llm::UseStateOp, llm::LinearOp, llm::FusedLinearOp,
            llm::ExpertLinearOp, llm::HeadLinearOp, llm::RouterOp, llm::AttentionOp, llm::KvAppendOp,
            llm::SelectPositionsOp, llm::RecordOp, llm::SplitHeadsOp, llm::MergeHeadsOp, llm::LinearAttentionOp,
            llm::ShortConvOp>([](auto) { return std::nullopt; })
      .Case<llm::ActivationOp, llm::AddOp, llm::AffineOp, llm::ClampOp, llm::CombineOp, llm::ConcatOp, llm::EmbeddingOp,
            llm::GatedActivationOp, llm::LayerNormOp, llm::MultiplyOp, llm::PositionEmbeddingOp, llm::PositionScaleOp,
            llm::RepeatHeadsOp, llm::RmsNormOp, llm::RopeOp, llm::RopeTableOp, llm::ScaleOp, llm::SelectRowsOp,
            llm::SliceOp, llm::SoftcapOp, llm::SoftmaxOp, llm::XieluOp>([](auto) { return std::nullopt; })
      .Default([](Operation *other) {
        return isa_and_nonnull<llm::LlmDialect>(other->getDialect()) ? Missing("") : std::nullopt;
      });
}

} // namespace

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
