// The artifact side of compilation: limits and memory plan, the program, the weights, the files beside them.
#include "tools/llmc/Compile.h"
#include "dialects/llm/LlmDialect.h"
#include "dialects/tile/TileDialect.h"
#include "lib/artifact/ArtifactWriter.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "lib/codegen/cpu/ProgramEmitter.h"
#include "lib/weights/ModelTensors.h"
#include "runtime/artifact/Dispatch.h"
#include "runtime/llmc_abi.h"
#include "runtime/support/Progress.h"
#include "runtime/support/UsableCores.h"
#include "tools/llmc/Diagnostics.h"
#include "tools/llmc/MemoryReport.h"
#include "tools/llmc/ModelText.h"
#include "tools/llmc/PackRanks.h"
#include <cinttypes>
#include <cstdio>
#include <map>

using namespace mlir;

namespace llmc {
namespace {

constexpr int64_t defaultContext = 8192;
// Logits of a whole step cost vocabulary * 4 bytes a row: steps that want more rows than this are split.
constexpr int64_t logitBytes = int64_t(64) << 20;
constexpr int32_t mostWorkers = 64;

int64_t fact(ModuleOp module, StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); }
// Of what not every model has: pages, recurrent state.
int64_t factOrZero(ModuleOp module, StringRef name) {
  auto attribute = module->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}
int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

void planMemory(Manifest &manifest, ModuleOp module, int64_t scratchBytes) {
  std::string arenaPerRow = std::to_string(fact(module, "llmc.arena_bytes_per_row"));
  manifest.arenaBytes =
      static_cast<uint64_t>(roundUp(fact(module, "llmc.arena_bytes_per_row") * manifest.maxTokens, 64));
  manifest.scratchBytesPerWorker = static_cast<uint64_t>(roundUp(scratchBytes, 64));
  manifest.weightsBytes = static_cast<uint64_t>(fact(module, "llmc.weight_bytes"));
  manifest.pageTokens = static_cast<int32_t>(factOrZero(module, "llmc.page_positions"));
  manifest.pageBytes = static_cast<uint64_t>(fact(module, "llmc.page_bytes"));
  manifest.stateBytes = static_cast<uint64_t>(factOrZero(module, "llmc.state_bytes"));
  auto entry = [&](const char *name, MemoryKind kind, uint64_t bytes, std::string expression) {
    manifest.memoryPlan.push_back({name, kind, bytes, std::move(expression)});
  };
  entry("weights", MemoryKind::Weights, manifest.weightsBytes, std::to_string(manifest.weightsBytes));
  entry("activations", MemoryKind::Activations, manifest.arenaBytes, "max_tokens * " + arenaPerRow);
  entry("scratch of a worker", MemoryKind::Scratch, manifest.scratchBytesPerWorker,
        std::to_string(manifest.scratchBytesPerWorker) + " per worker");
  if (manifest.pageBytes > 0)
    entry("kv pages", MemoryKind::Kv, manifest.pageBytes * static_cast<uint64_t>(manifest.numPages),
          "num_pages * " + std::to_string(manifest.pageBytes));
  if (manifest.stateBytes > 0)
    entry("recurrent states", MemoryKind::State, manifest.stateBytes * static_cast<uint64_t>(manifest.maxSequences),
          "max_sequences * " + std::to_string(manifest.stateBytes));
  if (manifest.rank)
    entry("rows that ranks exchange", MemoryKind::Collectives, manifest.rank->collectiveBytes,
          std::to_string(manifest.rank->collectiveBytes));
  entry("logits", MemoryKind::Logits,
        static_cast<uint64_t>(manifest.maxLogitRows) * static_cast<uint64_t>(manifest.vocabulary) * 4,
        "max_logit_rows * " + std::to_string(manifest.vocabulary) + " * 4");
}

void describeGeneration(Manifest &manifest, const GenerationFacts &facts, const TokenizerFiles &tokenizer) {
  auto known = [&](int64_t id) { return id >= 0 && id < manifest.vocabulary; };
  if (facts.bosId && known(*facts.bosId))
    manifest.specialIds.bos = static_cast<int32_t>(*facts.bosId);
  if (facts.padId && known(*facts.padId))
    manifest.specialIds.pad = static_cast<int32_t>(*facts.padId);
  for (int64_t id : facts.eosIds)
    if (known(id))
      manifest.specialIds.eos.push_back(static_cast<int32_t>(id));
  manifest.generation = {facts.temperature, facts.topK, facts.topP, facts.minP, facts.repetitionPenalty};
  manifest.tokenizer.kind = tokenizer.kind;
  for (const auto &[name, bytes] : tokenizer.files)
    manifest.tokenizer.files.push_back(name);
  // A sentencepiece model does not say; its tokenizer class adds BOS unless told otherwise.
  manifest.tokenizer.addBos = facts.addBos.value_or(tokenizer.kind == sentencePieceKind);
  manifest.tokenizer.addEos = facts.addEos.value_or(false);
}

std::string specialTokensJson(const GenerationFacts &facts) {
  Json tokens = Json::object();
  for (const auto &[name, text] : facts.specialTokens)
    tokens[name] = text;
  return tokens.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

int32_t widestRecord(ModuleOp module) {
  int64_t channels = 1;
  module.walk([&](tile::RecordOp record) {
    channels = std::max(channels, cast<RankedTensorType>(record.getValue().getType()).getNumElements());
  });
  return static_cast<int32_t>(channels);
}

// The ranks that share the model, of which the module is the program of one.
RankGrid gridOf(ModuleOp module) {
  auto factOrOne = [&](StringRef name) { return static_cast<int32_t>(std::max<int64_t>(1, factOrZero(module, name))); };
  return {factOrOne("llmc.stages"), factOrOne("llmc.ranks")};
}

StatusOr<Manifest> manifestOf(const Model &model, const CpuTarget &target, const ArtifactLimits &limits,
                              ModuleOp module, const cpu::CompiledProgram &program) {
  Manifest manifest;
  manifest.writer = llmcVersion;
  manifest.abiVersion = LLMC_ABI_VERSION;
  manifest.family = model.spec.family;
  manifest.architecture = model.spec.architecture;
  manifest.target = target.name;
  manifest.cpuFeatures = program.requiredFeatures;
  manifest.vocabulary = static_cast<int32_t>(model.spec.vocabulary);
  manifest.hidden = static_cast<int32_t>(model.spec.hidden);
  manifest.recordChannels = widestRecord(module);
  manifest.numLayers = static_cast<int32_t>(model.spec.layers);
  manifest.context = static_cast<int32_t>(limits.context);
  manifest.maxTokens = static_cast<int32_t>(limits.maxTokens);
  manifest.maxSequences = static_cast<int32_t>(limits.maxSequences);
  manifest.maxLogitRows = static_cast<int32_t>(limits.maxLogitRows);
  manifest.maxWorkers = mostWorkers;
  manifest.numPages = static_cast<int32_t>(limits.numPages);
  if (RankGrid grid = gridOf(module); grid.size() > 1) {
    FailureOr<RankFacts> facts = cpu::exchangeFactsOf(module, limits.maxTokens, limits.maxLogitRows);
    if (failed(facts))
      return Status::error("the copies of rows that ranks exchange take more than 2^63 bytes");
    manifest.rank = *facts; // its number is the writer's business
    manifest.rank->grid = grid;
  }
  planMemory(manifest, module, program.scratchBytes);
  return manifest;
}

// Which kernel serves each task, and why each weight has its form.
DispatchManifest dispatchManifest(ModuleOp module, const cpu::CompiledProgram &program) {
  DispatchManifest manifest;
  for (const cpu::KernelChoice &choice : program.kernels)
    manifest.kernels.push_back({choice.task, choice.shape, choice.instruction, choice.reason, choice.kernelRows,
                                choice.rowBlock, choice.tileRows, choice.layers, choice.cost});
  for (auto weight : module.getOps<llm::WeightOp>()) {
    auto reason = weight->getAttrOfType<StringAttr>("reason");
    llm::WeightType type = cast<llm::WeightType>(weight.getType());
    manifest.weights.push_back({weight.getSymName().str(), llm::stringifyWeightForm(type.getForm()).str(),
                                reason ? reason.getValue().str() : "", std::vector<int64_t>(type.getShape())});
  }
  return manifest;
}

// "" where no kernels are kept: not wanted, or nowhere to keep them.
std::string kernelCacheFolder(const CompileOptions &options) {
  StatusOr<std::string> cache = artifactCacheFolder();
  return options.kernelCache && cache.ok() ? *cache + "/" + kernelCacheName : "";
}

// A step program compiled for the module; with --verbose, what was compiled and what the cache had.
StatusOr<cpu::CompiledProgram> generateCode(ModuleOp module, const CpuTarget &target, const CompileOptions &options,
                                            int jobs) {
  DiagnosticCollector diagnostics(module.getContext(), options.verbose);
  cpu::CompileOptions codegen;
  codegen.emulate = options.emulate;
  codegen.numThreads = static_cast<unsigned>(jobs);
  codegen.cacheFolder = kernelCacheFolder(options);
  FailureOr<cpu::CompiledProgram> program = cpu::compileProgram(module, target, codegen);
  if (failed(program))
    return diagnostics.status("code generation failed without saying why");
  if (options.verbose)
    std::fprintf(stderr, "note: kernels: %" PRId64 " compiled, %" PRId64 " from %s, %" PRId64 " shared\n",
                 program->unitsCompiled, program->unitsFromCache,
                 codegen.cacheFolder.empty() ? "no cache" : codegen.cacheFolder.c_str(),
                 program->numUnits - program->unitsCompiled - program->unitsFromCache);
  if (options.verbose && !program->cacheFault.ok())
    std::fprintf(stderr, "note: kernels are not kept: %s\n", program->cacheFault.message().c_str());
  return std::move(*program);
}

// Of a rank of the group, whose program the module is.
StatusOr<std::vector<PlacedWeight>> placedWeights(ModuleOp module, int64_t rank) {
  std::vector<PlacedWeight> placed;
  for (auto weight : module.getOps<llm::WeightOp>()) {
    WeightRecipe recipe = recipeOf(weight, rank);
    LLMC_ASSIGN_OR_RETURN(PackedLayout layout, layoutOf(cast<llm::WeightType>(weight.getType())));
    auto offset = weight->getAttrOfType<IntegerAttr>("offset");
    placed.push_back({std::move(recipe), layout, static_cast<uint64_t>(offset.getInt())});
  }
  return placed;
}

void describeWeights(Manifest &manifest, const std::vector<PlacedWeight> &weights) {
  for (const PlacedWeight &weight : weights)
    manifest.weights.push_back({weight.recipe.name, weight.offset, *weight.layout.bytes().value()});
}

} // namespace

StatusOr<int64_t> contextOf(const Model &model, const CompileOptions &options) {
  int64_t most = model.spec.context;
  if (options.context > most)
    return Status::error("--context is " + std::to_string(options.context) + ", but the model's positions end at " +
                         std::to_string(most));
  if (options.context > 0)
    return options.context;
  int64_t usual = std::min(most, defaultContext);
  // Longer ones would switch to the frequencies for long texts, which cost quality on short ones: only when asked for.
  for (const auto &[name, rope] : model.spec.ropes)
    if (!rope.longFrequencies.empty())
      usual = std::min(usual, rope.longAfter);
  return usual;
}

StatusOr<ArtifactLimits> limitsOf(const Model &model, const CompileOptions &options, int64_t pagePositions) {
  ArtifactLimits limits;
  LLMC_ASSIGN_OR_RETURN(limits.context, contextOf(model, options));
  limits.maxTokens = options.maxTokens;
  limits.maxSequences = std::min(options.maxSequences, options.maxTokens);
  limits.maxLogitRows = std::clamp(logitBytes / (4 * model.spec.vocabulary), limits.maxSequences, limits.maxTokens);
  limits.numPages = 0;
  if (pagePositions > 0) {
    // Enough for every sequence to answer shortly, or for two to fill their context.
    int64_t perSequence = (limits.context + pagePositions - 1) / pagePositions;
    limits.numPages =
        std::min<int64_t>(limits.maxSequences * perSequence, std::max(2 * perSequence, limits.maxSequences * 16));
  }
  return limits;
}

StatusOr<Manifest> planModel(const Model &model, const CompileOptions &options) {
  LLMC_ASSIGN_OR_RETURN(const CpuTarget target, findCpuTarget(options.target));
  LLMC_ASSIGN_OR_RETURN(CompiledModule lowered, buildAndLower(model, options));
  LLMC_ASSIGN_OR_RETURN(ArtifactLimits limits,
                        limitsOf(model, options, factOrZero(*lowered.module, "llmc.page_positions")));
  DiagnosticCollector diagnostics(lowered.context.get(), options.verbose);
  cpu::CompileOptions codegen;
  codegen.emulate = options.emulate;
  FailureOr<cpu::CompiledProgram> program = cpu::planProgram(*lowered.module, target, codegen);
  if (failed(program))
    return diagnostics.status("code generation failed without saying why");
  LLMC_ASSIGN_OR_RETURN(std::vector<PlacedWeight> weights, placedWeights(*lowered.module, 0));
  LLMC_ASSIGN_OR_RETURN(Manifest manifest, manifestOf(model, target, limits, *lowered.module, *program));
  describeWeights(manifest, weights);
  return manifest;
}

StatusOr<EmittedCode> emitCode(const Model &model, const CompileOptions &options) {
  LLMC_ASSIGN_OR_RETURN(const CpuTarget target, findCpuTarget(options.target));
  LLMC_ASSIGN_OR_RETURN(RankPrograms ranks, lowerRanks(model, options));
  int jobs = options.jobs > 0 ? options.jobs : usableCores();
  EmittedCode emitted{};
  for (const CompiledModule &kind : ranks.kinds) {
    LLMC_ASSIGN_OR_RETURN(cpu::CompiledProgram program, generateCode(*kind.module, target, options, jobs));
    emitted.tasks += program.numUnits;
    emitted.kernels += program.unitsCompiled + program.unitsFromCache;
    emitted.bytes += program.sharedObject.size();
  }
  return emitted;
}

namespace {

// What lies beside program and weights and is the same for all ranks.
std::vector<ArtifactFile> textFiles(const Model &model, const TokenizerFiles &tokenizer) {
  std::vector<ArtifactFile> files;
  for (const auto &[name, bytes] : tokenizer.files)
    files.push_back({name, bytes});
  if (!model.generation.chatTemplate.empty())
    files.push_back({chatTemplateFile, model.generation.chatTemplate});
  if (!model.generation.specialTokens.empty())
    files.push_back({specialTokensFile, specialTokensJson(model.generation)});
  return files;
}

// Everything that the code of a program depends on. What a weight is made of is none of it.
std::string programText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const char *name : {"llmc.ranks", "llmc.max_tokens", "llmc.page_bytes", "llmc.state_bytes"})
    stream << factOrZero(module, name) << "\n";
  for (Operation &op : *module.getBody()) {
    if (auto weight = dyn_cast<llm::WeightOp>(op))
      stream << weight.getSymName() << " " << weight.getType() << " " << weight->getAttr("offset") << "\n";
    else
      stream << op << "\n";
  }
  return text;
}

// Ranks of the same text share their program.
using Programs = std::map<std::string, cpu::CompiledProgram>;

// What the artifact holds of one rank, but for its weights.
StatusOr<ArtifactContents> contentsOf(const Model &model, const CompileOptions &options, const CpuTarget &target,
                                      ModuleOp module, int jobs, Programs &programs, const TokenizerFiles &tokenizer) {
  LLMC_ASSIGN_OR_RETURN(ArtifactLimits limits, limitsOf(model, options, factOrZero(module, "llmc.page_positions")));
  std::string text = programText(module);
  auto known = programs.find(text);
  if (known == programs.end()) {
    LLMC_ASSIGN_OR_RETURN(cpu::CompiledProgram compiled, generateCode(module, target, options, jobs));
    known = programs.emplace(std::move(text), std::move(compiled)).first;
  }
  const cpu::CompiledProgram &program = known->second;
  ArtifactContents contents;
  LLMC_ASSIGN_OR_RETURN(contents.manifest, manifestOf(model, target, limits, module, program));
  describeGeneration(contents.manifest, model.generation, tokenizer);
  contents.program = program.sharedObject;
  contents.files = textFiles(model, tokenizer);
  contents.files.push_back({dispatchFile, formatDispatch(dispatchManifest(module, program))});
  LLMC_ASSIGN_OR_RETURN(Json memory, memoryJson(module));
  contents.files.push_back({memoryFile, memory.dump(1) + "\n"});
  return contents;
}

} // namespace

StatusOr<Manifest> compileModel(const Model &model, const CompileOptions &options, const std::string &output) {
  if (!model.files.hasWeights())
    return Status::error(model.files.path() + ": holds no weights, only a config; compile needs them");
  LLMC_ASSIGN_OR_RETURN(const CpuTarget target, findCpuTarget(options.target));
  int jobs = options.jobs > 0 ? options.jobs : usableCores();
  LLMC_ASSIGN_OR_RETURN(RankPrograms ranks, lowerRanks(model, options));
  size_t count = ranks.kindOf.size(), kinds = ranks.kinds.size();
  Progress progress("compiling", kinds > 1 ? "kinds of ranks" : "kernels", kinds > 1 ? kinds : 0);
  Programs programs;
  LLMC_ASSIGN_OR_RETURN(TokenizerFiles tokenizer, tokenizerFilesOf(model.files));
  std::vector<ArtifactContents> ofKinds;
  for (const CompiledModule &kind : ranks.kinds) {
    LLMC_ASSIGN_OR_RETURN(ofKinds.emplace_back(),
                          contentsOf(model, options, target, *kind.module, jobs, programs, tokenizer));
    progress.update(ofKinds.size());
  }
  progress.finish();
  std::vector<ArtifactContents> contents;
  std::vector<std::vector<PlacedWeight>> weights(count);
  for (size_t rank = 0; rank < count; ++rank) {
    LLMC_ASSIGN_OR_RETURN(weights[rank], placedWeights(*ranks.kinds[ranks.kindOf[rank]].module,
                                                       static_cast<int64_t>(rank) % options.grid.group.ranks()));
    describeWeights(contents.emplace_back(ofKinds[ranks.kindOf[rank]]).manifest, weights[rank]);
  }
  ArtifactOptions writing;
  LLMC_ASSIGN_OR_RETURN(writing.key, inputsKey(model.files, options));
  writing.note = [](const std::string &note) { std::fprintf(stderr, "note: %s\n", note.c_str()); };
  writing.writeWeights = [&](size_t first, std::span<WeightSink *const> sinks) {
    std::vector<RankWeights> ranks;
    for (size_t i = 0; i < sinks.size(); ++i)
      ranks.push_back({weights[first + i], contents[first + i].manifest.weightsBytes, *sinks[i]});
    LLMC_RETURN_IF_ERROR(packRanks(ranks, ModelTensors(model.files), jobs));
    return model.files.checkUnchanged();
  };
  LLMC_RETURN_IF_ERROR(writeArtifact(contents, contents.front().manifest.grid(), output, writing));
  return std::move(contents.front().manifest);
}

} // namespace llmc
