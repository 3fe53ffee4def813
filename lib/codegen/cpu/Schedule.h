// How a task becomes a kernel, as data: plain functions of the task and the target. Code generation reads nothing else.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "lib/target/CpuTarget.h"

namespace llmc::cpu {

enum class TaskShape { Rows, Dot, QuantizedDot, Attend, Recurrent, Select };

// What makes the products of attention: matrix tiles of bf16 pairs; vectors that add as those do; products of pairs by
// vectors; f32, keys in panels; f32, keys in rows (latent caches, selected positions).
enum class AttendPath { Tiles, Pairs, Dots, Panels, Rows };

struct Schedule {
  TaskShape shape = TaskShape::Rows;
  int64_t rowBlock = 1;   // rows whose inputs are prepared together
  int64_t depthBlock = 0; // k that a product takes at a time, all rows of the block with each; 0: all at once
  int64_t kernelRows = 1; // rows of the largest kernel; what is left over runs on smaller ones
  int64_t tileRows = 0;   // rows of matrix tiles, which serve blocks of more than half as many; 0: none
  AttendPath products = AttendPath::Panels; // of attention
  std::string instruction;                  // what multiplies: "vdpbf16ps", "fma", ...
  std::string reason;
};

TaskShape shapeOf(tile::TaskOp task);
llvm::StringRef nameOf(TaskShape shape); // "rows", "dot", "quantized_dot", "attend", "recurrent", "select"

// The schedule attribute of a task: {shape, row_block, kernel_rows, tile_rows, instruction, reason}, depth_block where
// the depth is cut.
mlir::DictionaryAttr chooseSchedule(tile::TaskOp task, const CpuTarget &target);

// Reads the attribute, or chooses where the task has none.
mlir::FailureOr<Schedule> scheduleOf(tile::TaskOp task, const CpuTarget &target);

// Vectors of 16 output channels that a kernel of `rows` rows takes per pass without running out of registers, when a
// vector of weights takes `registersPerWeight` of them.
int64_t vectorsPerPass(int64_t rows, const CpuTarget &target, int64_t registersPerWeight = 1);

} // namespace llmc::cpu
