// ArenaPlan: the buffers of a step program, when each is needed and where it lies, as plain data. Sizes and offsets are
// bytes per row of the batch.
#pragma once
#include "dialects/tile/TileDialect.h"
#include <string>
#include <vector>

namespace llmc {

struct ArenaBuffer {
  mlir::Operation *alloc;
  std::string writer;                      // the task or function that is given it first
  int64_t bytes = 0, first = 0, last = -1; // uses by their place among the steps; none: 0, -1
  int64_t offset = 0;
};

struct ArenaCall {
  int64_t at;
  size_t callee; // of ArenaPlan::functions
};

struct ArenaFunction {
  std::string name;
  std::vector<std::string> steps; // what is launched, called or exchanged, in order
  std::vector<ArenaBuffer> buffers;
  std::vector<ArenaCall> calls;
  int64_t height = 0; // bytes above its base, what it calls included
  int64_t base = 0;
  int64_t bound = 0; // most bytes that are needed at once, what it calls included: no plan takes less
};

struct ArenaPlan {
  std::vector<ArenaFunction> functions; // what is called comes before its caller
  int64_t bytes = 0, bound = 0;
  int64_t unshared = 0; // if every buffer had a place of its own
};

// Places every buffer of the module's functions: where a layer is called it lies behind the buffers that its caller
// needs then, in the space of those that it does not. Fails where a function calls itself.
mlir::FailureOr<ArenaPlan> planArena(mlir::ModuleOp module);

} // namespace llmc
