// 8-bit codes of activations instead of 16-bit ones: one product of bytes instead of two.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_NARROWACTIVATIONSPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

struct NarrowActivations : llmc::impl::NarrowActivationsPassBase<NarrowActivations> {
  void runOnOperation() override {
    getOperation().walk([](tile::QuantizeOp op) {
      auto codes = cast<RankedTensorType>(op.getCodes().getType());
      op.getCodes().setType(codes.clone(IntegerType::get(op.getContext(), 8)));
    });
  }
};

} // namespace
