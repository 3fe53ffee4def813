// llmc compile: an artifact, its memory plan, and what its form of the weights costs.
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/File.h"
#include "runtime/support/Hash.h"
#include "runtime/support/Limits.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Interrupt.h"
#include "tools/llmc/MemoryReport.h"
#include "tools/llmc/ModelText.h"
#include "tools/llmc/Perplexity.h"
#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace llmc {
namespace {

StatusOr<Perplexity> perplexityOf(const std::string &artifact, const std::string &text, int32_t window) {
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact));
  LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, idsOfPlainText(engine->artifact(), text));
  return measurePerplexity(*engine, {std::move(ids)}, window);
}

// What the artifact loses on a text against one with f32 weights, into its manifest. The other artifact comes from the
// user's cache, or is compiled into it.
StatusOr<PerplexityFacts> measureLoss(const CompileCommand &command, const std::string &text, int32_t context) {
  CompileOptions plain = command.options;
  plain.weights = "f32";
  plain.kv = "";
  plain.emulate = false;
  LLMC_ASSIGN_OR_RETURN(std::string reference, artifactFor(command.model, plain));
  int32_t window = std::min(defaultPerplexityWindow, context);
  LLMC_ASSIGN_OR_RETURN(Perplexity expected, perplexityOf(reference, text, window));
  LLMC_ASSIGN_OR_RETURN(Perplexity found, perplexityOf(command.output, text, window));
  return PerplexityFacts{hashHex(text), found.predicted(), window, found.value(), expected.value()};
}

Status recordLoss(const CompileCommand &command, const std::string &text, Manifest &manifest) {
  StatusOr<PerplexityFacts> facts = measureLoss(command, text, manifest.context);
  if (!facts.ok())
    return facts.status().inside("--measure-perplexity " + command.perplexityText);
  const std::string file = command.output + "/" + manifestFile;
  LLMC_ASSIGN_OR_RETURN(std::string written, readFile(file, limits::manifestBytes));
  LLMC_ASSIGN_OR_RETURN(manifest, parseManifest(written, file));
  manifest.perplexity = *facts;
  LLMC_RETURN_IF_ERROR(checkManifest(manifest, file));
  return writeFileAtomically(file, manifestText(manifest));
}

Status compile(const CompileCommand &command, const Model &model) {
  std::string text;
  if (!command.perplexityText.empty()) {
    LLMC_RETURN_IF_ERROR(requireTokenizer(model.files, "leave --measure-perplexity out"));
    LLMC_ASSIGN_OR_RETURN(text, readFile(command.perplexityText, limits::idsFileBytes));
  }
  CleanUpOnInterrupt cleanUp;
  LLMC_ASSIGN_OR_RETURN(Manifest manifest, compileModel(model, command.options, command.output));
  if (!command.perplexityText.empty())
    LLMC_RETURN_IF_ERROR(recordLoss(command, text, manifest));
  std::printf("%s%s%s", planText(manifest, command.output).c_str(), stopText(manifest).c_str(),
              perplexityText(manifest).c_str());
  if (!command.options.verbose)
    return {};
  const std::string file = command.output + "/" + memoryFile;
  LLMC_ASSIGN_OR_RETURN(Json memory, readJsonFile(file, limits::manifestBytes));
  LLMC_ASSIGN_OR_RETURN(std::string arena, arenaText(memory, file));
  std::printf("%s", arena.c_str());
  return {};
}

} // namespace

int runCompile(const CompileCommand &command) {
  if (command.output.empty() && command.options.stopAfter.empty()) {
    std::fprintf(stderr, "error: no output; give -o ARTIFACT, or --stop-after PHASE\n");
    return exitUsage;
  }
  StatusOr<Model> model = openModel(command.model, command.options.models);
  if (!model.ok())
    return reportFault(model.status());
  for (const std::string &note : model->spec.notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
  if (command.options.stopAfter == emitPhase) {
    StatusOr<EmittedCode> code = emitCode(*model, command.options);
    if (!code.ok())
      return reportFault(code.status());
    std::printf("%" PRId64 " tasks, %" PRId64 " kernels, %" PRIu64 " bytes of code\n", code->tasks, code->kernels,
                code->bytes);
    return exitDone;
  }
  if (!command.options.stopAfter.empty()) {
    StatusOr<CompiledModule> lowered = buildAndLower(*model, command.options);
    return lowered.ok() ? exitDone : reportFault(lowered.status());
  }
  Status compiled = compile(command, *model);
  return compiled.ok() ? exitDone : reportFault(compiled);
}

} // namespace llmc
