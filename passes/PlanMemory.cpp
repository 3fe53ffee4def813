// Offsets for buffers, weights, caches and recurrent states.
#include "dialects/llm/LlmDialect.h"
#include "dialects/tile/TileDialect.h"
#include "lib/weights/PackedLayout.h"
#include "passes/ArenaPlan.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

struct PlanMemory : llmc::impl::PlanMemoryPassBase<PlanMemory> {
  using Base::Base;

  void runOnOperation() override {
    Builder builder(&getContext());
    auto setFact = [&](StringRef name, int64_t bytes) {
      getOperation()->setAttr(name, builder.getI64IntegerAttr(bytes));
    };
    FailureOr<ArenaPlan> arena = planArena(getOperation());
    if (failed(arena))
      return signalPassFailure();
    for (const ArenaFunction &function : arena->functions)
      for (const ArenaBuffer &buffer : function.buffers)
        cast<tile::AllocOp>(buffer.alloc).setOffset(static_cast<uint64_t>(buffer.offset));
    setFact("llmc.arena_bytes_per_row", arena->bytes);
    setFact("llmc.max_tokens", maxTokens);

    CheckedSize weights = 0;
    for (auto weight : getOperation().getOps<llm::WeightOp>()) {
      StatusOr<PackedLayout> layout = layoutOf(cast<llm::WeightType>(weight.getType()));
      if (!layout.ok()) {
        weight.emitOpError() << layout.status().message();
        return signalPassFailure();
      }
      CheckedSize bytes = layout->bytes();
      if (!(weights + bytes).fits(std::numeric_limits<int64_t>::max())) {
        weight.emitOpError() << "does not fit: the packed weights would take more than 2^63 bytes";
        return signalPassFailure();
      }
      weight->setAttr("offset", builder.getI64IntegerAttr(static_cast<int64_t>(*weights.value())));
      weights = CheckedSize((*(weights + bytes).value() + 63) / 64 * 64);
    }
    setFact("llmc.weight_bytes", static_cast<int64_t>(*weights.value()));

    int64_t page = 0, slot = 0;
    for (auto state : getOperation().getOps<llm::StateOp>()) {
      if (auto recurrent = dyn_cast<llm::RecurrentType>(state.getType())) {
        state->setAttr("offset", builder.getI64IntegerAttr(slot));
        slot += (recurrent.bytes() + 63) / 64 * 64;
        continue;
      }
      auto kv = cast<llm::KvType>(state.getType());
      state->setAttr("offset", builder.getI64IntegerAttr(page));
      page = (page + kv.bytesPerPage() + 63) / 64 * 64;
      setFact("llmc.page_positions", kv.getPage());
    }
    setFact("llmc.page_bytes", page);
    if (slot > 0)
      setFact("llmc.state_bytes", slot);
  }
};

} // namespace
