// Verifiers of the tile ops, and the text form of tile.task. Each check carries the number of its constraint.
#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::tile;

#define GET_OP_CLASSES
#include "dialects/tile/TileOps.cpp.inc"

bool llmc::tile::isTileType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 && tensor.getDimSize(0) > 0 && tensor.getDimSize(0) <= llm::maxSize;
}

int64_t llmc::tile::largestCodeOf(Type codes) { return getElementTypeOrSelf(codes).isInteger(8) ? 127 : 127 * 256; }

namespace {

int64_t sizeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getDimSize(0); }

bool isPacked(llm::WeightType weight) { return weight.getShape().size() >= 2 && weight.getTile() > 0; }

LogicalResult verifyMatrix(Operation *op, llm::WeightType weight, Value matrix) {
  if ((weight.getShape().size() == 3) != static_cast<bool>(matrix))
    return op->emitOpError() << "reads " << weight << (matrix ? " with" : " without")
                             << " the index of a matrix, which a stack of matrices needs and nothing else has";
  return success();
}

int64_t groupsOf(int64_t elements) { return (elements + 63) / 64 * 2; }

LogicalResult verifyPaged(Operation *op, llm::KvType kv) {
  if (!kv.isPaged())
    return op->emitOpError() << "works on " << kv << ", expected a paged cache";
  return success();
}

} // namespace

//===-- program
//-----------------------------------------------------------------------------------------------------===//

// tile.task @name rows(%row, %column of 9) (%a: type, ...) [schedule {...}] { body }
ParseResult TaskOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes))
    return failure();
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Space> space = symbolizeSpace(keyword);
  if (!space)
    return parser.emitError(loc) << "unknown space '" << keyword << "' (known = rows logit_rows)";
  result.addAttribute(getSpaceAttrName(result.name), SpaceAttr::get(parser.getContext(), *space));
  OpAsmParser::Argument row, column;
  int64_t columns = 0;
  if (parser.parseLParen() || parser.parseArgument(row) || parser.parseComma() || parser.parseArgument(column) ||
      parser.parseKeyword("of") || parser.parseInteger(columns) || parser.parseRParen())
    return failure();
  result.addAttribute(getColumnsAttrName(result.name), parser.getBuilder().getI64IntegerAttr(columns));
  row.type = column.type = parser.getBuilder().getIndexType();
  SmallVector<OpAsmParser::Argument> arguments, operands;
  if (parser.parseArgumentList(operands, OpAsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  arguments = {row, column};
  arguments.append(operands);
  if (succeeded(parser.parseOptionalKeyword("schedule"))) {
    DictionaryAttr schedule;
    if (parser.parseAttribute(schedule, getScheduleAttrName(result.name), result.attributes))
      return failure();
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty()) {
    body->emplaceBlock();
    for (OpAsmParser::Argument &argument : arguments)
      body->addArgument(argument.type, result.location);
  }
  return success();
}

void TaskOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << ' ' << stringifySpace(getSpace()) << '(' << getRow() << ", " << getColumn() << " of " << getColumns()
          << ") (";
  llvm::interleaveComma(getOperandArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  if (getSchedule())
    printer << " schedule " << *getSchedule();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getSpaceAttrName(), getColumnsAttrName(), getScheduleAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

LogicalResult TaskOp::verify() {
  if (static_cast<int64_t>(getColumns()) < 1) // C1
    return emitOpError() << "has " << static_cast<int64_t>(getColumns()) << " column tiles, expected at least 1";
  if (getBody().getNumArguments() < 2 || !getRow().getType().isIndex() || !getColumn().getType().isIndex()) // C2
    return emitOpError() << "needs a row and a column index as its first two arguments";
  for (BlockArgument argument : getOperandArguments())
    if (!isa<RowsType, llm::WeightType, llm::KvType, llm::RecurrentType, llm::BatchType>(argument.getType())) // C3
      return emitOpError() << "takes " << argument.getType() << ", expected rows, a weight, a state or the batch";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto task = symbols.lookupNearestSymbolFrom<TaskOp>(*this, getTaskAttr());
  if (!task) // C1
    return emitOpError() << "names @" << getTask() << ", which is no tile.task of this module";
  ArrayRef<BlockArgument> expected = task.getOperandArguments();
  if (getOperands().size() != expected.size()) // C2
    return emitOpError() << "has " << getOperands().size() << " operands, but @" << getTask() << " takes "
                         << expected.size();
  for (auto [operand, argument] : llvm::zip(getOperands(), expected))
    if (operand.getType() != argument.getType())
      return emitOpError() << "passes " << operand.getType() << ", but @" << getTask() << " takes "
                           << argument.getType();
  return success();
}

LogicalResult AllocOp::verify() {
  if (static_cast<int64_t>(getOffset().value_or(0)) < 0) // C1
    return emitOpError() << "has offset " << static_cast<int64_t>(*getOffset()) << ", expected 0 or more";
  return success();
}

//===-- memory
//------------------------------------------------------------------------------------------------------===//

LogicalResult LoadVectorOp::verify() {
  llm::WeightType weight = getWeight().getType();
  if (weight.getShape().size() != 1 && weight.getForm() != llm::WeightForm::Plain) // C1
    return emitOpError() << "reads " << weight << ", expected a weight of one dimension or a plain one";
  return success();
}

LogicalResult GatherOp::verify() {
  llm::WeightType weight = getWeight().getType();
  if (!isPacked(weight) || weight.getShape().size() != 2 || weight.getShape()[1] != sizeOf(getResult())) // C1
    return emitOpError() << "reads rows of " << weight << " as " << getType()
                         << ", expected a packed weight and its row";
  return success();
}

LogicalResult RecordOp::verify() {
  if (static_cast<int64_t>(getIndex()) < 0) // C1
    return emitOpError() << "has index " << static_cast<int64_t>(getIndex()) << ", expected 0 or more";
  return success();
}

//===-- arithmetic
//--------------------------------------------------------------------------------------------------===//

LogicalResult DotOp::verify() {
  llm::WeightType weight = getWeight().getType();
  using Form = llm::WeightForm;
  bool bf16 = getInput().getType().getElementType().isBF16();
  bool fits = bf16 ? weight.getForm() == Form::BF16 : weight.getForm() == Form::F32 || weight.getForm() == Form::F8;
  if (!isPacked(weight) || !fits) // C1
    return emitOpError() << "multiplies " << getInput().getType() << " with " << weight
                         << ", expected a packed weight of the same element type";
  if (sizeOf(getInput()) != weight.getShape().back() || sizeOf(getResult()) != weight.getTile()) // C2
    return emitOpError() << "makes " << getType() << " of " << getInput().getType() << ", expected " << weight.getTile()
                         << " of " << weight.getShape().back() << " elements";
  return verifyMatrix(*this, weight, getMatrix()); // C3
}

LogicalResult QuantizeOp::verify() {
  int64_t groups = groupsOf(sizeOf(getInput()));
  if (sizeOf(getScales()) != groups || sizeOf(getCodes()) != 32 * groups) // C1
    return emitOpError() << "makes " << sizeOf(getCodes()) << " codes and " << sizeOf(getScales())
                         << " scales, expected " << 32 * groups << " and " << groups;
  return success();
}

LogicalResult ScaledDotOp::verify() {
  llm::WeightType weight = getWeight().getType();
  if (!isPacked(weight) || !weight.takesCodes()) // C1
    return emitOpError() << "multiplies with " << weight << ", expected a weight packed as i8, i4, i4m or f4";
  int64_t groups = groupsOf(weight.getShape().back());
  if (sizeOf(getCodes()) != 32 * groups || sizeOf(getScales()) != groups || sizeOf(getResult()) != weight.getTile())
    return emitOpError() << "makes " << getType() << " of " << sizeOf(getCodes()) << " codes and " // C2
                         << sizeOf(getScales()) << " scales, expected " << weight.getTile() << " of " << 32 * groups
                         << " and " << groups;
  return verifyMatrix(*this, weight, getMatrix()); // C3
}

LogicalResult SliceOp::verify() {
  int64_t offset = static_cast<int64_t>(getOffset()), size = sizeOf(getResult());
  if (offset < 0 || offset > sizeOf(getInput()) - size) // C1
    return emitOpError() << "takes " << size << " elements from " << offset << " on of " << sizeOf(getInput());
  return success();
}

LogicalResult ConcatOp::verify() {
  int64_t size = 0;
  for (Value input : getInputs())
    size += sizeOf(input);
  if (size != sizeOf(getResult())) // C1
    return emitOpError() << "makes " << sizeOf(getResult()) << " elements of " << size;
  return success();
}

LogicalResult RepeatOp::verify() {
  if (sizeOf(getResult()) % sizeOf(getInput()) != 0) // C1
    return emitOpError() << "makes " << sizeOf(getResult()) << " elements of " << sizeOf(getInput())
                         << ", expected a multiple";
  return success();
}

LogicalResult SwapPairsOp::verify() {
  if (sizeOf(getInput()) % 2 != 0) // C1
    return emitOpError() << "has " << sizeOf(getInput()) << " elements, expected pairs";
  return success();
}

int64_t SinkhornOp::matrixSize() {
  int64_t elements = sizeOf(getInput()), size = 1;
  while (size * size < elements)
    ++size;
  return size * size == elements ? size : 0;
}

LogicalResult SinkhornOp::verify() {
  if (matrixSize() < 1 || matrixSize() > llm::stateLanes) // C1
    return emitOpError() << "takes " << sizeOf(getInput()) << " elements, expected a square matrix of at most "
                         << llm::stateLanes << " x " << llm::stateLanes;
  if (static_cast<int64_t>(getIterations()) < 1) // C2
    return emitOpError() << "has " << static_cast<int64_t>(getIterations()) << " iterations, expected at least 1";
  if (!(getEps().convertToFloat() > 0) || getEps().isInfinity()) // C3
    return emitOpError() << "has eps " << getEps().convertToFloat() << ", expected a finite number above 0";
  return success();
}

LogicalResult ChooseOp::verify() {
  int64_t elements = sizeOf(getInput()), groups = static_cast<int64_t>(getGroups());
  int64_t topGroups = static_cast<int64_t>(getTopGroups()), sum = static_cast<int64_t>(getGroupSum());
  if (groups < 1 || elements % groups != 0) // C1
    return emitOpError() << "has " << groups << " groups of " << elements << " elements, expected groups of equal size";
  if (topGroups < 1 || topGroups > groups) // C2
    return emitOpError() << "keeps " << topGroups << " of " << groups << " groups, expected 1 to " << groups;
  if (sum < 1 || sum > std::min<int64_t>(2, elements / groups)) // C3
    return emitOpError() << "counts the " << sum << " largest of " << elements / groups
                         << " elements of a group, expected 1 or 2 of them";
  if (sizeOf(getResult()) > topGroups * (elements / groups)) // C4
    return emitOpError() << "chooses " << sizeOf(getResult()) << " of " << topGroups * (elements / groups)
                         << " elements";
  return success();
}

LogicalResult WhenOp::verify() {
  int64_t begin = static_cast<int64_t>(getBegin()), end = static_cast<int64_t>(getEnd());
  if (begin < 0 || begin >= end) // C1
    return emitOpError() << "runs for columns " << begin << " to " << end << ", expected 0 <= begin < end";
  if (getBody().getNumArguments() != 0) // C2
    return emitOpError() << "has a body with " << getBody().getNumArguments() << " arguments, expected none";
  return success();
}

//===-- cache
//-------------------------------------------------------------------------------------------------------===//

LogicalResult AppendOp::verify() {
  llm::KvType kv = getKv().getType();
  if (failed(verifyPaged(*this, kv))) // C1
    return failure();
  bool isKey = getHalf() == KvHalf::Key;
  if (!isKey && kv.getLatent()) // C2
    return emitOpError() << "writes a value, but the values of " << kv << " are the beginnings of its keys";
  int64_t channels = isKey ? kv.getHeadDim() : kv.getValueDim();
  if (sizeOf(getValue()) != channels)
    return emitOpError() << "writes " << sizeOf(getValue()) << " channels, but " << (isKey ? "a head" : "a value")
                         << " has " << channels;
  return success();
}

// C2 of every op with a query.
static LogicalResult verifyWholeHeads(llvm::function_ref<InFlightDiagnostic()> emitError, Type query, llm::KvType kv) {
  int64_t size = cast<RankedTensorType>(query).getDimSize(0);
  if (size % kv.getHeadDim() == 0)
    return success();
  return emitError() << "has queries of " << size << " channels, expected whole heads of " << kv.getHeadDim();
}

static LogicalResult verifySpan(Operation *op, int64_t span, llm::KvType kv) {
  if (span >= 0 && span % kv.getPage() == 0)
    return success();
  return op->emitOpError() << "has spans of " << span << " positions, expected a multiple of the page of "
                           << kv.getPage();
}

LogicalResult AttendOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto kv = dyn_cast<llm::KvType>(adaptor.getKv().getType());
  if (!kv || !isTileType(adaptor.getQuery().getType()))
    return emitOptionalError(location, "'tile.attend' op takes ", adaptor.getQuery().getType(), " and ",
                             adaptor.getKv().getType(), ", expected a tile and a cache");
  int64_t heads = std::max<int64_t>(1, sizeOf(adaptor.getQuery()) / kv.getHeadDim());
  types.push_back(RankedTensorType::get({heads * kv.getValueDim()}, Float32Type::get(context)));
  // A parser has put it among the attributes only.
  if (adaptor.getWithLogsum() || (adaptor.getAttributes() && adaptor.getAttributes().contains("with_logsum"))) // C8
    types.push_back(RankedTensorType::get({heads}, Float32Type::get(context)));
  return success();
}

int64_t llmc::tile::partialChannels(llm::KvType kv, int64_t heads) {
  return heads * ((kv.getValueDim() + 15) / 16 * 16 + 32);
}

LogicalResult AttendOp::verify() {
  llm::KvType kv = getKv().getType();
  if (failed(verifyPaged(*this, kv))) // C1
    return failure();
  if (failed(verifyWholeHeads([&] { return emitOpError(); }, getQuery().getType(), kv))) // C2
    return failure();
  if (!(getScale().convertToFloat() > 0) || getScale().isInfinity() || !(getSoftcap().convertToFloat() >= 0) ||
      getSoftcap().isInfinity() || static_cast<int64_t>(getWindow()) < 0 || static_cast<int64_t>(getChunk()) < 0) // C3
    return emitOpError() << "has scale " << getScale().convertToFloat() << ", softcap " << getSoftcap().convertToFloat()
                         << ", window " << static_cast<int64_t>(getWindow()) << " and chunk "
                         << static_cast<int64_t>(getChunk())
                         << ", expected finite numbers, a positive scale and no negative value";
  if (kv.getEvery() > 1 && (getWindow() != 0 || getChunk() != 0 || getAlibi()))
    return emitOpError() << "counts positions by a window, a chunk or slopes, but " << kv << " keeps one row of every "
                         << kv.getEvery();
  if (failed(verifySpan(*this, static_cast<int64_t>(getSpan()), kv))) // C4
    return failure();
  int64_t group = sizeOf(getQuery()) / kv.getHeadDim();
  auto task = (*this)->getParentOfType<TaskOp>();
  int64_t heads = group * static_cast<int64_t>(task.getColumns());
  if (getPartials() && getPartials().getType().getChannels() < partialChannels(kv, heads)) // C5
    return emitOpError() << "has partials of " << getPartials().getType().getChannels() << " channels, but " << heads
                         << " heads need " << partialChannels(kv, heads);
  if (getSinks() && sizeOf(getSinks()) != group) // C6
    return emitOpError() << "has " << sizeOf(getSinks()) << " sinks for the " << group << " heads of its query";
  if (getAlibi() && static_cast<int64_t>(getAlibi()->size()) != heads) // C7
    return emitOpError() << "has " << getAlibi()->size() << " slopes for the " << heads << " heads of its task";
  return success();
}

LogicalResult SelectPositionsOp::verify() {
  llm::KvType kv = getKv().getType();
  if (failed(verifyPaged(*this, kv))) // C1
    return failure();
  if (kv.getHeads() != 1) // C2
    return emitOpError() << "reads a cache of " << kv.getHeads() << " heads, expected 1";
  if (failed(verifyWholeHeads([&] { return emitOpError(); }, getQuery().getType(), kv))) // C3
    return failure();
  int64_t heads = sizeOf(getQuery()) / kv.getHeadDim(), count = sizeOf(getResult());
  if (sizeOf(getWeights()) != heads)
    return emitOpError() << "has " << sizeOf(getWeights()) << " weights for the " << heads << " heads of its query";
  if (failed(verifySpan(*this, static_cast<int64_t>(getSpan()), kv))) // C4
    return failure();
  if (getPartials() && getPartials().getType().getChannels() < 2 * count) // C5
    return emitOpError() << "has partials of " << getPartials().getType().getChannels() << " channels, but " << count
                         << " positions need " << 2 * count;
  return success();
}
