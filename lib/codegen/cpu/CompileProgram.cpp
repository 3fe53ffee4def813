// Every task is a unit of its own; the linker puts the objects of the units together.
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/CompileUnits.h"
#include "lib/codegen/cpu/EqualTasks.h"
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

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

// The units of a program as text, which is all that their objects depend on.
struct EmittedUnits {
  std::string dumpDir;
  std::vector<UnitText> units = {};

  void add(StringRef name, const std::string &text) {
    units.push_back({name.str(), text});
    if (dumpDir.empty())
      return;
    std::error_code code;
    llvm::raw_fd_ostream stream(dumpDir + "/" + name.str() + ".mlir", code);
    if (!code)
      stream << text;
  }
};

struct TaskCode {
  int64_t scratch = 0;
  std::string text; // "" where nobody wants it
};

FailureOr<TaskCode> codeOf(const TaskKey &key, const Schedule &schedule, const PlanFacts &plan, const CpuTarget &target,
                           bool emulate, bool wantsText) {
  tile::TaskOp task = key.task;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(task.getContext()));
  FailureOr<int64_t> scratch = emitTask(task, schedule, {target, emulate, plan, key.isLogits}, *module);
  if (failed(scratch))
    return failure();
  return TaskCode{*scratch, wantsText ? textOf(*module) : ""};
}

// Without `units` the program is planned only.
LogicalResult emitUnits(ModuleOp program, const CpuTarget &target, bool emulate, CompiledProgram &result,
                        EmittedUnits *units) {
  FailureOr<PlanFacts> plan = planFactsOf(program);
  if (failed(plan))
    return failure();
  auto logits = findLogitsOperands(program);
  if (failed(logits))
    return failure();
  DenseMap<Operation *, std::vector<int32_t>> layers = layersOfLaunches(program);
  TaskNumbers numbers; // places in result.kernels
  DenseMap<TaskKey, TaskCode, TaskKeyInfo> codes;
  for (auto task : program.getOps<tile::TaskOp>()) {
    auto isLogits = logits->find(task);
    if (isLogits == logits->end())
      continue; // never launched
    FailureOr<Schedule> schedule = scheduleOf(task, target);
    if (failed(schedule))
      return failure();
    auto [code, isNew] = codes.try_emplace(TaskKey{task, isLogits->second});
    if (isNew) {
      FailureOr<TaskCode> made = codeOf(code->first, *schedule, *plan, target, emulate, units != nullptr);
      if (failed(made))
        return failure();
      code->second = std::move(*made);
    }
    result.scratchBytes = std::max(result.scratchBytes, code->second.scratch);
    numbers[task] = static_cast<int32_t>(result.kernels.size());
    result.kernels.push_back({task.getSymName().str(), nameOf(schedule->shape).str(), schedule->instruction,
                              schedule->reason, schedule->rowBlock, schedule->kernelRows, schedule->tileRows,
                              costOf(task), layers.lookup(task)});
    if (units)
      units->add(task.getSymName(), code->second.text);
  }
  if (!units)
    return success();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(program.getContext()));
  if (failed(emitProgram(program, *plan, target, numbers, *module)))
    return failure();
  units->add("step", textOf(*module));
  return success();
}

FailureOr<CompiledProgram> emitAll(ModuleOp program, const CpuTarget &target, const CompileOptions &options,
                                   EmittedUnits *units) {
  MLIRContext *context = program.getContext();
  DialectRegistry registry;
  registerCodegenDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  CompiledProgram result;
  result.requiredFeatures = machineTarget(target, options.emulate).requiredFeatures;
  if (failed(emitUnits(program, target, options.emulate, result, units)))
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
  return emitAll(program, target, options, nullptr);
}

FailureOr<CompiledProgram> llmc::cpu::compileProgram(ModuleOp program, const CpuTarget &target,
                                                     const CompileOptions &options) {
  EmittedUnits emittedUnits{options.dumpDir};
  FailureOr<CompiledProgram> emitted = emitAll(program, target, options, &emittedUnits);
  if (failed(emitted))
    return failure();
  CompiledProgram &result = *emitted;
  const std::vector<UnitText> &units = emittedUnits.units;
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
