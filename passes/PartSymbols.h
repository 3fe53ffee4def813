// Weights and states of which a rank has parts.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/sharding/Dimensions.h"
#include "llvm/ADT/DenseSet.h"

namespace llmc {

// The partitions of a module, each once, and the weights that are parts by them.
class PartSymbols {
public:
  PartSymbols(mlir::ModuleOp module, size_t rank) : module(module), table(module), rank(rank) {}

  // The weight behind `use` becomes the part that `dimensions` say: another symbol where others use another part.
  void take(llm::UseWeightOp use, sharding::Dimensions &axes, llvm::ArrayRef<sharding::Dimension> dimensions);
  // Every user of a state must cut it alike.
  mlir::LogicalResult take(llm::UseStateOp use, mlir::Type type);
  // The number of the first expert of every rank, negated, as a weight of one element.
  std::string firstExpert(const sharding::Partition &partition);
  void finish();

private:
  int64_t indexOf(const sharding::Partition &partition);
  mlir::ArrayAttr partsOf(sharding::Dimensions &axes, llvm::ArrayRef<sharding::Dimension> dimensions);

  mlir::ModuleOp module;
  mlir::SymbolTable table;
  size_t rank;
  std::vector<sharding::Partition> partitions;
  llvm::DenseSet<mlir::StringAttr> decided;
};

} // namespace llmc
