// Parsing, printing and verification of the llm types.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::llm;

#include "dialects/llm/LlmEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/llm/LlmTypes.cpp.inc"

void LlmDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/llm/LlmTypes.cpp.inc"
      >();
}

namespace {
// Parses `, name = integer` items until `>`; unknown names are refused with the list of known ones.
LogicalResult parseItems(AsmParser &parser, ArrayRef<std::pair<StringRef, int64_t *>> items) {
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    auto *item = llvm::find_if(items, [&](auto &candidate) { return candidate.first == name; });
    if (item == items.end()) {
      InFlightDiagnostic diagnostic = parser.emitError(loc) << "unknown parameter '" << name << "' (known =";
      for (auto &known : items)
        diagnostic << " " << known.first;
      return diagnostic << ")";
    }
    if (parser.parseInteger(*item->second))
      return failure();
  }
  return parser.parseGreater();
}
} // namespace

Type WeightType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false))
    return {};
  WeightForm form = WeightForm::Any;
  int64_t tile = 0, panel = 0, interleave = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    std::optional<WeightForm> parsed = symbolizeWeightForm(keyword);
    if (!parsed) {
      parser.emitError(loc) << "unknown form '" << keyword << "' (known = any plain f32 bf16 i8 i4 i4m f4 f8)";
      return {};
    }
    form = *parsed;
  }
  if (failed(parseItems(parser, {{"tile", &tile}, {"panel", &panel}, {"interleave", &interleave}})))
    return {};
  return parser.getChecked<WeightType>(loc, parser.getContext(), shape, form, tile, panel, interleave);
}

void WeightType::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleave(getShape(), printer.getStream(), "x");
  if (getForm() != WeightForm::Any || getInterleave())
    printer << ", " << stringifyWeightForm(getForm());
  if (getTile())
    printer << ", tile = " << getTile() << ", panel = " << getPanel();
  if (getInterleave())
    printer << ", interleave = " << getInterleave();
  printer << '>';
}

LogicalResult WeightType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, WeightForm form,
                                 int64_t tile, int64_t panel, int64_t interleave) {
  if (shape.empty() || shape.size() > 3)
    return emitError() << "weight has " << shape.size() << " dimensions, expected one to three";
  for (int64_t d : shape)
    if (d <= 0 || d > maxSize)
      return emitError() << "weight has a dimension of " << d << ", expected 1 to " << maxSize;
  if (form == WeightForm::Plain && shape.size() == 3)
    return emitError() << "form plain is for vectors and small matrices, the weight has 3 dimensions";
  for (int64_t size : {tile, panel, interleave})
    if (size < 0 || size > maxSize)
      return emitError() << "weight has a tile, panel or interleaved block of " << size << " rows, expected 0 to "
                         << maxSize;
  if ((tile == 0) != (panel == 0))
    return emitError() << "tile is " << tile << " and panel " << panel << ", expected both or none";
  if (tile > 0 && shape.size() == 1)
    return emitError() << "only matrices have tiles, the weight has 1 dimension";
  if (tile > 0 && form == WeightForm::Any)
    return emitError() << "weight has tiles of " << tile << " rows but no form; choose one of f32 bf16 i8 i4 i4m f4 f8";
  if (panel % 16 != 0 || (tile > 0 && (tile + 15) / 16 * 16 % panel != 0))
    return emitError() << "panel is " << panel << ", expected a multiple of 16 that divides the padded tile of "
                       << (tile + 15) / 16 * 16;
  bool quantised = form >= WeightForm::I8;
  if (quantised && panel > 16)
    return emitError() << "panel is " << panel << ", expected 16 for form " << stringifyWeightForm(form);
  int64_t rows = shape.size() == 1 ? 1 : shape[shape.size() - 2];
  if (interleave > 0 && rows % 2 != 0)
    return emitError() << "only matrices with two halves of rows are interleaved, the weight has " << rows
                       << " rows and " << shape.size() << " dimensions";
  if (interleave > 0 && tile > 0 && tile != 2 * interleave)
    return emitError() << "tile is " << tile << ", expected twice the interleaved block of " << interleave;
  return success();
}

WeightType WeightType::withForm(WeightForm form) const {
  return get(getContext(), getShape(), form, getTile(), getPanel(), getInterleave());
}

int64_t llmc::llm::panelFor(int64_t tile, WeightForm form) {
  int64_t padded = (tile + 15) / 16 * 16, panel = 16;
  if (form >= WeightForm::I8)
    return panel;
  for (int64_t candidate = 16; candidate <= 80; candidate += 16)
    if (padded % candidate == 0 && (candidate <= 64 || padded == candidate))
      panel = candidate;
  return panel;
}

WeightType WeightType::withTiles(int64_t tile, int64_t interleave) const {
  return get(getContext(), getShape(), getForm(), tile, panelFor(tile, getForm()), interleave);
}

Type KvType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t page = 0, panel = 0, pack = 1, block = 0, value = 0, latent = 0, every = 1;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(elementType))
    return {};
  if (shape.size() != 2) {
    parser.emitError(loc) << "cache has " << shape.size() << " dimensions, expected heads x channels";
    return {};
  }
  if (failed(parseItems(parser, {{"value", &value},
                                 {"latent", &latent},
                                 {"every", &every},
                                 {"page", &page},
                                 {"panel", &panel},
                                 {"pack", &pack},
                                 {"block", &block}})))
    return {};
  if (value != 0 && latent != 0) {
    parser.emitError(loc) << "cache has values of " << value << " channels and latent ones of " << latent
                          << ", expected one of them";
    return {};
  }
  int64_t valueDim = latent ? latent : value ? value : shape[1];
  return parser.getChecked<KvType>(loc, parser.getContext(), shape[0], shape[1], elementType, page, panel, pack, block,
                                   valueDim, latent != 0, every);
}

void KvType::print(AsmPrinter &printer) const {
  printer << '<' << getHeads() << 'x' << getHeadDim() << 'x' << getElementType();
  if (getLatent())
    printer << ", latent = " << getValueDim();
  else if (getValueDim() != getHeadDim())
    printer << ", value = " << getValueDim();
  if (getEvery() != 1)
    printer << ", every = " << getEvery();
  if (isPaged())
    printer << ", page = " << getPage() << ", panel = " << getPanel();
  if (hasPairs())
    printer << ", pack = " << getPack();
  if (getBlock())
    printer << ", block = " << getBlock();
  printer << '>';
}

LogicalResult KvType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads, int64_t headDim,
                             Type elementType, int64_t page, int64_t panel, int64_t pack, int64_t block,
                             int64_t valueDim, bool latent, int64_t every) {
  if (heads <= 0 || headDim <= 0 || heads > maxSize || headDim > maxSize / heads)
    return emitError() << "cache is " << heads << " x " << headDim << ", expected positive sizes of at most " << maxSize
                       << " together";
  if (valueDim <= 0 || valueDim > maxSize / heads || (latent && valueDim > headDim))
    return emitError() << "cache has values of " << valueDim << " channels, expected 1 to "
                       << (latent ? headDim : maxSize / heads);
  if (every < 1 || every > maxSize || (every > 1 && !latent))
    return emitError() << "cache keeps one row of every " << every << " positions"
                       << (latent ? ", expected 1 to " + std::to_string(maxSize)
                                  : " of keys and values; only latent caches leave any out");
  bool isCodes = elementType.isSignlessInteger(8);
  if (!elementType.isF32() && !elementType.isBF16() && !elementType.isF16() && !isCodes)
    return emitError() << "cache of " << elementType << ", expected f32, bf16, f16 or i8";
  if (isCodes && page == 0)
    return emitError() << "cache of i8 without pages, which its scales lie in; only llmc-lower-kv-to-pages makes one";
  if (page < 0 || panel < 0 || page > maxSize || (page == 0) != (panel == 0))
    return emitError() << "page is " << page << " and panel " << panel << ", expected both positive or both absent";
  if (page > 0 && page % panel != 0)
    return emitError() << "page of " << page << " positions is no multiple of the panel of " << panel;
  if (pack != 1 && pack != 2)
    return emitError() << "pack is " << pack << ", expected 1 or 2 elements side by side";
  if (pack == 2 && (page == 0 || page % 2 != 0 || !elementType.isBF16() || headDim % panel != 0))
    return emitError() << "pack is 2, which takes bf16 in pages of even size and heads of whole panels; the cache is "
                       << headDim << " x " << elementType << " in pages of " << page << " and panels of " << panel;
  if (pack == 2 && (latent || valueDim != headDim))
    return emitError() << "pack is 2, which takes values as wide as keys; the cache has keys of " << headDim
                       << (latent ? " channels and latent values of " : " channels and values of ") << valueDim;
  if (block != 0 && (block != pairBlock || pack != 2))
    return emitError() << "block is " << block << " with pack " << pack << ", expected " << pairBlock
                       << " elements that lie in pairs (pack = 2)";
  return success();
}

KvType KvType::withPages(Type elementType, int64_t page, int64_t panel, int64_t pack, int64_t block) const {
  return get(getContext(), getHeads(), getHeadDim(), elementType, page, panel, pack, block, getValueDim(), getLatent(),
             getEvery());
}

int64_t KvType::bytesPerPage() const {
  int64_t elementBytes = getElementType().getIntOrFloatBitWidth() / 8;
  int64_t scaleBytes = getElementType().isInteger(8) ? (getLatent() ? 4 : 8) : 0;
  return getHeads() * rowsPerPage() * ((getHeadDim() + storedValueDim()) * elementBytes + scaleBytes);
}

Type RecurrentType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false) || parser.parseGreater())
    return {};
  if (shape.size() != 3) {
    parser.emitError(loc) << "recurrent state has " << shape.size() << " dimensions, expected heads x keys x values";
    return {};
  }
  return parser.getChecked<RecurrentType>(loc, parser.getContext(), shape[0], shape[1], shape[2]);
}

void RecurrentType::print(AsmPrinter &printer) const {
  printer << '<' << getHeads() << 'x' << getKeys() << 'x' << getValues() << '>';
}

LogicalResult RecurrentType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads, int64_t keys,
                                    int64_t values) {
  int64_t room = maxSize;
  for (int64_t size : {heads, keys, values}) {
    if (size <= 0 || size > room)
      return emitError() << "recurrent state is " << heads << " x " << keys << " x " << values
                         << ", expected positive sizes of at most " << maxSize << " together";
    room /= size;
  }
  return success();
}

int64_t RecurrentType::blockLanes() const {
  auto padded = [](int64_t size) { return (size + stateLanes - 1) / stateLanes * stateLanes; };
  if (lanesAreKeys())
    return std::min<int64_t>(64, padded(getKeys()));
  // Two vectors, whose 16 KB for 128 keys stay in the first-level cache; or whole heads where values fill no vectors.
  return getValues() % 32 == 0 ? 32 : getValues() % stateLanes == 0 ? stateLanes : padded(getValues());
}

int64_t RecurrentType::blocksPerHead() const {
  int64_t lanes = lanesAreKeys() ? getKeys() : getValues();
  return (lanes + blockLanes() - 1) / blockLanes();
}

int64_t RecurrentType::placeOf(int64_t head, int64_t key, int64_t value) const {
  auto [lane, line] = lanesAreKeys() ? std::pair(key, value) : std::pair(value, key);
  int64_t block = head * blocksPerHead() + lane / blockLanes();
  return (block * linesPerBlock() + line) * blockLanes() + lane % blockLanes();
}
