// One tile.task as a list of closures over buffers that are laid out once: what the tile interpreter runs per row and
// column tile.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "lib/reference/Matrix.h"
#include "lib/reference/TileAttention.h"
#include "lib/reference/TileKernels.h"
#include "runtime/llmc_abi.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>
#include <functional>
#include <memory>

namespace llmc::reference {

/// Rows of a buffer of the step; a row of the matrix is one stride.
using Rows = Matrix;

/// What a launch hands to one argument of its task.
struct TaskArgument {
  Rows *rows = nullptr;
  const uint8_t *weight = nullptr;
  int64_t stateOffset = 0; // of a cache in a page, of a recurrent state in a slot
};

/// What every task of a step sees.
struct StepMemory {
  const llmc_batch *batch = nullptr;
  uint8_t *kv = nullptr;
  int64_t pageBytes = 0;
  uint8_t *state = nullptr;
  int64_t stateBytes = 0;                 // of a slot
  std::vector<Matrix> *records = nullptr; // null: nobody asked
};

class TileTask {
public:
  static mlir::FailureOr<std::unique_ptr<TileTask>> compile(tile::TaskOp op);
  /// Runs the whole grid, column tile by column tile. Fails after an error at an op of the body.
  mlir::LogicalResult run(std::vector<TaskArgument> arguments, const StepMemory &memory);

private:
  friend class TaskCompiler;
  /// The elements of a value: f32 and bf16 as floats, indices, integers and truth values as integers, 8-bit tiles as
  /// codes.
  struct Slot {
    float *floats = nullptr;
    int64_t *integers = nullptr;
    int16_t *codes = nullptr;
    int64_t size = 0;
    std::span<float> f() const { return {floats, static_cast<size_t>(size)}; }
  };
  using Instruction = std::function<bool()>; // false after an error

  tile::TaskOp op;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<int64_t>> integers;
  std::deque<std::vector<int16_t>> codes;
  std::vector<Instruction> body;
  Slot row, column;
  std::vector<TaskArgument> arguments; // of the launch that runs
  StepMemory memory;
};

} // namespace llmc::reference
