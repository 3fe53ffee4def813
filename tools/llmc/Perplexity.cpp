#include "tools/llmc/Perplexity.h"
#include "runtime/engine/ArtifactText.h"
#include "runtime/support/Progress.h"
#include <algorithm>
#include <cmath>

namespace llmc {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

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

} // namespace

size_t Perplexity::predicted() const {
  size_t tokens = 0;
  for (const Window &window : windows)
    tokens += window.predicted;
  return tokens;
}

double Perplexity::value() const {
  double sum = 0;
  for (const Window &window : windows)
    sum += window.sum;
  return std::exp(sum / static_cast<double>(predicted()));
}

StatusOr<std::vector<int32_t>> idsOfPlainText(const LoadedArtifact &artifact, const std::string &text) {
  LLMC_ASSIGN_OR_RETURN(ArtifactText loaded, ArtifactText::load(artifact));
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, loaded.tokenizer());
  return tokenizer.encode(text);
}

StatusOr<Perplexity> measurePerplexity(Engine &engine, const Sequences &sequences, int32_t window) {
  Sequences windows = windowsOf(sequences, static_cast<size_t>(window));
  if (windows.empty())
    return Status::error("holds fewer than 2 tokens, so there is nothing to predict");
  Perplexity result;
  for (const std::vector<int32_t> &ids : windows)
    result.windows.push_back({ids.size() - 1, 0});
  uint64_t total = result.predicted() + windows.size(), done = 0;
  Progress progress("perplexity", "tokens", total);
  auto vocabulary = static_cast<size_t>(engine.manifest().vocabulary);
  auto take = [&](const ForwardRows &rows) -> Status {
    const std::vector<int32_t> &ids = windows[rows.sequence];
    for (int32_t row = 0; row < rows.count; ++row) {
      auto next = static_cast<size_t>(rows.firstPosition + row) + 1;
      if (next == ids.size())
        continue;
      double value = surprise(rows.logits.subspan(static_cast<size_t>(row) * vocabulary, vocabulary), ids[next]);
      if (!std::isfinite(value))
        return Status::error("window " + std::to_string(rows.sequence) + ": the logits at position " +
                             std::to_string(next - 1) + " are not finite; check the weights with llmc verify");
      result.windows[rows.sequence].sum += value;
    }
    progress.update(done += static_cast<uint64_t>(rows.count));
    return {};
  };
  // One after another: a window's memory is that of a step, however many there are.
  ForwardOptions options;
  options.together = false;
  LLMC_RETURN_IF_ERROR(engine.forward(windows, options, take));
  return result;
}

} // namespace llmc
