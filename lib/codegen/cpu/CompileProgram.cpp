// Every task is a unit of its own; the linker puts the objects of the units together.
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/CompileUnits.h"
#include "lib/codegen/cpu/Link.h"
#include "lib/codegen/cpu/LowerToObject.h"
#include "lib/codegen/cpu/ProgramEmitter.h"
#include "lib/codegen/cpu/TaskCost.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// The unit in textual form, which is all that its object depends on.
UnitText textOf(StringRef name, ModuleOp module, const CompileOptions &options) {
  UnitText unit{name.str(), ""};
  llvm::raw_string_ostream(unit.text) << module;
  if (options.dumpDir.empty())
    return unit;
  std::error_code code;
  llvm::raw_fd_ostream stream(options.dumpDir + "/" + unit.name + ".mlir", code);
  if (!code)
    stream << unit.text;
  return unit;
}

LogicalResult emitUnits(ModuleOp program, const CpuTarget &target, const CompileOptions &options,
                        CompiledProgram &result, std::vector<UnitText> &units) {
  FailureOr<PlanFacts> plan = planFactsOf(program);
  if (failed(plan))
    return failure();
  auto logits = findLogitsOperands(program);
  if (failed(logits))
    return failure();
  DenseMap<Operation *, std::vector<int32_t>> layers = layersOfLaunches(program);
  TaskNumbers numbers; // places in result.kernels
  for (auto task : program.getOps<tile::TaskOp>()) {
    auto isLogits = logits->find(task);
    if (isLogits == logits->end())
      continue; // never launched
    FailureOr<Schedule> schedule = scheduleOf(task, target);
    if (failed(schedule))
      return failure();
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(program.getContext()));
    TaskOptions taskOptions{target, options.emulate, *plan, isLogits->second};
    FailureOr<int64_t> scratch = emitTask(task, *schedule, taskOptions, *module);
    if (failed(scratch))
      return failure();
    result.scratchBytes = std::max(result.scratchBytes, *scratch);
    numbers[task] = static_cast<int32_t>(result.kernels.size());
    result.kernels.push_back({task.getSymName().str(), nameOf(schedule->shape).str(), schedule->instruction,
                              schedule->reason, schedule->rowBlock, schedule->kernelRows, schedule->tileRows,
                              costOf(task), layers.lookup(task)});
    units.push_back(textOf(task.getSymName(), *module, options));
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(program.getContext()));
  if (failed(emitProgram(program, *plan, target, numbers, *module)))
    return failure();
  units.push_back(textOf("step", *module, options));
  return success();
}

FailureOr<CompiledProgram> emitAll(ModuleOp program, const CpuTarget &target, const CompileOptions &options,
                                   std::vector<UnitText> &units) {
  MLIRContext *context = program.getContext();
  DialectRegistry registry;
  registerCodegenDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  CompiledProgram result;
  result.requiredFeatures = machineTarget(target, options.emulate).requiredFeatures;
  if (failed(emitUnits(program, target, options, result, units)))
    return failure();
  return result;
}

} // namespace

void llmc::cpu::registerUnitDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void llmc::cpu::registerCodegenDialects(DialectRegistry &registry) {
  registerUnitDialects(registry);
  registry.insert<llm::LlmDialect, tile::TileDialect>();
}

FailureOr<CompiledProgram> llmc::cpu::planProgram(ModuleOp program, const CpuTarget &target,
                                                  const CompileOptions &options) {
  std::vector<UnitText> units;
  return emitAll(program, target, options, units);
}

FailureOr<CompiledProgram> llmc::cpu::compileProgram(ModuleOp program, const CpuTarget &target,
                                                     const CompileOptions &options) {
  std::vector<UnitText> units;
  FailureOr<CompiledProgram> emitted = emitAll(program, target, options, units);
  if (failed(emitted))
    return failure();
  CompiledProgram &result = *emitted;
  StatusOr<UnitObjects> compiled =
      compileUnits(units, target, {options.emulate, options.dumpDir, options.numThreads, options.cacheFolder});
  if (!compiled.ok())
    return program.emitError() << compiled.status().message();
  // The step calls every task by its own name, also where tasks share a kernel.
  std::vector<SymbolAlias> aliases;
  for (size_t i = 0; i < result.kernels.size(); ++i)
    aliases.push_back({taskSymbol(result.kernels[i].task), compiled->symbols[i]});
  StatusOr<std::string> shared = linkSharedObject(compiled->objects, aliases, options.linker);
  if (!shared.ok())
    return program.emitError() << shared.status().message();
  result.sharedObject = std::move(*shared);
  result.numUnits = static_cast<int64_t>(units.size());
  result.unitsCompiled = compiled->compiled;
  result.unitsFromCache = compiled->fromCache;
  result.cacheFault = compiled->cacheFault;
  return emitted;
}
