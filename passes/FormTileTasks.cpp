// Tiles for weights, then each function of the llm module as launches of tile tasks (FunctionTasks.h).
#include "passes/CheckTileForms.h"
#include "passes/FunctionTasks.h"
#include "passes/Passes.h"
#include "passes/WeightTiling.h"

namespace llmc {
#define GEN_PASS_DEF_FORMTILETASKSPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

struct FormTileTasks : llmc::impl::FormTileTasksPassBase<FormTileTasks> {
  void runOnOperation() override {
    if (failed(checkTileForms(getOperation())))
      return signalPassFailure();
    llvm::MapVector<func::FuncOp, TaskGrouping> groupings;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration())
        groupings.insert({function, TaskGrouping(function)});
    if (failed(WeightTiling(getOperation(), groupings).apply()))
      return signalPassFailure();
    for (auto &[function, grouping] : groupings)
      if (failed(FunctionTasks(function, grouping, function.getSymName() == "step").convert()))
        return signalPassFailure();
  }
};

} // namespace
