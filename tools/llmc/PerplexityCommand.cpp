// Perplexity of a model or an artifact on a text, as a command.
#include "runtime/support/Limits.h"
#include "tools/llmc-run/IdsFile.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/Perplexity.h"
#include <algorithm>
#include <cstdio>

namespace llmc {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

StatusOr<Sequences> inputOf(const PerplexityCommand &command, const LoadedArtifact &artifact) {
  if (!command.ids.empty())
    return readIdsFile(command.ids);
  LLMC_ASSIGN_OR_RETURN(std::string text, readFile(command.text, limits::idsFileBytes));
  LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, idsOfPlainText(artifact, text));
  return Sequences{std::move(ids)};
}

void report(const PerplexityCommand &command, const Perplexity &measured) {
  Json list = Json::array();
  for (const Perplexity::Window &window : measured.windows)
    list.push_back({{"tokens", window.predicted}, {"nll", window.nll()}});
  if (command.json) {
    std::printf("%s\n", Json{{"windows", list}, {"perplexity", measured.value()}}.dump().c_str());
    return;
  }
  if (command.compile.verbose)
    for (size_t i = 0; i < measured.windows.size(); ++i)
      std::printf("window %zu: %zu tokens, nll %.6f\n", i, measured.windows[i].predicted, measured.windows[i].nll());
  std::printf("perplexity %.6f over %zu tokens in %zu windows\n", measured.value(), measured.predicted(),
              measured.windows.size());
}

Status perplexity(const PerplexityCommand &command) {
  LLMC_ASSIGN_OR_RETURN(std::string artifact,
                        artifactFor(command.model, command.compile,
                                    command.ids.empty() ? ArtifactNeeds::Tokenizer : ArtifactNeeds::Nothing));
  EngineOptions options;
  options.threads = command.threads;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact, options));
  int32_t context = engine->limits().context;
  int32_t window = command.window > 0 ? command.window : std::min(defaultPerplexityWindow, context);
  if (window > context)
    return Status::error("--window is " + std::to_string(window) + ", but the artifact was compiled for " +
                         std::to_string(context) + " positions; use a smaller window or compile with --context");
  LLMC_ASSIGN_OR_RETURN(Sequences sequences, inputOf(command, engine->artifact()));
  StatusOr<Perplexity> measured = measurePerplexity(*engine, sequences, window);
  if (!measured.ok())
    return measured.status().inside(command.ids.empty() ? command.text : command.ids);
  report(command, *measured);
  return {};
}

} // namespace

int runPerplexity(const PerplexityCommand &command) {
  Status status = perplexity(command);
  return status.ok() ? exitDone : reportFault(status);
}

} // namespace llmc
