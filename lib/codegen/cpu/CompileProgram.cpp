// Every task is a unit of its own, compiled in parallel with the others; the linker puts them together.
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/Link.h"
#include "lib/codegen/cpu/LowerToObject.h"
#include "lib/codegen/cpu/ProgramEmitter.h"
#include "lib/codegen/cpu/TaskCost.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

struct Unit {
  std::string name;
  OwningOpRef<ModuleOp> module;
};

constexpr const char *kShapeNames[] = {"rows", "dot", "quantized_dot", "attend"};

void dumpModule(ModuleOp module, const std::string &stem) {
  std::error_code code;
  llvm::raw_fd_ostream stream(stem + ".mlir", code);
  if (!code)
    module.print(stream);
}

LogicalResult emitUnits(ModuleOp program, const CpuTarget &target, const CompileOptions &options,
                        CompiledProgram &result, std::vector<Unit> &units) {
  FailureOr<PlanFacts> plan = planFactsOf(program);
  if (failed(plan))
    return failure();
  auto logits = findLogitsOperands(program);
  if (failed(logits))
    return failure();
  DenseMap<Operation *, std::vector<int32_t>> layers = layersOfLaunches(program);
  for (auto task : program.getOps<tile::TaskOp>()) {
    auto isLogits = logits->find(task);
    if (isLogits == logits->end())
      continue; // never launched
    FailureOr<Schedule> schedule = scheduleOf(task, target);
    if (failed(schedule))
      return failure();
    Unit unit{task.getSymName().str(), ModuleOp::create(UnknownLoc::get(program.getContext()))};
    TaskOptions taskOptions{target, options.emulate, *plan, isLogits->second};
    FailureOr<int64_t> scratch = emitTask(task, *schedule, taskOptions, *unit.module);
    if (failed(scratch))
      return failure();
    result.scratchBytes = std::max(result.scratchBytes, *scratch);
    result.kernels.push_back({unit.name, kShapeNames[static_cast<int>(schedule->shape)], schedule->instruction,
                              schedule->reason, schedule->rowBlock, schedule->kernelRows, schedule->tileRows,
                              costOf(task), layers.lookup(task)});
    units.push_back(std::move(unit));
  }
  Unit unit{"step", ModuleOp::create(UnknownLoc::get(program.getContext()))};
  if (failed(emitProgram(program, *plan, target, *unit.module)))
    return failure();
  units.push_back(std::move(unit));
  return success();
}

} // namespace

void llmc::cpu::registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, ub::UBDialect, vector::VectorDialect, llm::LlmDialect, tile::TileDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

FailureOr<CompiledProgram> llmc::cpu::compileProgram(ModuleOp program, const CpuTarget &target,
                                                     const CompileOptions &options) {
  MLIRContext *context = program.getContext();
  DialectRegistry registry;
  registerCodegenDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();

  CompiledProgram result;
  const CpuTarget &machine = options.emulate ? knownCpuTargets().front() : target;
  result.requiredFeatures = machine.requiredFeatures;
  std::vector<Unit> units;
  if (failed(emitUnits(program, target, options, result, units)))
    return failure();

  std::vector<OwnedLlvmUnit> lowered;
  for (Unit &unit : units) {
    if (!options.dumpDir.empty())
      dumpModule(*unit.module, options.dumpDir + "/" + unit.name);
    FailureOr<OwnedLlvmUnit> llvmUnit = lowerToLlvm(*unit.module);
    if (failed(llvmUnit))
      return failure();
    lowered.push_back(std::move(*llvmUnit));
  }
  std::vector<std::optional<StatusOr<std::string>>> emitted(units.size());
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(options.numThreads));
  for (size_t i = 0; i < units.size(); ++i)
    pool.async([&, i] {
      std::string dumpPath = options.dumpDir.empty() ? "" : options.dumpDir + "/" + units[i].name;
      emitted[i] = emitObject(*lowered[i], target, {options.emulate, dumpPath});
    });
  pool.wait();
  std::vector<std::string> objects;
  for (std::optional<StatusOr<std::string>> &entry : emitted) {
    StatusOr<std::string> &object = *entry;
    if (!object.ok())
      return program.emitError() << object.status().message();
    objects.push_back(std::move(*object));
  }
  StatusOr<std::string> shared = linkSharedObject(objects, options.linker);
  if (!shared.ok())
    return program.emitError() << shared.status().message();
  result.sharedObject = std::move(*shared);
  return result;
}
