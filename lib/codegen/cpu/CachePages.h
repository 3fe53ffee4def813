// Where the keys, values and scales of one layer lie in the pages of a sequence.
#pragma once
#include "lib/codegen/cpu/RowProgram.h"
#include "runtime/llmc_abi.h"

namespace llmc::cpu {

// One page as the query heads of one key-value head see it.
struct AttendPage {
  mlir::Value keys, values;
  mlir::Value nextKeys;               // of the page to come, or the same again
  mlir::Value keyScales, valueScales; // of the codes of i8, f32 for each position; null otherwise
  mlir::Value base;                   // position of its first key
  mlir::Value valid;                  // positions that hold something by the end of this step
  mlir::Value positions;              // i32 of each of `valid` selected positions; null where they ascend from `base`
  bool isGathered = false;            // each position is found by a pointer already
};

class CachePages {
public:
  CachePages(KernelBuilder &kernel, TaskContext &task, mlir::TypedValue<llm::KvType> operand)
      : type(operand.getType()), elementBytes(type.getElementType().getIntOrFloatBitWidth() / 8), k(kernel), task(task),
        operand(operand) {}

  const llm::KvType type;
  const int64_t elementBytes;

  // Position of a row of the batch in its sequence.
  mlir::Value positionOf(mlir::Value row) { return batchEntry(offsetof(llmc_batch, positions), row); }
  mlir::Value sequenceOf(mlir::Value row) { return batchEntry(offsetof(llmc_batch, token_sequence), row); }
  // This layer's part of page `index` of a sequence.
  mlir::Value pageOf(mlir::Value sequence, mlir::Value index);
  // Of one head in a page that starts at `page`. The values of a latent cache lie in its keys. Scales are of the codes
  // of i8, f32 for each position; null otherwise.
  mlir::Value keysOf(mlir::Value page, mlir::Value head) { return k.at(page, k.mul(head, keyBytes())); }
  mlir::Value valuesOf(mlir::Value page, mlir::Value head);
  mlir::Value keyScalesOf(mlir::Value page, mlir::Value head);
  mlir::Value valueScalesOf(mlir::Value page, mlir::Value head);

  // Page `index` for rows that see positions up to `lastPosition`, of a cache that keeps all.
  AttendPage at(mlir::Value sequence, mlir::Value head, mlir::Value index, mlir::Value lastPosition);

  // Bytes of one head in a page.
  int64_t keyBytes() const { return type.rowsPerPage() * type.getHeadDim() * elementBytes; }
  int64_t valueBytes() const { return type.rowsPerPage() * type.storedValueDim() * elementBytes; }

  // How many of the cache's rows are seen at `position`, and the last of them, -1 where there is none. A cache that
  // keeps all has a row for each position.
  mlir::Value rowsAt(mlir::Value position);
  mlir::Value lastRowAt(mlir::Value position);
  // Where a row lies: the part of its page, and its place there.
  std::pair<mlir::Value, mlir::Value> placeOf(mlir::Value sequence, mlir::Value row);

private:
  mlir::Value batchEntry(int64_t field, mlir::Value row) {
    return k.loadInt(k.at(k.load(k.pointerType, task.batch, field), k.mul(row, 4)));
  }

  KernelBuilder &k;
  TaskContext &task;
  mlir::Value operand;
};

// Fails after an error at `op` unless pages and panels of its cache are those that kernels of 16 lanes read.
mlir::LogicalResult verifyPanels(mlir::Operation *op, llm::KvType kv);

} // namespace llmc::cpu
