#include "test/lib/codegen/cpu/CompiledModel.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/ProgramEmitter.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipelines.h"
#include "runtime/llmc_abi.h"
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

int64_t factOf(mlir::ModuleOp module, llvm::StringRef name) {
  auto attribute = module->getAttrOfType<mlir::IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}

Manifest manifestOf(mlir::ModuleOp module, const cpu::CompiledProgram &program, const CpuTarget &target) {
  Manifest m;
  m.writer = "llmc test";
  m.abiVersion = LLMC_ABI_VERSION;
  m.family = m.architecture = "test";
  m.target = target.name;
  m.cpuFeatures = program.requiredFeatures;
  m.vocabulary = kVocabulary;
  m.hidden = kHidden;
  m.recordChannels = kHidden;
  m.numLayers = 1;
  m.context = 64;
  m.maxTokens = 24;
  m.maxSequences = 3;
  m.maxLogitRows = 24;
  m.maxWorkers = 4;
  m.pageTokens = static_cast<int32_t>(factOf(module, "llmc.page_positions"));
  m.pageBytes = static_cast<uint64_t>(factOf(module, "llmc.page_bytes"));
  m.numPages = m.pageTokens > 0 ? 3 * 64 / m.pageTokens : 0;
  m.stateBytes = static_cast<uint64_t>(factOf(module, "llmc.state_bytes"));
  m.arenaBytes = static_cast<uint64_t>(factOf(module, "llmc.arena_bytes_per_row") * m.maxTokens + 63) / 64 * 64;
  m.scratchBytesPerWorker = static_cast<uint64_t>(program.scratchBytes + 63) / 64 * 64;
  m.weightsBytes = static_cast<uint64_t>(factOf(module, "llmc.weight_bytes"));
  m.tokenizer.kind = noTokenizerKind;
  if (mlir::FailureOr<RankFacts> facts = cpu::exchangeFactsOf(module, m.maxTokens, m.maxLogitRows);
      mlir::succeeded(facts) && facts->exchanges > 0)
    m.rank = *facts;
  return m;
}

} // namespace

TextModel::TextModel(const std::string &text) {
  mlir::DialectRegistry registry;
  cpu::registerCodegenDialects(registry);
  registry.insert<mlir::func::FuncDialect>();
  context_.appendDialectRegistry(registry);
  context_.loadAllAvailableDialects();
  module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
  EXPECT_TRUE(module_) << text;
}

ArtifactContents compileModule(mlir::ModuleOp module, const TensorReader &tensors,
                               const std::vector<std::string> &without) {
  ArtifactContents contents;
  PhaseOptions phases;
  phases.weights = phases.kvElement = "f32";
  phases.kvPage = 16;
  phases.maxTokens = 24;
  phases.rowsPerBlock = 3;
  phases.without = without;
  auto ignore = [](const std::string &, mlir::ModuleOp) { return mlir::success(); };
  StatusOr<CpuTarget> target = findCpuTarget(phases.target);
  if (!target.ok() || mlir::failed(runPhases(module, phases, "", ignore))) {
    ADD_FAILURE() << "the phases fail";
    return contents;
  }
  mlir::FailureOr<cpu::CompiledProgram> program = cpu::compileProgram(module, *target, {});
  if (mlir::failed(program)) {
    ADD_FAILURE() << "code generation fails";
    return contents;
  }
  contents.manifest = manifestOf(module, *program, *target);
  contents.program = program->sharedObject;
  contents.writeWeights = [module, &tensors, total = contents.manifest.weightsBytes](WeightSink &sink) -> Status {
    for (auto weight : mlir::ModuleOp(module).getOps<llm::WeightOp>()) {
      LLMC_ASSIGN_OR_RETURN(PackedLayout layout, layoutOf(mlir::cast<llm::WeightType>(weight.getType())));
      LLMC_RETURN_IF_ERROR(
          sink.padTo(static_cast<uint64_t>(weight->getAttrOfType<mlir::IntegerAttr>("offset").getInt())));
      auto append = [&](std::span<const uint8_t> bytes) { return sink.append(bytes); };
      LLMC_RETURN_IF_ERROR(packWeight(recipeOf(weight), layout, tensors, append, 1));
    }
    return sink.padTo(total);
  };
  return contents;
}

} // namespace llmc::test
