// Verifiers and costs of the ops in LlmCollectiveOps.td.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"

using namespace mlir;
using namespace llmc::llm;

//===-- verifiers
//---------------------------------------------------------------------------------------------------===//

namespace {

// Ranges of a segment in ascending order of their beginnings cover what the earlier ones left.
int64_t coveredUpTo(SmallVector<std::pair<int64_t, int64_t>> ranges) {
  llvm::sort(ranges);
  int64_t covered = 0;
  for (auto [begin, end] : ranges)
    if (begin <= covered)
      covered = std::max(covered, end);
  return covered;
}

} // namespace

LogicalResult llmc::llm::verifyGather(Operation *op, ArrayAttr segments, int64_t elements, int64_t own) {
  SmallVector<std::pair<int64_t, int64_t>> all;
  SmallVector<int64_t> perRank;
  for (Attribute segment : segments) {
    auto ranges = dyn_cast<DenseI64ArrayAttr>(segment);
    if (!ranges || ranges.empty() || ranges.size() % 2 != 0) // C1
      return op->emitOpError() << "has the segment " << segment << ", expected begin and end of every rank";
    perRank.resize(perRank.empty() ? static_cast<size_t>(ranges.size()) / 2 : perRank.size());
    if (perRank.size() * 2 != static_cast<size_t>(ranges.size())) // C1
      return op->emitOpError() << "has segments of " << perRank.size() << " and of " << ranges.size() / 2 << " ranks";
    for (auto [rank, held] : llvm::enumerate(perRank)) {
      int64_t begin = ranges[static_cast<int64_t>(2 * rank)], end = ranges[static_cast<int64_t>(2 * rank) + 1];
      if (begin < 0 || begin > end || end > elements) // C1
        return op->emitOpError() << "gives rank " << rank << " the elements " << begin << " to " << end << " of "
                                 << elements;
      held += end - begin;
      all.push_back({begin, end});
    }
  }
  if (int64_t covered = coveredUpTo(all); covered != elements) // C2
    return op->emitOpError() << "has a result of " << elements << " elements a row, but no rank holds element "
                             << covered;
  if (!llvm::is_contained(perRank, own)) // C3
    return op->emitOpError() << "has an input of " << own << " elements a row, which no rank's ranges hold";
  return success();
}

LogicalResult AllGatherOp::verify() {
  int64_t own = getInput() ? elementsPerRow(getInput().getType()) : 0;
  return verifyGather(*this, getSegments(), elementsPerRow(getType()), own);
}

LogicalResult llmc::llm::verifyStage(Operation *op, int64_t stage) {
  if (stage < 0) // C1
    return op->emitOpError() << "names stage " << stage << ", expected 0 or more";
  return success();
}

LogicalResult SendOp::verify() {
  return verifyStage(*this, static_cast<int64_t>(getStage())); // C1
}

LogicalResult ReceiveOp::verify() {
  return verifyStage(*this, static_cast<int64_t>(getStage())); // C1
}

//===-- costs
//-------------------------------------------------------------------------------------------------------===//

int64_t FillOp::flops(int64_t, int64_t) { return 0; }
int64_t FillOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t AllGatherOp::flops(int64_t, int64_t) { return 0; }
int64_t AllGatherOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t SendOp::flops(int64_t, int64_t) { return 0; }
int64_t SendOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
int64_t ReceiveOp::flops(int64_t, int64_t) { return 0; }
int64_t ReceiveOp::bytes(int64_t rows, int64_t) { return operandBytes(*this, rows); }
