// From an opened model to an artifact: importer, phases, code generation, packing, writing.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/artifact/Manifest.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Model.h"
#include <functional>
#include <memory>

namespace llmc {

// A module with the context it lives in.
struct CompiledModule {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

// Looks at the module as a phase leaves it.
using AfterPhase = std::function<void(const std::string &phase, mlir::ModuleOp module)>;

// Imports `model` and runs the phases up to options.stopAfter, dumping each where asked and showing it to `after`.
// Errors carry the place in the model's own words.
StatusOr<CompiledModule> buildAndLower(const Model &model, const CompileOptions &options, const AfterPhase &after = {});

// The element type of caches: as asked for, else f32 beside f32 weights and bf16 beside others.
std::string cacheElementOf(const CompileOptions &options);

// Positions a sequence may have: as asked for, else the model's, at most 8192.
StatusOr<int64_t> contextOf(const Model &model, const CompileOptions &options);

// The limits of an artifact as the options and the model give them.
struct ArtifactLimits {
  int64_t context, maxTokens, maxSequences, maxLogitRows, numPages;
};
// `pagePositions` is 0 where no layer keeps keys and values.
StatusOr<ArtifactLimits> limitsOf(const Model &model, const CompileOptions &options, int64_t pagePositions);

// Ranks of one kind have the same program, and differ by their number, which says what part of each weight they have.
struct RankKinds {
  std::vector<int64_t> first; // rank of each kind
  std::vector<size_t> kindOf; // of each rank, by number
};
StatusOr<RankKinds> rankKinds(const Model &model, const CompileOptions &options);

// What the phases leave for all ranks that share a model.
struct RankPrograms {
  std::vector<CompiledModule> kinds;
  std::vector<size_t> kindOf; // of each rank, by number
};
StatusOr<RankPrograms> lowerRanks(const Model &model, const CompileOptions &options);

// The limits and the memory plan of the artifact that compileModel would write. Weights are not needed: without them
// they count in the type that the config states.
StatusOr<Manifest> planModel(const Model &model, const CompileOptions &options);

// What code generation makes of a model, whose weights it does not need: --stop-after emit.
inline constexpr char emitPhase[] = "emit";
struct EmittedCode {
  int64_t tasks, kernels;
  uint64_t bytes; // of the shared object
};
StatusOr<EmittedCode> emitCode(const Model &model, const CompileOptions &options);

// Writes the artifact folder, whole or not at all, and says what is in it.
StatusOr<Manifest> compileModel(const Model &model, const CompileOptions &options, const std::string &output);

// The user's folder for what is compiled: artifacts, and kernels below.
StatusOr<std::string> artifactCacheFolder();
inline constexpr char kernelCacheName[] = "kernels";

// What the bytes of an artifact depend on, as a hash: the model's files as they are, the options, the compiler.
StatusOr<std::string> inputsKey(const ModelFiles &files, const CompileOptions &options);

// The artifact at `path`, or one compiled from the model at `path` into the user's cache, reused while neither the
// model nor the options change. A model without what is needed is refused before it is compiled.
enum class ArtifactNeeds { Nothing, Tokenizer };
StatusOr<std::string> artifactFor(const std::string &path, const CompileOptions &options,
                                  ArtifactNeeds needs = ArtifactNeeds::Nothing);

} // namespace llmc
