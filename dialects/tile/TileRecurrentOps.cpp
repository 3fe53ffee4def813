// Verifiers of the ops in TileRecurrentOps.td.
#include "dialects/tile/TileDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::tile;

namespace {

int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }

} // namespace

LogicalResult ConvolveOp::verify() {
  llm::WeightType weight = getWeight().getType();
  llm::RecurrentType state = getState().getType();
  if (weight.getShape().size() != 2 || weight.getForm() != llm::WeightForm::F32 ||
      weight.getTile() != sizeOf(getInput())) // C1
    return emitOpError() << "convolves " << getInput().getType() << " with " << weight
                         << ", expected a weight packed as f32 in tiles of " << sizeOf(getInput());
  if (state.getHeads() != 1 || state.getKeys() != weight.getShape()[0] ||
      state.getValues() != weight.getShape()[1] - 1 || !state.lanesAreKeys()) // C2
    return emitOpError() << "keeps " << state << ", expected 1 x " << weight.getShape()[0] << " x "
                         << weight.getShape()[1] - 1 << ", and fewer than " << llm::stateLanes << " inputs";
  if (state.blockLanes() != weight.getTile()) // C3
    return emitOpError() << "has tiles of " << weight.getTile() << " channels, but the state has blocks of "
                         << state.blockLanes();
  return success();
}

int64_t RecurOp::numHeads() { return std::max<int64_t>(1, sizeOf(getValue()) / getState().getType().getValues()); }

LogicalResult RecurOp::verify() {
  llm::RecurrentType state = getState().getType();
  int64_t size = sizeOf(getValue()), keys = state.getKeys(), values = state.getValues(), heads = numHeads();
  if (sizeOf(getQuery()) != keys) // C1
    return emitOpError() << "has a query of " << sizeOf(getQuery()) << " elements, but the state " << keys << " keys";
  int64_t perHead = std::min(values, state.blockLanes());
  bool fits = state.lanesAreKeys() ? size % values == 0 && state.getHeads() % heads == 0 : size == perHead;
  if (!fits) // C2
    return emitOpError() << "has " << size << " values of " << state << ", expected "
                         << (state.lanesAreKeys() ? "those of whole heads that divide all" : std::to_string(perHead));
  auto hasSize = [&](Value tile, int64_t expected) { return !tile || sizeOf(tile) == expected; };
  if (!hasSize(getDecay(), heads) && !hasSize(getDecay(), heads * keys)) // C3
    return emitOpError() << "has a decay of " << sizeOf(getDecay()) << " elements, expected " << heads << " or "
                         << heads * keys;
  if (!hasSize(getBeta(), heads)) // C4
    return emitOpError() << "has a beta of " << sizeOf(getBeta()) << " elements, expected " << heads;
  return success();
}

LogicalResult PoolOp::verify() {
  llm::RecurrentType state = getState().getType();
  int64_t given = sizeOf(getValue()), size = sizeOf(getResult()), lines = given == size ? 3 : 9;
  if (given != size && given != 2 * size) // C1
    return emitOpError() << "makes " << size << " elements of " << given << ", expected as many or twice as many";
  if (state.getHeads() != 1 || state.lanesAreKeys() || state.getKeys() != lines) // C2
    return emitOpError() << "keeps " << state << ", expected 1 x " << lines << " x at least " << llm::stateLanes;
  if (size != state.blockLanes()) // C3
    return emitOpError() << "has tiles of " << size << " channels, but the state has blocks of " << state.blockLanes();
  if (static_cast<int64_t>(getWindow()) < 1) // C4
    return emitOpError() << "has windows of " << static_cast<int64_t>(getWindow()) << " positions, expected at least 1";
  return success();
}
