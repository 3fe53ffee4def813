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
  if (static_cast<int64_t>(getStep()) < 1) // C3
    return emitOpError() << "has step " << static_cast<int64_t>(getStep()) << ", expected at least 1 position";
  return success();
}

LogicalResult RopeOp::verify() {
  if (failed(verifyRows(*this, getInput().getType(), 3))) // C1
    return failure();
  if (failed(verifyRows(*this, getTable().getType(), 2)))
    return failure();
  int64_t turned = channelsOf(getTable().getType()), channels = channelsOf(getType());
  int64_t first = static_cast<int64_t>(getFirst());
  if (first < 0 || first > channels - turned) // C2
    return emitOpError() << "turns " << turned << " channels from " << first << " on, but a head has " << channels;
  if (turned % 2 != 0) // C3
    return emitOpError() << "has a table of " << turned << " channels, expected as many cosines as sines";
  return success();
}

ParseResult KvAppendOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  KvType kv;
  Type key;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(kv) || parser.parseComma() || parser.parseType(key))
    return failure();
  if (operands.size() != 3 && operands.size() != 4)
    return parser.emitError(loc) << "has " << operands.size()
                                 << " operands, expected state, key, value (unless the state is latent) and batch";
  SmallVector<Type> types = {kv, key};
  if (operands.size() == 4)
    types.push_back(RankedTensorType::get({ShapedType::kDynamic, kv.getHeads(), kv.getValueDim()},
                                          parser.getBuilder().getF32Type()));
  types.push_back(BatchType::get(parser.getContext()));
  result.addTypes(kv);
  return parser.resolveOperands(operands, types, loc, result.operands);
}

void KvAppendOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printOperands(getOperands());
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getKv().getType() << ", " << getKey().getType();
}

LogicalResult KvAppendOp::verify() {
  if (failed(verifyRows(*this, getKey().getType(), 3)))
    return failure();
  auto kv = cast<KvType>(getKv().getType());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getKey().getType()).getShape();
  if (shape[1] != kv.getHeads() || shape[2] != kv.getHeadDim()) // C1
    return emitOpError() << "has keys of " << shape[1] << " x " << shape[2] << ", but the state keeps " << kv.getHeads()
                         << " x " << kv.getHeadDim();
  if (kv.getLatent() == static_cast<bool>(getValue()))
    return emitOpError() << (getValue() ? "has values, but the state is latent"
                                        : "has no values, but the state is not latent");
  if (getValue()) {
    if (failed(verifyRows(*this, getValue().getType(), 3)))
      return failure();
    ArrayRef<int64_t> values = cast<RankedTensorType>(getValue().getType()).getShape();
    if (values[1] != kv.getHeads() || values[2] != kv.getValueDim())
      return emitOpError() << "has values of " << values[1] << " x " << values[2] << ", but the state keeps "
                           << kv.getHeads() << " x " << kv.getValueDim();
  }
  if (getKv().getDefiningOp<KvAppendOp>()) // C2
    return emitOpError() << "grows a state that this step has grown already";
  for (Operation *user : getKv().getUsers()) // C3
    if (user != *this && isa<KvAppendOp>(user))
      return emitOpError() << "grows a state that another llm.kv_append grows too";
  return success();
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto query = dyn_cast<RankedTensorType>(adaptor.getQuery().getType());
  auto kv = dyn_cast<KvType>(adaptor.getKv().getType());
  if (!kv || !query || query.getRank() != 3) // C1
    return emitOptionalError(location, "'llm.attention' op has queries of ", adaptor.getQuery().getType(),
                             ", expected 3 dimensions: rows, heads and channels");
  types.push_back(
      RankedTensorType::get({ShapedType::kDynamic, query.getDimSize(1), kv.getValueDim()}, query.getElementType()));
  // A parser has put it among the attributes only.
  if (adaptor.getWithLogsum() || (adaptor.getAttributes() && adaptor.getAttributes().contains("with_logsum"))) // C7
    types.push_back(RankedTensorType::get({ShapedType::kDynamic, query.getDimSize(1)}, query.getElementType()));
  return success();
}

// A state that this step has grown: by the append that made it, or, as an argument of the layer, before this layer.
static LogicalResult verifyGrown(Operation *op, Value state) {
  if (!state.getDefiningOp<KvAppendOp>() && !isa<BlockArgument>(state))
    return op->emitOpError() << "reads a state that this step has not grown; append the rows' keys and values first";
  for (Operation *user : state.getUsers())
    if (isa<KvAppendOp>(user))
      return op->emitOpError() << "reads a state before this step has grown it; read the result of llm.kv_append";
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
      getSoftcap().isInfinity() || static_cast<int64_t>(getWindow()) < 0 || static_cast<int64_t>(getChunk()) < 0) // C3
    return emitOpError() << "has scale " << getScale().convertToFloat() << ", softcap " << getSoftcap().convertToFloat()
                         << ", window " << static_cast<int64_t>(getWindow()) << ", chunk "
                         << static_cast<int64_t>(getChunk())
                         << ", expected finite numbers, a positive scale and no negative value";
  if (getSinks() && cast<WeightType>(getSinks().getType()).getShape() != ArrayRef<int64_t>{shape[1]}) // C5
    return emitOpError() << "has sinks of " << shapeText(cast<WeightType>(getSinks().getType()).getShape())
                         << ", expected " << shapeText({shape[1]});
  if (getAlibi() && static_cast<int64_t>(getAlibi()->size()) != shape[1])
    return emitOpError() << "has " << getAlibi()->size() << " slopes, expected one for each of " << shape[1]
                         << " heads";
  if (getSelected() && failed(verifyRows(*this, getSelected().getType(), 2))) // C6
    return failure();
  if (kv.getEvery() > 1 && (getWindow() != 0 || getChunk() != 0 || getAlibi())) // C8
    return emitOpError() << "counts positions by a window, a chunk or slopes, but the state keeps one row of every "
                         << kv.getEvery();
  return verifyGrown(*this, getKv()); // C4
}

LogicalResult SelectPositionsOp::verify() {
  if (failed(verifyRows(*this, getQuery().getType(), 3)) || failed(verifyRows(*this, getWeights().getType(), 2)) ||
      failed(verifyRows(*this, getType(), 2)))
    return failure();
  auto kv = cast<KvType>(getKv().getType());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getQuery().getType()).getShape();
  if (shape[2] != kv.getHeadDim()) // C1
    return emitOpError() << "has queries of " << shape[2] << " channels, but the state keeps " << kv.getHeadDim();
  if (kv.getHeads() != 1) // C2
    return emitOpError() << "reads a state of " << kv.getHeads() << " heads, expected 1";
  if (channelsOf(getWeights().getType()) != shape[1]) // C3
    return emitOpError() << "has " << channelsOf(getWeights().getType()) << " weights for " << shape[1] << " heads";
  return verifyGrown(*this, getKv()); // C4
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

namespace {
int64_t rowBytes(int64_t rows, Type type) { return 4 * rows * elementsPerRow(type); }

int64_t bytesPerPosition(Value state) {
  auto kv = cast<KvType>(state.getType());
  return kv.getHeads() * (kv.getHeadDim() + kv.storedValueDim()) * (kv.getElementType().getIntOrFloatBitWidth() / 8);
}
int64_t rowsOf(Value state, int64_t positions) { return cast<KvType>(state.getType()).rowsOf(positions); }
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
  int64_t values = getValue() ? rowBytes(rows, getValue().getType()) : 0;
  return rowBytes(rows, getKey().getType()) + values + rowsOf(getKv(), rows) * bytesPerPosition(getKv());
}

namespace {
int64_t seenPositions(AttentionOp op, int64_t context) {
  int64_t seen = rowsOf(op.getKv(), context);
  for (int64_t bound : {static_cast<int64_t>(op.getWindow()), static_cast<int64_t>(op.getChunk()),
                        op.getSelected() ? channelsOf(op.getSelected().getType()) : 0})
    if (bound > 0)
      seen = std::min(seen, bound);
  return seen;
}
} // namespace

int64_t AttentionOp::flops(int64_t rows, int64_t context) {
  // Scores and weighted sum two each per channel, the softmax ten per score.
  int64_t heads = cast<RankedTensorType>(getQuery().getType()).getShape()[1];
  int64_t channels = elementsPerRow(getQuery().getType()) + elementsPerRow(getResult().getType());
  return rows * seenPositions(*this, context) * (2 * channels + 10 * heads);
}
int64_t AttentionOp::bytes(int64_t rows, int64_t context) {
  int64_t logsums = getLogsum() ? rowBytes(rows, getLogsum().getType()) : 0;
  return rowBytes(rows, getQuery().getType()) + rowBytes(rows, getResult().getType()) + logsums +
         seenPositions(*this, context) * bytesPerPosition(getKv());
}
// The choice takes about as much as one more head of one channel.
int64_t SelectPositionsOp::flops(int64_t rows, int64_t context) {
  int64_t heads = channelsOf(getWeights().getType());
  return rows * rowsOf(getKv(), context) * (2 * elementsPerRow(getQuery().getType()) + 3 * heads + 4);
}
int64_t SelectPositionsOp::bytes(int64_t rows, int64_t context) {
  return rowBytes(rows, getQuery().getType()) + rowBytes(rows, getWeights().getType()) + rowBytes(rows, getType()) +
         rowsOf(getKv(), context) * bytesPerPosition(getKv());
}
