// A source of a weight as the dictionary that llm.weight holds.
#pragma once
#include "lib/importer/BuildModule.h"
#include "mlir/IR/Builders.h"

namespace llmc {

/// The types of all tensors of a stack, each once, joined by ", ".
mlir::DictionaryAttr weightSourceAttr(mlir::Builder &builder, const WeightSource &source,
                                      const StorageTypeOf &storageTypeOf);

} // namespace llmc
