// The module side of compilation: importing, the phases and their dumps.
#include "dialects/tile/TileDialect.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/importer/BuildModule.h"
#include "lib/importer/Inspect.h"
#include "lib/importer/files/quantized/LogicalTensors.h"
#include "mlir/IR/Verifier.h"
#include "passes/Pipelines.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;

namespace llmc {
namespace {

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<llm::LlmDialect, tile::TileDialect, func::FuncDialect, shard::ShardDialect>();
  cpu::registerCodegenDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

PhaseOptions phaseOptions(const CompileOptions &options) {
  PhaseOptions phases;
  phases.weights = options.weights;
  phases.activations = options.activations;
  phases.kvElement = cacheElementOf(options);
  phases.target = options.target;
  phases.maxTokens = options.maxTokens;
  phases.without = options.without;
  phases.grid = options.grid;
  phases.rank = options.rank;
  return phases;
}

Status checkPhase(const std::string &name, const char *option, const std::vector<std::string> &known = phaseNames()) {
  if (name.empty() || llvm::is_contained(known, name))
    return {};
  return Status::error(std::string("unknown phase '") + name + "' in " + option +
                       " (known = " + llvm::join(known, " ") + ")");
}

// Writes DIR/3-fuse.mlir and the like.
Status dump(const std::string &folder, size_t index, const std::string &phase, ModuleOp module) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return Status::error(folder + ": cannot create: " + error.message());
  std::string path = folder + "/" + std::to_string(index) + "-" + phase + ".mlir";
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (!error) {
    module.print(out, OpPrintingFlags().useLocalScope());
    out << '\n';
    out.close();
    error = out.error();
  }
  return error ? Status::error(path + ": cannot write: " + error.message()) : Status();
}

} // namespace

std::string cacheElementOf(const CompileOptions &options) {
  return !options.kv.empty() ? options.kv : options.weights == "f32" ? "f32" : "bf16";
}

StatusOr<CompiledModule> buildAndLower(const Model &model, const CompileOptions &options, const AfterPhase &after) {
  std::vector<std::string> ends = phaseNames();
  ends.push_back(emitPhase);
  LLMC_RETURN_IF_ERROR(checkPhase(options.stopAfter, "--stop-after", ends));
  for (const std::string &phase : options.without)
    LLMC_RETURN_IF_ERROR(checkPhase(phase, "--without"));
  LLMC_RETURN_IF_ERROR(checkWired(model));
  CompiledModule result;
  result.context = makeContext();
  DiagnosticCollector diagnostics(result.context.get(), options.verbose);
  auto storageTypeOf = [&](const std::string &tensor) -> std::string {
    if (!model.files.hasWeights())
      return plainTypeOf(model.spec);
    StatusOr<const LogicalTensors *> tensors = model.files.logical(); // opening the model has said what is wrong
    const LogicalTensor *found = tensors.ok() ? (*tensors)->find(tensor) : nullptr;
    return found ? found->format : std::string();
  };
  LLMC_ASSIGN_OR_RETURN(int64_t positions, contextOf(model, options));
  result.module = buildModule(*result.context, model.spec, positions, storageTypeOf);
  if (failed(verify(*result.module)))
    return diagnostics.status("the imported module is not valid");
  size_t index = 0;
  Status dumped;
  LogicalResult lowered = runPhases(*result.module, phaseOptions(options), options.stopAfter,
                                    [&](const std::string &phase, ModuleOp module) {
                                      if (!options.dumpPhases.empty())
                                        dumped = dump(options.dumpPhases, index++, phase, module);
                                      if (after)
                                        after(phase, module);
                                      return success(dumped.ok());
                                    });
  LLMC_RETURN_IF_ERROR(dumped);
  if (failed(lowered))
    return diagnostics.status("a phase failed without saying why");
  return result;
}

StatusOr<RankKinds> rankKinds(const Model &model, const CompileOptions &options) {
  RankKinds ranks;
  if (options.grid.ranks() == 1)
    return RankKinds{{0}, {0}};
  // What sharding leaves for two ranks tells whether they are of one kind.
  CompileOptions own = options;
  own.grid = {};
  own.stopAfter = "verify";
  own.dumpPhases.clear();
  LLMC_ASSIGN_OR_RETURN(CompiledModule imported, buildAndLower(model, own));
  own.grid = options.grid;
  DiagnosticCollector diagnostics(imported.context.get(), options.verbose);
  std::map<std::string, size_t> kinds;
  for (own.rank = 0; own.rank < options.grid.ranks(); ++own.rank) {
    OwningOpRef<ModuleOp> module = imported.module->clone();
    if (failed(shardModel(*module, phaseOptions(own))))
      return diagnostics.status("the model cannot be shared by these ranks");
    (*module)->removeAttr("llmc.rank");
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    auto [kind, isNew] = kinds.try_emplace(std::move(text), ranks.first.size());
    ranks.kindOf.push_back(kind->second);
    if (isNew)
      ranks.first.push_back(own.rank);
  }
  return ranks;
}

StatusOr<RankPrograms> lowerRanks(const Model &model, const CompileOptions &options) {
  LLMC_ASSIGN_OR_RETURN(RankKinds ranks, rankKinds(model, options));
  RankPrograms programs{{}, std::move(ranks.kindOf)};
  CompileOptions own = options;
  for (int64_t rank : ranks.first) {
    own.rank = rank;
    if (options.grid.ranks() > 1 && !options.dumpPhases.empty())
      own.dumpPhases = options.dumpPhases + "/rank-" + std::to_string(rank);
    LLMC_ASSIGN_OR_RETURN(programs.kinds.emplace_back(), buildAndLower(model, own));
  }
  return programs;
}

} // namespace llmc
