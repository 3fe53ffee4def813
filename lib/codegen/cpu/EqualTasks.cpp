#include "lib/codegen/cpu/EqualTasks.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

unsigned TaskKeyInfo::getHashValue(const TaskKey &key) {
  tile::TaskOp task = key.task;
  llvm::hash_code hash = llvm::hash_combine(task.getSpace(), task.getColumns(), task.getScheduleAttr(),
                                            llvm::hash_combine_range(key.isLogits.begin(), key.isLogits.end()));
  for (Type type : task.getBody().getArgumentTypes())
    hash = llvm::hash_combine(hash, type);
  task.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::IgnoreLocations));
  });
  return static_cast<unsigned>(static_cast<size_t>(hash));
}

bool TaskKeyInfo::isEqual(const TaskKey &left, const TaskKey &right) {
  auto isMarker = [](const TaskKey &key) {
    return key.task == getEmptyKey().task || key.task == getTombstoneKey().task;
  };
  if (left.task == right.task || isMarker(left) || isMarker(right))
    return left.task == right.task && left.isLogits == right.isLogits;
  tile::TaskOp a = left.task, b = right.task;
  return a.getSpace() == b.getSpace() && a.getColumns() == b.getColumns() &&
         a.getScheduleAttr() == b.getScheduleAttr() && left.isLogits == right.isLogits &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}
