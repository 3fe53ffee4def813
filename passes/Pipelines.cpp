#include "passes/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace llmc {
namespace {

struct Phase {
  const char *name;
  bool isOptimization;
  std::function<void(OpPassManager &, const PhaseOptions &)> add;
};

ShardModelPassOptions shardOptions(const PhaseOptions &options) {
  return {options.grid.group.experts, options.grid.group.tensor, options.grid.stages, options.rank};
}

const std::vector<Phase> &phases() {
  static const std::vector<Phase> all = {
      {"import", false, [](OpPassManager &, const PhaseOptions &) {}},
      // First, on the model as its authors describe it: later passes trust that state is grown once.
      {"verify", false, [](OpPassManager &pm, const PhaseOptions &) { pm.addPass(createVerifyStatePass()); }},
      // On the model's own operators, whose rules it follows; the parts of a rank are fused like whole weights.
      {"shard", false,
       [](OpPassManager &pm, const PhaseOptions &options) { pm.addPass(createShardModelPass(shardOptions(options))); }},
      // Before forms: parts of one product must get one form.
      {"fuse", true, [](OpPassManager &pm, const PhaseOptions &) { pm.addPass(createFuseLinearsPass()); }},
      // Before tasks: the form decides how a task rounds its input.
      {"forms", false,
       [](OpPassManager &pm, const PhaseOptions &options) {
         pm.addPass(createChooseWeightFormsPass({options.weights}));
       }},
      {"pages", false,
       [](OpPassManager &pm, const PhaseOptions &options) {
         pm.addPass(createLowerKvToPagesPass({options.kvElement, options.kvPage, options.target}));
       }},
      // CSE merges what the builder spelled twice (indices, constants, a table that queries and keys both load).
      {"tasks", false,
       [](OpPassManager &pm, const PhaseOptions &options) {
         pm.addPass(createFormTileTasksPass());
         pm.addPass(createCSEPass());
         if (options.activations == "int8")
           pm.addPass(createNarrowActivationsPass());
       }},
      // On whole tasks, whose launches it repeats for every block of rows; a program of one rank stays as it is.
      {"overlap", true,
       [](OpPassManager &pm, const PhaseOptions &options) {
         pm.addPass(createOverlapCollectivesPass({sharding::rowBlocks, options.rowsPerBlock}));
       }},
      {"schedule", false,
       [](OpPassManager &pm, const PhaseOptions &options) { pm.addPass(createScheduleTasksPass({options.target})); }},
      // Last: nothing may add a buffer or change a weight's layout afterwards.
      {"memory", false,
       [](OpPassManager &pm, const PhaseOptions &options) { pm.addPass(createPlanMemoryPass({options.maxTokens})); }},
  };
  return all;
}

} // namespace

LogicalResult shardModel(ModuleOp module, const PhaseOptions &options) {
  PassManager manager(module.getContext());
  manager.addPass(createShardModelPass(shardOptions(options)));
  return manager.run(module);
}

std::vector<std::string> phaseNames() {
  std::vector<std::string> names;
  for (const Phase &phase : phases())
    names.push_back(phase.name);
  return names;
}

LogicalResult runPhases(ModuleOp module, const PhaseOptions &options, const std::string &stopAfter,
                        const std::function<LogicalResult(const std::string &, ModuleOp)> &after) {
  for (const Phase &phase : phases()) {
    if (!phase.isOptimization || !llvm::is_contained(options.without, phase.name)) {
      PassManager manager(module.getContext());
      phase.add(manager, options);
      if (failed(manager.run(module)))
        return failure();
    }
    if (failed(after(phase.name, module)))
      return failure();
    if (phase.name == stopAfter)
      break;
  }
  return success();
}

} // namespace llmc
