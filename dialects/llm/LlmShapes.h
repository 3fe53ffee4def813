// Sizes that verifiers, costs and passes ask of the llm types.
#pragma once
#include "dialects/llm/LlmDialect.h"

namespace llmc::llm {

/// Whether a value is activations, not a weight or state.
inline bool isRows(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }
/// Size of the last dimension of an activation.
int64_t channelsOf(mlir::Type type);
/// Elements of one row (token) of an activation.
int64_t elementsPerRow(mlir::Type type);
/// Succeeds when `type` has `rank` dimensions and static positive sizes after the rows; else an error at `op`.
mlir::LogicalResult verifyRows(mlir::Operation *op, mlir::Type type, unsigned rank);
/// Bytes that one element takes in `form`, scales included; an undecided form counts as f32.
double bytesPerWeightElement(WeightForm form);

/// Bytes of a weight in its form, 0 for a null value; of all rows and weights that `op` reads and writes, each once.
int64_t weightBytes(mlir::Value weight);
int64_t operandBytes(mlir::Operation *op, int64_t rows);

/// "[16, 192]", for messages.
std::string shapeText(llvm::ArrayRef<int64_t> shape);
/// Succeeds when `vector` is null or has an element per channel of `type`, or per channel of every head.
mlir::LogicalResult verifyVector(mlir::Operation *op, llvm::StringRef what, mlir::Value vector, mlir::Type type);
/// Succeeds when `eps` is more than 0 and finite.
mlir::LogicalResult verifyEps(mlir::Operation *op, llvm::APFloat eps);

/// Succeeds when `segments` are those of an llm.all_gather of `elements`, of which this rank holds `own` (C1 to C3 there).
mlir::LogicalResult verifyGather(mlir::Operation *op, mlir::ArrayAttr segments, int64_t elements, int64_t own);
/// Succeeds when `stage` can be one.
mlir::LogicalResult verifyStage(mlir::Operation *op, int64_t stage);

/// Rows of a panel in tiles of `tile` rows: the widest that kernels take and that divides the padded tile; 16 when
/// quantised.
int64_t panelFor(int64_t tile, WeightForm form);

} // namespace llmc::llm
