// Which operators of a model have a kernel, what they cost in a step, and which are missing.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "passes/CheckTileForms.h"
#include "runtime/support/Json.h"
#include <string>
#include <vector>

namespace llmc {

// A step of `rows` rows, each of which sees `context` positions.
struct StepSize {
  int64_t rows, context;
};

struct OperatorCost {
  double flops = 0, bytes = 0;
};

// Equal operators of all layers, as one entry.
struct OperatorCoverage {
  std::string op; // of the llm dialect
  TileForm form;
  int64_t count = 0;               // in one step: what a layer has counts for each layer
  std::vector<OperatorCost> costs; // of each step size, all of them together
};

// Weights that are stored and packed alike, as one entry.
struct WeightCoverage {
  std::string form;   // of the packed weight
  std::string reason; // how it is stored, and what becomes of that
  TileForm::Status status;
  int64_t count = 0;
  double elements = 0;
};

// Of a module whose forms are chosen, in the order of first use. Kernels read what is stored, or its codes, natively;
// numbers that are converted make a weight composed.
std::vector<WeightCoverage> weightCoverageOf(mlir::ModuleOp module);

// Of a module as imported, in the order of first use. What moves no numbers (declarations, records) is left out.
std::vector<OperatorCoverage> coverageOf(mlir::ModuleOp module, const std::vector<StepSize> &steps);

} // namespace llmc
