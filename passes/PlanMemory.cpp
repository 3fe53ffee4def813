// Offsets for buffers, weights and caches. The arena holds what is live in @step, and behind it the layer that runs.
#include "dialects/llm/LlmDialect.h"
#include "dialects/tile/TileDialect.h"
#include "lib/weights/PackedLayout.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

int64_t bytesPerRow(tile::AllocOp op) { return op.getType().stride() * 4; }

// From its first to its last user, in the order of the function.
struct LiveRange {
  tile::AllocOp alloc;
  int64_t begin, end, offset = 0;
};

// First fit: each buffer goes to the lowest place that no buffer alive at the same time holds. Returns bytes per row.
int64_t placeBuffers(func::FuncOp function, int64_t base) {
  DenseMap<Operation *, int64_t> order;
  for (Operation &op : function.getBody().front())
    order[&op] = static_cast<int64_t>(order.size());
  SmallVector<LiveRange> placed;
  int64_t top = base;
  for (auto alloc : function.getOps<tile::AllocOp>()) {
    LiveRange range{alloc, std::numeric_limits<int64_t>::max(), -1, base};
    for (Operation *user : alloc.getResult().getUsers()) {
      range.begin = std::min(range.begin, order[user]);
      range.end = std::max(range.end, order[user]);
    }
    SmallVector<LiveRange> rivals = llvm::filter_to_vector(
        placed, [&](const LiveRange &other) { return other.begin <= range.end && range.begin <= other.end; });
    llvm::sort(rivals, [](const LiveRange &a, const LiveRange &b) { return a.offset < b.offset; });
    for (LiveRange &rival : rivals)
      if (rival.offset < range.offset + bytesPerRow(alloc))
        range.offset = std::max(range.offset, rival.offset + bytesPerRow(rival.alloc));
    alloc.setOffset(range.offset);
    top = std::max(top, range.offset + bytesPerRow(alloc));
    placed.push_back(range);
  }
  return top;
}

struct PlanMemory : llmc::impl::PlanMemoryPassBase<PlanMemory> {
  using Base::Base;

  void runOnOperation() override {
    Builder builder(&getContext());
    auto setFact = [&](StringRef name, int64_t bytes) {
      getOperation()->setAttr(name, builder.getI64IntegerAttr(bytes));
    };
    int64_t step = 0, layers = 0;
    if (auto function = getOperation().lookupSymbol<func::FuncOp>("step"))
      step = placeBuffers(function, 0);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.getSymName() != "step" && !function.isDeclaration())
        layers = std::max(layers, placeBuffers(function, step));
    setFact("llmc.arena_bytes_per_row", std::max(step, layers));
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

    int64_t page = 0;
    for (auto state : getOperation().getOps<llm::StateOp>()) {
      auto kv = cast<llm::KvType>(state.getType());
      state->setAttr("offset", builder.getI64IntegerAttr(page));
      page = (page + kv.bytesPerPage() + 63) / 64 * 64;
      setFact("llmc.page_positions", kv.getPage());
    }
    setFact("llmc.page_bytes", page);
  }
};

} // namespace
