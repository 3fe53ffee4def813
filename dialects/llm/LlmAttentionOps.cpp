// Verifiers and costs of the ops in LlmAttentionOps.td.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"

using namespace mlir;
using namespace llmc::llm;

//===-- verifiers
//---------------------------------------------------------------------------------------------------===//

LogicalResult SplitHeadsOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 2)) || failed(verifyRows(*this, getType(), 3)))
    return failure();
  if (channelsOf(getInput().getType()) != elementsPerRow(getType())) // C1
    return emitOpError() << "has " << channelsOf(getInput().getType()) << " channels, but the heads hold "
                         << elementsPerRow(getType());
  return success();
}

LogicalResult MergeHeadsOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 3)) || failed(verifyRows(*this, getType(), 2)))
    return failure();
  if (channelsOf(getType()) != elementsPerRow(getInput().getType())) // C1
    return emitOpError() << "has " << channelsOf(getType()) << " channels, but the heads hold "
                         << elementsPerRow(getInput().getType());
  return success();
}

LogicalResult RopeTableOp::verify() {
  if (failed(verifyRows(*this, getType(), 2)))
    return failure();
  if (getFrequencies().empty()) // C1
    return emitOpError() << "has no frequencies";
  int64_t expected = 2 * static_cast<int64_t>(getFrequencies().size());
  if (channelsOf(getType()) != expected) // C2
    return emitOpError() << "has " << channelsOf(getType()) << " channels, expected " << expected
                         << ": cosines and sines of " << expected / 2 << " frequencies";
  return success();
}

LogicalResult RopeOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 3))) // C1
    return failure();
  if (failed(verifyRows(*this, getTable().getType(), 2)))
    return failure();
  int64_t turned = channelsOf(getTable().getType()), channels = channelsOf(getType());
  if (turned > channels) // C2
    return emitOpError() << "turns " << turned << " channels, but a head has " << channels;
  if (turned % 2 != 0) // C3
    return emitOpError() << "has a table of " << turned << " channels, expected as many cosines as sines";
  return success();
}

LogicalResult KvAppendOp::verify() {
  if (failed(verifyRows(*this, getKey().getType(), 3)))
    return failure();
  auto kv = cast<KvType>(getKv().getType());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getKey().getType()).getShape();
  if (shape[1] != kv.getHeads() || shape[2] != kv.getHeadDim()) // C1
    return emitOpError() << "has keys of " << shape[1] << " x " << shape[2] << ", but the state keeps " << kv.getHeads()
                         << " x " << kv.getHeadDim();
  if (getKv().getDefiningOp<KvAppendOp>()) // C2
    return emitOpError() << "grows a state that this step has grown already";
  for (Operation *user : getKv().getUsers()) // C3
    if (user != *this && isa<KvAppendOp>(user))
      return emitOpError() << "grows a state that another llm.kv_append grows too";
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyRows(*this, getQuery().getType(), 3)))
    return failure();
  auto kv = cast<KvType>(getKv().getType());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getQuery().getType()).getShape();
  if (shape[2] != kv.getHeadDim()) // C1
    return emitOpError() << "has queries of " << shape[2] << " channels, but the state keeps " << kv.getHeadDim();
  if (shape[1] % kv.getHeads() != 0) // C2
    return emitOpError() << "has " << shape[1] << " query heads, expected a multiple of the " << kv.getHeads()
                         << " key-value heads";
  if (!(getScale().convertToFloat() > 0) || getScale().isInfinity() || !(getSoftcap().convertToFloat() >= 0) ||
      getSoftcap().isInfinity() || static_cast<int64_t>(getWindow()) < 0) // C3
    return emitOpError() << "has scale " << getScale().convertToFloat() << ", softcap " << getSoftcap().convertToFloat()
                         << " and window " << static_cast<int64_t>(getWindow())
                         << ", expected finite numbers, a positive scale and no negative value";
  if (!getKv().getDefiningOp<KvAppendOp>()) // C4
    return emitOpError() << "reads a state that this step has not grown; append the rows' keys and values first";
  return success();
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

namespace {
int64_t rowBytes(int64_t rows, Type type) { return 4 * rows * elementsPerRow(type); }

int64_t bytesPerPosition(Value state) {
  auto kv = cast<KvType>(state.getType());
  return 2 * kv.getHeads() * kv.getHeadDim() * (kv.getElementType().getIntOrFloatBitWidth() / 8);
}
} // namespace

int64_t SplitHeadsOp::flops(int64_t, int64_t) { return 0; }
int64_t SplitHeadsOp::bytes(int64_t, int64_t) { return 0; }
int64_t MergeHeadsOp::flops(int64_t, int64_t) { return 0; }
int64_t MergeHeadsOp::bytes(int64_t, int64_t) { return 0; }
// A sine or cosine counts as 8 operations.
int64_t RopeTableOp::flops(int64_t rows, int64_t) { return 9 * rows * elementsPerRow(getType()); }
int64_t RopeTableOp::bytes(int64_t rows, int64_t) { return rowBytes(rows, getType()); }
int64_t RopeOp::flops(int64_t rows, int64_t) { return 3 * rows * elementsPerRow(getType()); }
int64_t RopeOp::bytes(int64_t rows, int64_t) {
  return 2 * rowBytes(rows, getType()) + rowBytes(rows, getTable().getType());
}
int64_t KvAppendOp::flops(int64_t, int64_t) { return 0; }
int64_t KvAppendOp::bytes(int64_t rows, int64_t) {
  return 2 * rowBytes(rows, getKey().getType()) + rows * bytesPerPosition(getKv());
}
int64_t AttentionOp::flops(int64_t rows, int64_t context) {
  int64_t window = static_cast<int64_t>(getWindow());
  int64_t seen = window > 0 ? std::min(window, context) : context;
  // Scores and weighted sum two each per channel, the softmax ten per score.
  int64_t heads = cast<RankedTensorType>(getType()).getShape()[1];
  return rows * seen * (4 * elementsPerRow(getType()) + 10 * heads);
}
int64_t AttentionOp::bytes(int64_t rows, int64_t context) {
  int64_t window = static_cast<int64_t>(getWindow());
  int64_t seen = window > 0 ? std::min(window, context) : context;
  return 2 * rowBytes(rows, getType()) + seen * bytesPerPosition(getKv());
}
