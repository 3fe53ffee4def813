// Verifiers of the ops in TileCollectiveOps.td, and what the runtime is told of them.
#include "dialects/llm/LlmShapes.h"
#include "dialects/tile/TileDialect.h"
#include "runtime/collective/Collectives.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::tile;

bool llmc::tile::isCollective(Operation *op) { return isa<AllReduceOp, AllGatherOp, SendOp, ReceiveOp>(op); }

int64_t llmc::tile::ranksOf(ModuleOp module) {
  auto ranks = module->getAttrOfType<IntegerAttr>("llmc.ranks");
  return ranks ? ranks.getInt() : 1;
}

Space llmc::tile::spaceOfCollective(Operation *op) {
  return llvm::TypeSwitch<Operation *, Space>(op).Case<AllReduceOp, AllGatherOp, SendOp, ReceiveOp>(
      [](auto collective) { return collective.getSpace(); });
}

std::optional<int64_t> llmc::tile::blockOf(Operation *op) {
  auto block = op->getAttrOfType<IntegerAttr>("tile.block");
  return block ? std::optional(block.getInt()) : std::nullopt;
}

bool llmc::tile::isRoom(BlockArgument argument) {
  return llvm::any_of(argument.getUsers(), [&](Operation *user) {
    auto attend = dyn_cast<AttendOp>(user);
    auto select = dyn_cast<SelectPositionsOp>(user);
    return (attend && attend.getPartials() == argument) || (select && select.getPartials() == argument);
  });
}

SmallVector<int64_t> llmc::tile::describeCollective(Operation *op, int64_t ranks, int64_t inputStride,
                                                    int64_t resultStride, int64_t number) {
  llmc_collective what = {};
  what.ranks = ranks;
  auto setInput = [&](Value rows) {
    if (rows)
      std::tie(what.input_columns, what.input_stride) =
          std::pair(cast<RowsType>(rows.getType()).getChannels(), inputStride);
  };
  auto setResult = [&](Value rows) {
    std::tie(what.result_columns, what.result_stride) =
        std::pair(cast<RowsType>(rows.getType()).getChannels(), resultStride);
  };
  SmallVector<int64_t> ranges;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AllReduceOp reduce) {
        what.kind = LLMC_ALL_REDUCE;
        setInput(reduce.getInput());
        setResult(reduce.getResult());
      })
      .Case([&](AllGatherOp gather) {
        what.kind = LLMC_ALL_GATHER;
        setInput(gather.getInput());
        setResult(gather.getResult());
        what.num_segments = static_cast<int64_t>(gather.getSegments().size());
        for (Attribute segment : gather.getSegments())
          llvm::append_range(ranges, cast<DenseI64ArrayAttr>(segment).asArrayRef());
      })
      .Case([&](SendOp send) {
        what.kind = LLMC_SEND;
        what.stage = static_cast<int64_t>(send.getStage());
        setInput(send.getInput());
      })
      .Case([&](ReceiveOp receive) {
        what.kind = LLMC_RECEIVE;
        what.stage = static_cast<int64_t>(receive.getStage());
        setResult(receive.getResult());
      });
  what.logit_rows = spaceOfCollective(op) == Space::LogitRows ? 1 : 0;
  what.number = number;
  return llvm::to_vector(collectiveWords(what, ranges));
}

LogicalResult AllGatherOp::verify() {
  int64_t own = getInput() ? getInput().getType().getChannels() : 0;
  // C1 // C2 // C3
  return llm::verifyGather(*this, getSegments(), getResult().getType().getChannels(), own);
}

LogicalResult SendOp::verify() {
  return llm::verifyStage(*this, static_cast<int64_t>(getStage())); // C1
}

LogicalResult ReceiveOp::verify() {
  return llm::verifyStage(*this, static_cast<int64_t>(getStage())); // C1
}
