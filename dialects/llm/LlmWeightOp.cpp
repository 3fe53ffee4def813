// Verifier of llm.weight. Each check carries the number of its constraint.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace llmc::llm;

namespace {

// The integers of an entry: nothing where it is absent, failure after an error where it is no list.
FailureOr<std::optional<ArrayRef<int64_t>>> integers(WeightOp op, DictionaryAttr source, StringRef name) {
  Attribute entry = source.get(name);
  if (!entry)
    return std::optional<ArrayRef<int64_t>>();
  auto list = dyn_cast<DenseI64ArrayAttr>(entry);
  if (!list) {
    op.emitOpError() << "has " << name << " = " << entry << ", expected array<i64: ...>";
    return failure();
  }
  return std::optional<ArrayRef<int64_t>>(list.asArrayRef());
}

LogicalResult verifyView(WeightOp op, DictionaryAttr source) {
  auto dims = integers(op, source, "dims"), take = integers(op, source, "take"), order = integers(op, source, "order");
  if (failed(dims) || failed(take) || failed(order))
    return failure();
  std::optional<size_t> rank;
  if (*dims) {
    rank = (*dims)->size();
    if (*rank == 0 || llvm::any_of(**dims, [](int64_t size) { return size <= 0; })) // C6
      return op.emitOpError() << "sees a tensor as " << shapeText(**dims) << ", expected positive dimensions";
  }
  if (*take) {
    ArrayRef<int64_t> ranges = **take;
    if (ranges.size() % 2 != 0 || (rank && ranges.size() != 2 * *rank) || ranges.empty()) // C7
      return op.emitOpError() << "takes " << shapeText(ranges) << ", expected begin and end of "
                              << (rank ? std::to_string(*rank) + " dimensions" : "every dimension");
    rank = ranges.size() / 2;
    for (size_t i = 0; i < *rank; ++i)
      if (ranges[2 * i] < 0 || ranges[2 * i] >= ranges[2 * i + 1] || (*dims && ranges[2 * i + 1] > (**dims)[i])) // C7
        return op.emitOpError() << "takes " << ranges[2 * i] << " to " << ranges[2 * i + 1] << " of dimension " << i
                                << (*dims ? ", which has " + std::to_string((**dims)[i]) : ", expected begin < end");
    if (source.get("rows")) // C3
      return op.emitOpError() << "takes both rows and ranges of every dimension, expected one of them";
  }
  if (*order) {
    SmallVector<int64_t> sorted(**order);
    llvm::sort(sorted);
    bool isPermutation = !sorted.empty() && (!rank || sorted.size() == *rank);
    for (auto [i, dimension] : llvm::enumerate(sorted))
      isPermutation &= dimension == static_cast<int64_t>(i);
    if (!isPermutation) // C8
      return op.emitOpError() << "orders dimensions as " << shapeText(**order) << ", expected each of "
                              << (rank ? std::to_string(*rank) : "them") << " once";
  }
  return success();
}

LogicalResult verifyStack(WeightOp op, DictionaryAttr source) {
  bool isPattern = source.getAs<StringAttr>("tensor").getValue().contains("{expert}");
  Attribute stack = source.get("stack");
  auto count = dyn_cast_or_null<IntegerAttr>(stack);
  bool isCount = count && count.getType().isSignlessInteger(64) && count.getInt() > 0;
  if (isPattern == isCount && (isCount || !stack)) // C5
    return success();
  if (!stack)
    return op.emitOpError() << "has the source " << source << ", whose {expert} needs a stack";
  return op.emitOpError() << "stacks " << stack << " of " << source.get("tensor")
                          << ", expected a positive number of names with {expert}";
}
LogicalResult verifySource(WeightOp op, Attribute source) {
  constexpr StringLiteral known[] = {"tensor", "type", "stack", "dims", "take", "order", "rows", "unpermute", "map"};
  auto dictionary = dyn_cast<DictionaryAttr>(source);
  if (!dictionary || !dictionary.getAs<StringAttr>("tensor")) // C2
    return op.emitOpError() << "has the source " << source << ", expected a dictionary with the name of a 'tensor'";
  for (NamedAttribute entry : dictionary)
    if (!llvm::is_contained(known, entry.getName().strref()))
      return op.emitOpError() << "has a source with '" << entry.getName().strref()
                              << "' (known = " << llvm::join(std::begin(known), std::end(known), " ") << ")";
  if (Attribute rows = dictionary.get("rows")) {
    auto range = dyn_cast<DenseI64ArrayAttr>(rows);
    if (!range || range.size() != 2 || range[0] < 0 || range[0] >= range[1]) // C3
      return op.emitOpError() << "takes rows " << rows << ", expected [begin, end) with 0 <= begin < end";
  }
  if (Attribute unpermute = dictionary.get("unpermute")) {
    auto width = dyn_cast<IntegerAttr>(unpermute);
    if (!width || !width.getType().isSignlessInteger(64) || width.getInt() <= 0 || width.getInt() % 2 != 0) // C4
      return op.emitOpError() << "unpermutes heads of " << unpermute << " rows, expected an even positive number";
  }
  if (Attribute map = dictionary.get("map")) {
    auto name = dyn_cast<StringAttr>(map);
    if (!name || !symbolizeWeightMap(name.getValue())) // C9
      return op.emitOpError() << "maps elements by " << map << " (known = neg_exp, unit_rows)";
  }
  if (failed(verifyStack(op, dictionary)))
    return failure();
  return verifyView(op, dictionary);
}

LogicalResult verifyParts(WeightOp op) {
  if (!op.getOf() && !op.getParts())
    return success();
  if (!op.getOf() || !op.getParts() || op.getOf()->size() != op.getParts()->size()) // C10
    return op.emitOpError() << "is a part of another weight, expected its shape 'of' and 'parts' for each dimension";
  for (auto [size, dimension] : llvm::zip(*op.getOf(), *op.getParts())) {
    auto triples = dyn_cast<DenseI64ArrayAttr>(dimension);
    if (!triples || triples.empty() || triples.size() % 3 != 0) // C10
      return op.emitOpError() << "has the parts " << dimension << ", expected partition, begin and size of each";
    int64_t next = 0;
    for (int64_t i = 0; i < triples.size(); i += 3) {
      int64_t begin = triples[i + 1], width = triples[i + 2];
      if (triples[i] < -1 || begin < next || width <= 0 || width > size - begin) // C10
        return op.emitOpError() << "has a part of width " << width << " at " << begin << " of " << size
                                << ", expected parts in ascending order and inside of the weight";
      next = begin + width;
    }
  }
  return success();
}

} // namespace

LogicalResult WeightOp::verify() {
  if (getSources().empty()) // C1
    return emitOpError() << "has no source";
  for (Attribute source : getSources())
    if (failed(verifySource(*this, source)))
      return failure();
  return verifyParts(*this);
}
