// The way back is recipeOf in lib/weights/WeightReader.h.
#include "lib/importer/WeightSourceAttr.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llmc {
namespace {

std::string typesOf(const WeightSource &source, const StorageTypeOf &storageTypeOf) {
  if (source.isConstant())
    return "F32";
  SmallVector<std::string> types;
  for (int64_t i = 0; i < source.numTensors(); ++i)
    if (std::string type = storageTypeOf(source.tensorAt(i)); !type.empty() && !llvm::is_contained(types, type))
      types.push_back(std::move(type));
  return llvm::join(types, ", ");
}

} // namespace

DictionaryAttr weightSourceAttr(Builder &builder, const WeightSource &source, const StorageTypeOf &storageTypeOf) {
  SmallVector<NamedAttribute> fields;
  auto add = [&](StringRef name, Attribute value) { fields.push_back(builder.getNamedAttr(name, value)); };
  add("tensor", builder.getStringAttr(source.tensor));
  if (std::string types = typesOf(source, storageTypeOf); !types.empty())
    add("type", builder.getStringAttr(types));
  if (source.stack)
    add("stack", builder.getI64IntegerAttr(source.stack));
  if (!source.dims.empty())
    add("dims", builder.getDenseI64ArrayAttr(source.dims));
  if (!source.take.empty()) {
    SmallVector<int64_t> flat;
    for (auto [begin, end] : source.take)
      flat.append({begin, end});
    add("take", builder.getDenseI64ArrayAttr(flat));
  }
  if (!source.order.empty())
    add("order", builder.getDenseI64ArrayAttr(source.order));
  if (source.rows)
    add("rows", builder.getDenseI64ArrayAttr({source.rows->first, source.rows->second}));
  if (source.unpermuteHeadRows)
    add("unpermute", builder.getI64IntegerAttr(source.unpermuteHeadRows));
  if (!source.map.empty())
    add("map", builder.getStringAttr(source.map));
  return builder.getDictionaryAttr(fields);
}

} // namespace llmc
