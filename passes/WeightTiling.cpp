#include "passes/WeightTiling.h"

using namespace mlir;
using namespace llmc;

WeightTiling::WeightTiling(ModuleOp module, const llvm::MapVector<func::FuncOp, TaskGrouping> &groupings)
    : module_(module), groupings_(groupings), calls_(module), symbols_(module) {}

LogicalResult WeightTiling::requireSymbol(llm::UseWeightOp use, int64_t tile, int64_t interleave) {
  auto symbol = symbols_.lookup<llm::WeightOp>(use.getSymbol());
  auto type = cast<llm::WeightType>(symbol.getType());
  llm::WeightType tiled = type.withTiles(tile, interleave);
  if (type.getTile() && tiled != type)
    return use.emitOpError() << "needs tiles of " << tile << ", but @" << use.getSymbol() << " is already packed as "
                             << type;
  symbol.setTypeAttr(TypeAttr::get(tiled));
  use.getResult().setType(tiled);
  return success();
}

LogicalResult WeightTiling::require(Value weight, int64_t tile, int64_t interleave) {
  auto type = cast<llm::WeightType>(weight.getType());
  if (type.getForm() == llm::WeightForm::Any || type.getForm() == llm::WeightForm::Plain)
    return emitError(weight.getLoc()) << "a matrix product reads " << type << "; run llmc-choose-weight-forms first";
  if (auto use = weight.getDefiningOp<llm::UseWeightOp>())
    return requireSymbol(use, tile, interleave);
  auto argument = cast<BlockArgument>(weight);
  for (func::CallOp call : calls_.callsOf(cast<func::FuncOp>(argument.getOwner()->getParentOp()))) {
    auto use = call.getOperand(argument.getArgNumber()).getDefiningOp<llm::UseWeightOp>();
    if (!use)
      return call.emitOpError() << "passes a weight that is no llm.use_weight";
    if (failed(requireSymbol(use, tile, interleave)))
      return failure();
  }
  argument.setType(type.withTiles(tile, interleave));
  return success();
}

LogicalResult WeightTiling::apply() {
  for (auto &[function, grouping] : groupings_)
    for (const ProductTask &task : grouping.products())
      if (failed(require(task.anchor->getOperand(1), task.tile, task.interleave)))
        return failure();
  // A convolution has the channels of a block of its state in a tile.
  for (auto &[function, grouping] : groupings_) {
    WalkResult result = func::FuncOp(function).walk([&](llm::ShortConvOp op) {
      return succeeded(require(op.getWeight(), op.getState().getType().blockLanes(), 0)) ? WalkResult::advance()
                                                                                         : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  // An embedding reads single rows: it takes any tiles, those of the tied head where there is one. An exact table is
  // plain.
  for (auto &[function, grouping] : groupings_) {
    WalkResult result = func::FuncOp(function).walk([&](llm::EmbeddingOp op) {
      auto use = op.getWeight().getDefiningOp<llm::UseWeightOp>();
      bool tiled = use && cast<llm::WeightType>(symbols_.lookup<llm::WeightOp>(use.getSymbol()).getType()).getTile();
      int64_t channels = cast<llm::WeightType>(op.getWeight().getType()).getShape()[0];
      return op.getExact() || tiled ||
                     succeeded(require(op.getWeight(), std::min<int64_t>(64, (channels + 15) / 16 * 16), 0))
                 ? WalkResult::advance()
                 : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  // Every use of a symbol sees the type that was settled last.
  module_.walk([&](llm::UseWeightOp use) {
    use.getResult().setType(cast<llm::WeightType>(symbols_.lookup<llm::WeightOp>(use.getSymbol()).getType()));
  });
  return success();
}
