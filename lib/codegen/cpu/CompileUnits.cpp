// Every unit is parsed and lowered in a context of its own: no thread waits for another, and nothing that a unit was
// emitted beside can reach its object.
#include "lib/codegen/cpu/CompileUnits.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/LowerToObject.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "runtime/support/Hash.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ThreadPool.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// One that differs from all before it.
struct Unit {
  const UnitText *source;
  std::string hash; // of the text and what the target makes of it
  StatusOr<std::string> object = std::string();
  bool fromCache = false;
  Status cacheFault = {};
};

std::string hashOf(const std::string &text, const CpuTarget &machine) {
  return hashHex(machine.llvmTriple + "\n" + machine.llvmCpu + "\n" + machine.llvmFeatures + "\n" +
                 std::to_string(machine.vectorBits) + "\n" + text);
}

std::string symbolOf(const Unit &unit) { return std::string(kernelSymbol) + "." + unit.hash.substr(0, 16); }

StatusOr<std::string> compile(const Unit &unit, const CpuTarget &target, const LowerOptions &options) {
  DialectRegistry registry;
  registerUnitDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (said.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      said = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(unit.source->text, &context);
  if (!module)
    return Status::error("the emitted unit " + unit.source->name + " does not parse: " + said);
  if (auto kernel = module->lookupSymbol<LLVM::LLVMFuncOp>(kernelSymbol))
    kernel.setSymName(symbolOf(unit));
  FailureOr<OwnedLlvmUnit> lowered = lowerToLlvm(*module);
  if (failed(lowered))
    return Status::error("the emitted unit " + unit.source->name + " cannot be lowered to LLVM IR: " + said);
  return emitObject(**lowered, target, options);
}

class Compiler {
public:
  Compiler(const CpuTarget &target, const UnitOptions &options)
      : target_(target), options_(options), cache_(options.dumpDir.empty() ? options.cacheFolder : "") {}

  void make(Unit &unit) const {
    std::string key = hashHex(unit.hash + "\n" LLVM_VERSION_STRING "\n" + compilerBuildId());
    bool canCache = !cache_.folder().empty() && !compilerBuildId().empty();
    if (std::optional<std::string> found = canCache ? cache_.find(key) : std::nullopt) {
      unit.object = std::move(*found);
      unit.fromCache = true;
      return;
    }
    std::string dumpPath = options_.dumpDir.empty() ? "" : options_.dumpDir + "/" + unit.source->name;
    unit.object = compile(unit, target_, {options_.emulate, dumpPath});
    if (canCache && unit.object.ok())
      unit.cacheFault = cache_.store(key, *unit.object);
  }

  void trim() const { cache_.trim(); }

private:
  const CpuTarget &target_;
  const UnitOptions &options_;
  KernelCache cache_;
};

} // namespace

StatusOr<UnitObjects> llmc::cpu::compileUnits(const std::vector<UnitText> &units, const CpuTarget &target,
                                              const UnitOptions &options) {
  const CpuTarget &machine = machineTarget(target, options.emulate);
  UnitObjects result;
  std::vector<Unit> distinct;
  llvm::StringMap<size_t> known;
  for (const UnitText &text : units) {
    Unit unit{&text, hashOf(text.text, machine)};
    result.symbols.push_back(symbolOf(unit));
    if (known.try_emplace(unit.hash, distinct.size()).second)
      distinct.push_back(std::move(unit));
  }
  // The longest first: the last ones to start then end soon.
  std::vector<size_t> order(distinct.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(distinct[b].source->text.size(), a) < std::pair(distinct[a].source->text.size(), b);
  });
  Compiler compiler(target, options);
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(options.numThreads));
  for (size_t at : order)
    pool.async([&, at] { compiler.make(distinct[at]); });
  pool.wait();
  for (Unit &unit : distinct) {
    if (!unit.object.ok())
      return unit.object.status();
    ++(unit.fromCache ? result.fromCache : result.compiled);
    if (!unit.cacheFault.ok())
      result.cacheFault = unit.cacheFault;
    result.objects.push_back(std::move(*unit.object));
  }
  if (result.compiled > 0)
    compiler.trim();
  return result;
}
