// Tasks that differ by their names alone, which is what layers of one shape leave many of: they share their code.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace llmc::cpu {

// All that the code of a task depends on besides the target and the plan.
struct TaskKey {
  tile::TaskOp task;
  llvm::SmallVector<bool> isLogits = {}; // as in TaskOptions
};

// Equality of the space, columns, schedule, arguments and body.
struct TaskKeyInfo {
  static TaskKey getEmptyKey() { return {llvm::DenseMapInfo<tile::TaskOp>::getEmptyKey()}; }
  static TaskKey getTombstoneKey() { return {llvm::DenseMapInfo<tile::TaskOp>::getTombstoneKey()}; }
  static unsigned getHashValue(const TaskKey &key);
  static bool isEqual(const TaskKey &left, const TaskKey &right);
};

} // namespace llmc::cpu
