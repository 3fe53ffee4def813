// Only types change: every cache type of the module gets its pages.
#include "dialects/llm/LlmDialect.h"
#include "lib/target/CpuTarget.h"
#include "passes/LayerCalls.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_LOWERKVTOPAGESPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// Positions that a kernel scores at once: one vector of the widest target, two of the next.
constexpr int64_t panelPositions = 16;

struct LowerKvToPages : llmc::impl::LowerKvToPagesPassBase<LowerKvToPages> {
  using Base::Base;

  void runOnOperation() override {
    if (page <= 0 || page % panelPositions != 0) {
      getOperation().emitError() << "a page has " << page.getValue() << " positions, expected a multiple of "
                                 << panelPositions;
      return signalPassFailure();
    }
    MLIRContext *context = &getContext();
    Type elementType;
    if (element == "f32")
      elementType = Float32Type::get(context);
    else if (element == "bf16")
      elementType = BFloat16Type::get(context);
    else if (element == "f16")
      elementType = Float16Type::get(context);
    else if (element == "int8")
      elementType = IntegerType::get(context, 8);
    if (!elementType) {
      getOperation().emitError() << "unknown element type '" << element.getValue()
                                 << "' of the cache (known = f32 bf16 f16 int8)";
      return signalPassFailure();
    }
    StatusOr<CpuTarget> found = findCpuTarget(target.getValue());
    if (!found.ok()) {
      getOperation().emitError() << found.status().message();
      return signalPassFailure();
    }
    auto paged = [&](Type type) -> Type {
      auto kv = dyn_cast<llm::KvType>(type);
      if (!kv || kv.isPaged())
        return type;
      bool pairs = found->cachePairs && elementType.isBF16() && kv.getHeadDim() % panelPositions == 0 &&
                   kv.storedValueDim() == kv.getHeadDim();
      // The value of a latent cache is part of its key: whole rows serve both products.
      return kv.withPages(elementType, page, kv.getLatent() ? 1 : panelPositions, pairs ? 2 : 1,
                          pairs ? found->cacheBlock : 0);
    };
    getOperation().walk([&](Operation *op) {
      if (auto state = dyn_cast<llm::StateOp>(op))
        state.setTypeAttr(TypeAttr::get(paged(state.getType())));
      for (Value result : op->getResults())
        result.setType(paged(result.getType()));
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            argument.setType(paged(argument.getType()));
      if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isDeclaration())
        updateFunctionType(function);
    });
  }
};

} // namespace
