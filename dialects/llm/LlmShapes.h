// Sizes that verifiers, costs and passes ask of the llm types.
#pragma once
#include "dialects/llm/LlmDialect.h"

namespace llmc::llm {

/// Size of the last dimension of an activation.
int64_t channelsOf(mlir::Type type);
/// Elements of one row (token) of an activation.
int64_t elementsPerRow(mlir::Type type);
/// Succeeds when `type` has `rank` dimensions and static positive sizes after the rows; else an error at `op`.
mlir::LogicalResult verifyRows(mlir::Operation *op, mlir::Type type, unsigned rank);
/// Bytes that one element takes in `form`, scales included; an undecided form counts as f32.
double bytesPerWeightElement(WeightForm form);

} // namespace llmc::llm
