// Attaches to every task the schedule that code generation chose for the target; the choice itself is plain code there.
#include "dialects/tile/TileDialect.h"
#include "lib/codegen/cpu/Schedule.h"
#include "passes/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_SCHEDULETASKSPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

struct ScheduleTasks : llmc::impl::ScheduleTasksPassBase<ScheduleTasks> {
  using Base::Base;

  void runOnOperation() override {
    StatusOr<CpuTarget> found = findCpuTarget(target.getValue());
    if (!found.ok()) {
      getOperation().emitError() << found.status().message();
      return signalPassFailure();
    }
    for (auto task : getOperation().getOps<tile::TaskOp>())
      task.setScheduleAttr(cpu::chooseSchedule(task, *found));
  }
};

} // namespace
