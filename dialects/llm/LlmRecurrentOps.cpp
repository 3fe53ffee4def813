// Verifiers and costs of the ops in LlmRecurrentOps.td.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"

using namespace mlir;
using namespace llmc::llm;

namespace {

// Each op that takes a recurrent state updates it.
LogicalResult verifyOnlyUpdate(Operation *op, Value state) {
  for (Operation *user : state.getUsers())
    if (user != op && isa<ShortConvOp, WindowPoolOp, LinearAttentionOp>(user))
      return op->emitOpError() << "updates a state that another " << user->getName() << " updates too";
  return success();
}

} // namespace

LogicalResult ShortConvOp::verify() {
  if (failed(verifyRows(*this, getType(), 2)))
    return failure();
  ArrayRef<int64_t> shape = cast<WeightType>(getWeight().getType()).getShape();
  int64_t channels = channelsOf(getType());
  if (shape.size() != 2 || shape[0] != channels || shape[1] < 2) // C1
    return emitOpError() << "has a weight of " << shapeText(shape) << ", expected [" << channels << ", K] with K >= 2";
  auto state = cast<RecurrentType>(getState().getType());
  if (state.getHeads() != 1 || state.getKeys() != channels || state.getValues() != shape[1] - 1) // C2
    return emitOpError() << "has a state of " << state << ", expected 1 x " << channels << " x " << shape[1] - 1;
  if (getBias() && cast<WeightType>(getBias().getType()).getShape() != ArrayRef<int64_t>{channels}) // C3
    return emitOpError() << "has a bias of " << shapeText(cast<WeightType>(getBias().getType()).getShape())
                         << ", expected " << shapeText({channels});
  return verifyOnlyUpdate(*this, getState()); // C4
}

LogicalResult WindowPoolOp::verify() {
  if (failed(verifyRows(*this, getValue().getType(), 2)) || failed(verifyRows(*this, getType(), 2)))
    return failure();
  int64_t channels = channelsOf(getType()), given = channelsOf(getValue().getType());
  if (given != channels && given != 2 * channels) // C1
    return emitOpError() << "makes " << channels << " channels of " << given << ", expected as many or twice as many";
  int64_t sums = given == channels ? 1 : 3;
  auto state = cast<RecurrentType>(getState().getType());
  if (state.getHeads() != 1 || state.getKeys() != 3 * sums || state.getValues() != channels) // C2
    return emitOpError() << "has a state of " << state << ", expected 1 x " << 3 * sums << " x " << channels;
  if (static_cast<int64_t>(getWindow()) < 1) // C3
    return emitOpError() << "has windows of " << static_cast<int64_t>(getWindow()) << " positions, expected at least 1";
  return verifyOnlyUpdate(*this, getState()); // C4
}

LogicalResult LinearAttentionOp::verify() {
  for (Value value : {getQuery(), getValue()})
    if (failed(verifyRows(*this, value.getType(), 3)))
      return failure();
  auto key = cast<RankedTensorType>(getKey().getType()), value = cast<RankedTensorType>(getValue().getType());
  int64_t heads = value.getDimSize(1), keyHeads = key.getDimSize(1);
  if (heads % keyHeads != 0) // C1
    return emitOpError() << "has " << heads << " heads, expected a multiple of the " << keyHeads << " key heads";
  auto state = cast<RecurrentType>(getState().getType());
  if (state.getHeads() != heads || state.getKeys() != channelsOf(key) || state.getValues() != channelsOf(value)) // C2
    return emitOpError() << "has a state of " << state << ", expected " << heads << " x " << channelsOf(key) << " x "
                         << channelsOf(value);
  if (getDecay()) {
    auto decay = cast<RankedTensorType>(getDecay().getType());
    bool perHead = decay.getRank() == 2 && decay.getDimSize(1) == heads;
    bool perChannel = decay.getRank() == 3 && decay.getDimSize(1) == heads && channelsOf(decay) == channelsOf(key);
    if (!perHead && !perChannel) // C3
      return emitOpError() << "has a decay of " << decay << ", expected a number per head or per head and key channel";
  }
  if (getBeta()) {
    auto beta = cast<RankedTensorType>(getBeta().getType());
    if (beta.getRank() != 2 || beta.getDimSize(1) != heads) // C4
      return emitOpError() << "has a beta of " << beta << ", expected a number for each of " << heads << " heads";
  }
  return verifyOnlyUpdate(*this, getState()); // C5
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

namespace {
// State read and written once per row; several rows of a sequence keep it in cache.
int64_t stateBytes(Value state) { return 8 * cast<RecurrentType>(state.getType()).elements(); }
} // namespace

int64_t ShortConvOp::flops(int64_t rows, int64_t) {
  return 2 * rows * elementsPerRow(getType()) * cast<WeightType>(getWeight().getType()).getShape()[1];
}
int64_t ShortConvOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows) + stateBytes(getState()); }
// Two exponentials and seven operations for each channel given, and as much to put two sums together.
int64_t WindowPoolOp::flops(int64_t rows, int64_t) {
  int64_t given = elementsPerRow(getValue().getType()), channels = elementsPerRow(getType());
  return 23 * rows * (given > channels ? given + channels : given);
}
int64_t WindowPoolOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows) + stateBytes(getState()); }
int64_t LinearAttentionOp::flops(int64_t rows, int64_t) {
  int64_t perElement = 4 + (getDecay() ? 1 : 0) + (getBeta() ? 2 : 0);
  return rows * perElement * cast<RecurrentType>(getState().getType()).elements();
}
int64_t LinearAttentionOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows) + stateBytes(getState()); }
