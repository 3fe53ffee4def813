// The generic lowering of a task's body for one row: chains of elementwise ops become one loop over vectors of 16,
// values are evaluated where they are used and kept in memory only where they are used again, sliced or put together.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "lib/codegen/cpu/KernelBuilder.h"
#include "lib/weights/PackedLayout.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace llmc::cpu {

// Facts of the memory plan that addresses depend on.
struct PlanFacts {
  int64_t maxTokens = 0;
  int64_t pageBytes = 0;
  int64_t stateBytes = 0; // of a slot
};

// What all parts of one task's kernel share.
struct TaskContext {
  tile::TaskOp task;
  PlanFacts plan;
  mlir::Value context, batch;                        // pointers to llmc_step_context and llmc_batch
  llvm::DenseMap<mlir::Value, mlir::Value> operands; // argument of the body -> pointer
  llvm::DenseMap<mlir::Value, int64_t> rowStride;    // rows argument -> elements between rows
  mlir::Value firstRecord;                           // what the launch says firstRecordOf(task) is
  // Values that are kept in memory; loads that must be copied before a store overwrites them.
  llvm::DenseSet<mlir::Value> kept, eager;
};

// The least index of the task's records. It is an argument of the function: tasks that record different layers share
// one.
std::optional<int64_t> firstRecordOf(mlir::Operation *task);

// Fills `kept` and `eager`, and refuses ops that no kernel knows.
mlir::LogicalResult analyzeBody(TaskContext &task);

// Element `base + offset` of a tile; base may be null.
struct Position {
  mlir::Value base;
  int64_t offset = 0;
};

class RowProgram {
public:
  RowProgram(KernelBuilder &kernel, TaskContext &task, mlir::Value row, mlir::Value column);

  // Emits the stores, appends, records and conditions of a block, in order.
  mlir::LogicalResult emitBlock(mlir::Block &block);

  // Says that a value already lies in memory (a dot's or an attention's result). Padded to whole vectors.
  void bindMemory(mlir::Value tile, mlir::Value pointer);

  // Writes a tile of f32 or bf16 values as `element` to memory; elements from its size to `paddedSize` become zero.
  void evaluateInto(mlir::Value tile, mlir::Value pointer, mlir::Type element, int64_t paddedSize);

  // Where quantised activations go: the codes as `radix` * high + low bytes (codes of one byte have no low ones), scales
  // and, for kernels, per part of a group (it has one or two) `zeroPoint` times the sum of the codes, negated (i32), and
  // per group the sum (f32). Null pointers are not written.
  struct QuantizedRow {
    mlir::Value high, low, scales, start, sums;
    int64_t zeroPoint = 0, radix = 256, parts = 1;
  };
  void quantizeInto(tile::QuantizeOp op, const QuantizedRow &to);

  // The emitted form of an index or f32 value of the body.
  mlir::Value scalar(mlir::Value value);
  bool failed() const { return hasFailed; }

private:
  struct Leaf {
    mlir::Value pointer;
    mlir::Type element;
    bool padded = false; // whole vectors may be read
    mlir::Value limit;   // elements that exist, when that is known only at run time
  };

  void prepare(mlir::Value tile);
  void prepareOperands(mlir::Operation *op);
  mlir::Value evaluate(mlir::Value tile, Position position, int64_t lanes);
  mlir::Value evaluateOp(mlir::Operation *op, mlir::Value tile, Position position, int64_t lanes);
  mlir::Value readLeaf(const Leaf &leaf, Position position, int64_t lanes);
  void keep(mlir::Value tile);
  // Where a tile lies once it is kept.
  mlir::Value memoryOf(mlir::Value tile);
  void elementLoop(int64_t size, llvm::function_ref<void(Position, int64_t)> body);

  void emitStore(tile::StoreOp op);
  void emitAppend(tile::AppendOp op);
  void emitRecord(tile::RecordOp op);
  // Codes -127 .. 127 and their scale.
  std::pair<mlir::Value, mlir::Value> nearestMultiple(mlir::Value whole, mlir::Value code, int64_t radix);
  void quantizeForCache(mlir::Value tile, mlir::Value codes, mlir::Value scale);
  void emitWhen(tile::WhenOp op);
  void emitGather(tile::GatherOp op);
  void emitGatherFloat8(tile::GatherOp op, const PackedLayout &weight, mlir::Value index, mlir::Value buffer);
  void emitGatherQuantized(tile::GatherOp op, const PackedLayout &weight, mlir::Value index, mlir::Value buffer);
  void repeatInto(tile::RepeatOp op, mlir::Value buffer);
  void chooseInto(tile::ChooseOp op, mlir::Value buffer);
  void sinkhornInto(tile::SinkhornOp op, mlir::Value buffer);
  void pickInto(tile::PickOp op, mlir::Value buffer);
  // The place of the largest of `size` f32 elements, the first of equal ones.
  mlir::Value placeOfLargest(mlir::Value pointer, int64_t size);
  void removeGroups(tile::ChooseOp op, mlir::Value scores);
  mlir::Value emitReduce(tile::ReduceOp op);
  mlir::Value emitScalarOp(mlir::Operation *op);
  void writeVector(mlir::Value vector, mlir::Value pointer, Position position, int64_t lanes, mlir::Value limit);
  mlir::Value elementAt(mlir::Value pointer, Position position, int64_t bytes);
  mlir::Value rowPointer(mlir::Value rows, mlir::Value row);
  // The largest value that an index can take, where that is known before run time.
  std::optional<int64_t> largest(mlir::Value index);
  // Null when elements column .. column + size - 1 lie below `capacity`, else how many of them do.
  mlir::Value limitOf(mlir::Value column, int64_t size, int64_t capacity);
  void error(mlir::Operation *op, const llvm::Twine &message);

  KernelBuilder &k;
  TaskContext &task;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;
  llvm::DenseMap<mlir::Value, Leaf> leaves;
  int64_t largestColumn;
  bool hasFailed = false;
};

} // namespace llmc::cpu
