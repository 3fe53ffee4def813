// The dispatch manifest (dispatch.json): which kernel serves each task of the step and what it costs, and why each
// weight has its form. The compiler writes it; tools read it. A step runs without it.
#pragma once
#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// Of one launch, as a sum over what the batch holds. "Per row" means per row of the step, or per row whose logits are
// wanted with `logitRows`; "per position" means each position of the sequence that is read.
struct KernelCost {
  bool logitRows = false;
  int64_t products = 0;         // operations of the matrix product per row; a multiply and an add are two
  int64_t passes = 1;           // products of the instruction for each of them: 2 where inputs are codes of two bytes
  int64_t otherOperations = 0;  // elementwise arithmetic per row; a function of math counts ten
  int64_t positionProducts = 0; // operations per row and position that it sees: attention
  int64_t weightBytes = 0;      // read once, however many rows there are
  int64_t rowBytes = 0;         // activations, cache and embedding rows read and written per row
  int64_t positionBytes = 0;    // of the cache, read once per position that any row of a sequence sees
  int64_t sequenceBytes = 0;    // of the recurrent state, read and written once per sequence
  int64_t window = 0;           // most positions that a row sees; 0: all
};

struct KernelEntry {
  std::string name;  // of the task: "full_attention.0"
  std::string shape; // "rows", "dot", "quantized_dot", "attend", "recurrent", "select"
  std::string
      instruction; // that multiplies: "fma"; with matrix tiles that of many rows and that of few: "tdpbssd+vpdpbusd"
  std::string reason;
  int64_t kernelRows = 0, rowBlock = 0;
  int64_t tileRows = 0;        // of matrix tiles, which serve more than half as many rows; 0: none
  std::vector<int32_t> layers; // of each launch of a step, in order; -1 outside of layers
  KernelCost cost;

  // What multiplies in a step of `rows` rows.
  std::string instructionFor(int64_t rows) const;
};

struct WeightEntry {
  std::string name, form, reason; // form: "bf16", "i4"; "plain" for vectors
  std::vector<int64_t> shape;
};

struct DispatchManifest {
  std::vector<KernelEntry> kernels; // in the order of the numbers that the step program gives to its trace hook
  std::vector<WeightEntry> weights;
};

// The same manifest gives the same bytes.
std::string formatDispatch(const DispatchManifest &manifest);
// Messages start with `file`. Numbers are checked to be counts, so that sums of them in double cannot surprise.
StatusOr<DispatchManifest> parseDispatch(std::string_view text, const std::string &file);

} // namespace llmc
