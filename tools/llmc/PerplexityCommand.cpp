// Perplexity over consecutive windows: each token but a window's first is predicted from those before it there.
#include "runtime/engine/ArtifactText.h"
#include "runtime/engine/Engine.h"
#include "runtime/support/Limits.h"
#include "runtime/support/Progress.h"
#include "tools/llmc-run/IdsFile.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmc {
namespace {

constexpr int32_t defaultWindow = 512;

using Sequences = std::vector<std::vector<int32_t>>;

StatusOr<Sequences> inputOf(const PerplexityCommand &command, const LoadedArtifact &artifact) {
  if (!command.ids.empty())
    return readIdsFile(command.ids);
  LLMC_ASSIGN_OR_RETURN(ArtifactText text, ArtifactText::load(artifact));
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, text.tokenizer());
  LLMC_ASSIGN_OR_RETURN(std::string bytes, readFile(command.text, limits::idsFileBytes));
  LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.encode(bytes));
  return Sequences{std::move(ids)};
}

// A rest of fewer than two tokens predicts nothing.
Sequences windowsOf(const Sequences &sequences, size_t window) {
  Sequences windows;
  for (const std::vector<int32_t> &ids : sequences)
    for (size_t at = 0; at + 2 <= ids.size(); at += window)
      windows.emplace_back(ids.begin() + static_cast<ptrdiff_t>(at),
                           ids.begin() + static_cast<ptrdiff_t>(std::min(at + window, ids.size())));
  return windows;
}

// -log of the probability of `token`.
double surprise(std::span<const float> logits, int32_t token) {
  double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(token)]);
}

// The sum of surprises of each window.
StatusOr<std::vector<double>> score(Engine &engine, const Sequences &windows) {
  std::vector<double> sums(windows.size());
  uint64_t total = 0, done = 0;
  for (const std::vector<int32_t> &window : windows)
    total += window.size();
  Progress progress("perplexity", "tokens", total);
  auto vocabulary = static_cast<size_t>(engine.manifest().vocabulary);
  auto take = [&](const ForwardRows &rows) -> Status {
    const std::vector<int32_t> &window = windows[rows.sequence];
    for (int32_t row = 0; row < rows.count; ++row) {
      auto next = static_cast<size_t>(rows.firstPosition + row) + 1;
      if (next == window.size())
        continue;
      double value = surprise(rows.logits.subspan(static_cast<size_t>(row) * vocabulary, vocabulary), window[next]);
      if (!std::isfinite(value))
        return Status::error("window " + std::to_string(rows.sequence) + ": the logits at position " +
                             std::to_string(next - 1) + " are not finite; check the weights with llmc verify");
      sums[rows.sequence] += value;
    }
    progress.update(done += static_cast<uint64_t>(rows.count));
    return {};
  };
  // One after another: a window's memory is that of a step, however many there are.
  ForwardOptions options;
  options.together = false;
  LLMC_RETURN_IF_ERROR(engine.forward(windows, options, take));
  return sums;
}

void report(const PerplexityCommand &command, const Sequences &windows, const std::vector<double> &sums) {
  Json list = Json::array();
  double all = 0, tokens = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    auto predicted = static_cast<double>(windows[i].size() - 1);
    list.push_back({{"tokens", windows[i].size() - 1}, {"nll", sums[i] / predicted}});
    all += sums[i];
    tokens += predicted;
  }
  double perplexity = std::exp(all / tokens);
  if (command.json) {
    std::printf("%s\n", Json{{"windows", list}, {"perplexity", perplexity}}.dump().c_str());
    return;
  }
  if (command.compile.verbose)
    for (size_t i = 0; i < windows.size(); ++i)
      std::printf("window %zu: %zu tokens, nll %.6f\n", i, windows[i].size() - 1,
                  sums[i] / static_cast<double>(windows[i].size() - 1));
  std::printf("perplexity %.6f over %.0f tokens in %zu windows\n", perplexity, tokens, windows.size());
}

Status perplexity(const PerplexityCommand &command) {
  LLMC_ASSIGN_OR_RETURN(std::string artifact, artifactFor(command.model, command.compile));
  EngineOptions options;
  options.threads = command.threads;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact, options));
  int32_t context = engine->limits().context;
  int32_t window = command.window > 0 ? command.window : std::min(defaultWindow, context);
  if (window > context)
    return Status::error("--window is " + std::to_string(window) + ", but the artifact was compiled for " +
                         std::to_string(context) + " positions; use a smaller window or compile with --context");
  LLMC_ASSIGN_OR_RETURN(Sequences sequences, inputOf(command, engine->artifact()));
  Sequences windows = windowsOf(sequences, static_cast<size_t>(window));
  if (windows.empty())
    return Status::error((command.ids.empty() ? command.text : command.ids) +
                         ": holds fewer than 2 tokens, so there is nothing to predict");
  LLMC_ASSIGN_OR_RETURN(std::vector<double> sums, score(*engine, windows));
  report(command, windows, sums);
  return {};
}

} // namespace

int runPerplexity(const PerplexityCommand &command) {
  Status status = perplexity(command);
  return status.ok() ? exitDone : reportFault(status);
}

} // namespace llmc
