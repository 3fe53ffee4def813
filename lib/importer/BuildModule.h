// From the facts of a model to its llm module. No tensor data is read.
#pragma once
#include "lib/importer/ModelSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace llmc {

/// Says how a published tensor is stored ("BF16", "Q4_1"), empty when nobody knows (weights not at hand).
using StorageTypeOf = std::function<std::string(const std::string &tensor)>;

/// Builds `@step`, a function per distinct kind of layer, and the weight and state symbols. Operations are located by
/// the model's own words (`layers.3.attention.query`). The result verifies; the dialects must be loaded in `context`.
/// `positions`: how many a sequence may have; models that publish other rotary frequencies for long contexts ask.
mlir::OwningOpRef<mlir::ModuleOp> buildModule(mlir::MLIRContext &context, const ModelSpec &spec, int64_t positions,
                                              const StorageTypeOf &storageTypeOf);

} // namespace llmc
