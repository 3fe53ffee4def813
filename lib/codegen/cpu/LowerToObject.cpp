// The pipeline from emitted MLIR to machine code. Loops stay loops: the kernels are unrolled as far as registers allow.
#include "lib/codegen/cpu/LowerToObject.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <mutex>

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// exp, log, tanh and erf of vectors as polynomials; sine and cosine stay calls of libm, whose range reduction they
// need.
void approximateMath(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return llvm::is_contained({math::ExpOp::getOperationName(), math::ExpM1Op::getOperationName(),
                               math::LogOp::getOperationName(), math::Log1pOp::getOperationName(),
                               math::TanhOp::getOperationName(), math::ErfOp::getOperationName()},
                              name);
  });
  walkAndApplyPatterns(module, std::move(patterns));
}

LogicalResult lowerToLlvmDialect(ModuleOp module) {
  approximateMath(module);
  PassManager passes(module.getContext());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  // libm calls of vectors were unrolled into vector ops.
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

std::unique_ptr<llvm::TargetMachine> createMachine(const CpuTarget &target, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(target.llvmTriple);
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return nullptr;
  llvm::TargetOptions options;
  // A multiply and an add that the task wrote apart stay apart: fused ones round differently.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      llvmTarget->createTargetMachine(triple, target.llvmCpu, target.llvmFeatures, options, llvm::Reloc::PIC_,
                                      std::nullopt, llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

bool emitFile(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
              llvm::SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return false;
  passes.run(module);
  return true;
}

void dump(llvm::Module &module, llvm::TargetMachine &machine, StringRef stem) {
  std::error_code code;
  llvm::raw_fd_ostream text((stem + ".ll").str(), code);
  if (!code)
    module.print(text, nullptr);
  llvm::SmallVector<char> assembly;
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::raw_fd_ostream file((stem + ".s").str(), code);
  if (!code && emitFile(*copy, machine, llvm::CodeGenFileType::AssemblyFile, assembly))
    file << StringRef(assembly.data(), assembly.size());
}

} // namespace

class llmc::cpu::LlvmUnit {
public:
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

void LlvmUnitDeleter::operator()(LlvmUnit *unit) const { delete unit; }

const CpuTarget &llmc::cpu::machineTarget(const CpuTarget &target, bool emulate) {
  return emulate ? knownCpuTargets().front() : target;
}

FailureOr<OwnedLlvmUnit> llmc::cpu::lowerToLlvm(ModuleOp module) {
  if (failed(lowerToLlvmDialect(module)))
    return failure();
  OwnedLlvmUnit unit(new LlvmUnit);
  unit->module = translateModuleToLLVMIR(module, unit->context, "llmc");
  if (!unit->module)
    return module.emitError() << "cannot be translated to LLVM IR";
  return unit;
}

StatusOr<std::string> llmc::cpu::emitObject(LlvmUnit &unit, const CpuTarget &target, const LowerOptions &options) {
  llvm::Module &module = *unit.module;
  const CpuTarget &chip = machineTarget(target, options.emulate);
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(chip, error);
  if (!machine)
    return Status::error("LLVM has no code generator for " + chip.llvmTriple + ": " + error);
  module.setTargetTriple(llvm::Triple(chip.llvmTriple));
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : module) {
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", chip.llvmCpu);
    function.addFnAttr("target-features", chip.llvmFeatures);
    function.addFnAttr("prefer-vector-width", std::to_string(chip.vectorBits));
    function.addFnAttr("min-legal-vector-width", std::to_string(chip.vectorBits));
  }
  optimize(module, *machine);
  if (!options.dumpPath.empty())
    dump(module, *machine, options.dumpPath);
  llvm::SmallVector<char> object;
  if (!emitFile(module, *machine, llvm::CodeGenFileType::ObjectFile, object))
    return Status::error("LLVM cannot emit object files for " + chip.name);
  return std::string(object.data(), object.size());
}
